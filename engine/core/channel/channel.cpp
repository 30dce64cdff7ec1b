#include "starling/engine/core/channel/channel.hpp"

namespace starling::core {

void ResendTime::measured(Time took) {
  if (!smoothed_) {
    smoothed_ = took;
    deviation_ = took / 2;
    return;
  }
  const Time off = took > *smoothed_ ? took - *smoothed_ : *smoothed_ - took;
  deviation_ += (off - deviation_) / 4;
  *smoothed_ += (took - *smoothed_) / 8;
}

Time ResendTime::wait() const {
  Time wait = smoothed_ ? *smoothed_ + 4 * deviation_ : first_;
  wait = std::clamp(wait, least_, most_);
  for (unsigned i = 0; i < silences_ && wait < most_; ++i) wait *= 2;
  return std::min(wait, most_);
}

}  // namespace starling::core
