#include "starling/engine/core/channel/channel.hpp"

#include <utility>

namespace starling::core {

namespace {

/// If a resent payload is acknowledged after each of this many timeouts, and no round trip is
/// measured meanwhile, ResendTimeout assumes that the round trip is longer than the timeout.
constexpr unsigned resent_max = 8;

}  // namespace

void ResendTimeout::on_round_trip(Time round_trip) {
  resent_age_ = {};
  resent_count_ = 0;
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

void ResendTimeout::on_resent_acknowledged(Time age) {
  if (!std::exchange(is_counted_, true) && ++resent_count_ >= resent_max) smoothed_.reset();
  if (!smoothed_) resent_age_ = age;
}

Time ResendTimeout::get() const {
  Time timeout = smoothed_ ? *smoothed_ + 4 * deviation_ : std::max(initial_, resent_age_ * 3 / 2);
  timeout = std::clamp(timeout, min_, max_);
  for (unsigned i = 0; i < timeouts_ && timeout < max_; ++i) timeout *= 2;
  return std::min(timeout, max_);
}

}  // namespace starling::core
