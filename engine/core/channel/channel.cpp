#include "starling/engine/core/channel/channel.hpp"

namespace starling::core {

void ResendTimeout::on_round_trip(Time round_trip) {
  if (!smoothed_) {
    smoothed_ = round_trip;
    deviation_ = round_trip / 2;
    return;
  }
  const Time difference =
      round_trip > *smoothed_ ? round_trip - *smoothed_ : *smoothed_ - round_trip;
  deviation_ += (difference - deviation_) / 4;
  *smoothed_ += (round_trip - *smoothed_) / 8;
}

Time ResendTimeout::get() const {
  Time timeout = smoothed_ ? *smoothed_ + 4 * deviation_ : initial_;
  timeout = std::clamp(timeout, min_, max_);
  for (unsigned i = 0; i < timeouts_ && timeout < max_; ++i) timeout *= 2;
  return std::min(timeout, max_);
}

}  // namespace starling::core
