/// Converts frames to and from inputs of a fuzzer: the size of the head, the head, the body. One
/// thread.
#pragma once

#include "starling/actor/wire/frame.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace starling::fuzz {

inline Bytes body_of(const wire::Frame& frame) {
  Bytes body;
  for (const wire::Attachment& part : frame.body)
    body.insert(body.end(), part.bytes.begin(), part.bytes.end());
  return body;
}

inline Bytes input_of(const wire::Frame& frame) {
  Bytes input;
  put_sized(input, frame.head);
  const Bytes body = body_of(frame);
  input.insert(input.end(), body.begin(), body.end());
  return input;
}

inline wire::FrameView frame_in(Input input) {
  InputReader reader{input};
  const Input head = reader.sized();
  return {head, reader.rest()};
}

/// Requires that a message which was decoded from `frame` and encoded again gives the same bytes.
inline void require_same(const wire::Frame& again, const wire::FrameView& frame) {
  require(std::ranges::equal(again.head, frame.head),
          "encoding a decoded head gives the same bytes");
  require(std::ranges::equal(body_of(again), frame.body),
          "encoding a decoded body gives the same bytes");
}

}  // namespace starling::fuzz
