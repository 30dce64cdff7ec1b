/// A frame as its receiver gets it: the body is one block of bytes.
#pragma once

#include "starling/actor/wire/frame.hpp"

namespace starling::wire {

struct ReceivedFrame {
  explicit ReceivedFrame(const Frame& frame) : head(frame.head) {
    for (const Attachment& part : frame.body)
      body.insert(body.end(), part.bytes.begin(), part.bytes.end());
  }
  [[nodiscard]] FrameView view() const { return {head, body}; }
  bool operator==(const ReceivedFrame&) const = default;

  Bytes head;
  Bytes body;
};

}  // namespace starling::wire
