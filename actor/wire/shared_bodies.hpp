/// Internal to Transport: bodies that outlive the receiver's call in the buffers in which they
/// arrived, which saves a copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "starling/actor/wire/frame.hpp"
#include "starling/actor/wire/zmtp.hpp"
#include "starling/base/tensor_pool.hpp"

namespace starling::wire {

/// One thread calls keep_alive(). Bodies may be dropped on any thread, and outlive this object.
class SharedBodies {
 public:
  /// Makes a long body outlive the call of the receiver: moves it from `part` into an object that
  /// `frame` owns. Does nothing if the body is short, or if the bodies that are kept alive already
  /// have too many bytes.
  void keep_alive(PartBuffer& part, FrameView& frame) const {
    const std::size_t bytes = part.filled().size();
    if (bytes < tensor_pool::block_bytes_min || *bytes_ + bytes > bytes_max) return;
    *bytes_ += bytes;
    const std::shared_ptr<const PartBuffer> body{new PartBuffer{std::move(part)},
                                                 [sum = bytes_, bytes](const auto* buffer) {
                                                   *sum -= bytes;
                                                   delete buffer;
                                                 }};
    frame.body = body->filled();
    frame.body_owner = body;
  }

 private:
  /// Beyond this limit, copying bodies into reused blocks (tensor_pool.hpp) costs less.
  static constexpr std::size_t bytes_max = std::size_t{2} << 20U;
  const std::shared_ptr<std::atomic<std::size_t>> bytes_ =
      std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace starling::wire
