/// Writes and reads frames as inputs of a fuzzer: the head's size, the head, the body. One thread.
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
  put_part(input, frame.head);
  const Bytes body = body_of(frame);
  input.insert(input.end(), body.begin(), body.end());
  return input;
}

inline wire::FrameView frame_in(Input input) {
  Feed feed{input};
  const Input head = feed.part();
  return {head, feed.rest()};
}

/// Requires that a decoded message is encoded as the same bytes again.
inline void require_same(const wire::Frame& again, const wire::FrameView& frame) {
  require(std::ranges::equal(again.head, frame.head), "a head is written again as it was");
  require(std::ranges::equal(body_of(again), frame.body), "a body is written again as it was");
}

}  // namespace starling::fuzz
