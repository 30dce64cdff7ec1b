#include "starling/engine/sim/steps/step_queue.hpp"

#include <algorithm>
#include <bit>

#include "starling/base/check.hpp"

namespace starling::sim {
namespace {

/// Enough that few buckets are touched, few enough that sorting stays in the nearest cache.
constexpr std::uint64_t events_per_bucket = 512;
/// Few events lie beyond this many mean steps, unless everyone is a straggler.
constexpr std::uint64_t means_in_ring = 8;
constexpr std::uint64_t ring_min = 64;
constexpr std::uint64_t ring_max = std::uint64_t{1} << 20U;
/// A bucket's offset and a worker share 64 bits.
constexpr unsigned width_bits_max = 32;

unsigned width_bits(std::size_t workers, std::uint64_t mean_ns) {
  const double width = static_cast<double>(mean_ns) * static_cast<double>(events_per_bucket) /
                       static_cast<double>(workers);
  if (width >= 0x1p32) return width_bits_max;
  return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(width) / 2));
}

}  // namespace

StepQueue::StepQueue(std::size_t workers, core::Time mean)
    : width_bits_(width_bits(workers, static_cast<std::uint64_t>(mean.count()))) {
  const auto wanted = (static_cast<std::uint64_t>(mean.count()) >> width_bits_) * means_in_ring;
  ring_.resize(std::bit_ceil(std::clamp(wanted, ring_min, ring_max)));
}

StepQueue::Key StepQueue::key_of(core::Time at, core::MemberId worker) const {
  const auto offset =
      static_cast<std::uint64_t>(at.count()) & ((std::uint64_t{1} << width_bits_) - 1);
  return (offset << 32U) | worker;
}

void StepQueue::push(core::Time at, core::MemberId worker) {
  const std::uint64_t bucket = bucket_of(at);
  STARLING_CHECK(bucket >= current_);
  if (bucket == current_) {
    const Key key = key_of(at, worker);
    const auto rest = due_.begin() + static_cast<std::ptrdiff_t>(next_);
    due_.insert(std::upper_bound(rest, due_.end(), key), key);
  } else if (bucket - current_ < ring_.size()) {
    ring_[bucket & (ring_.size() - 1)].push_back(key_of(at, worker));
    ++in_ring_;
  } else {
    far_.push_back({at, worker});
  }
}

std::optional<StepQueue::Event> StepQueue::pop() {
  while (next_ == due_.size()) {
    if (in_ring_ == 0 && far_.empty()) return std::nullopt;
    advance();
  }
  const Key key = due_[next_++];
  const auto offset = static_cast<core::Time::rep>((current_ << width_bits_) + (key >> 32U));
  return Event{core::Time{offset}, static_cast<core::MemberId>(key)};
}

/// Moves on to the next bucket or, where the ring is empty, to the next that holds an event.
void StepQueue::advance() {
  if (in_ring_ == 0) {
    const auto first = std::ranges::min_element(far_, {}, &Event::at);
    current_ = bucket_of(first->at);
    fetch_far();
  } else if ((++current_ & (ring_.size() / 2 - 1)) == 0) {
    fetch_far();
  }
  // Frees the bucket of a burst: else each bucket in turn would keep capacity for all workers.
  if (due_.capacity() > 16 * events_per_bucket) due_ = Bucket{};
  due_.clear();
  next_ = 0;
  due_.swap(ring_[current_ & (ring_.size() - 1)]);
  in_ring_ -= due_.size();
  std::ranges::sort(due_);
}

/// Moves into the ring the events that it now reaches. Twice a round is often enough.
void StepQueue::fetch_far() {
  std::erase_if(far_, [&](const Event& event) {
    const std::uint64_t bucket = bucket_of(event.at);
    if (bucket - current_ >= ring_.size()) return false;
    ring_[bucket & (ring_.size() - 1)].push_back(key_of(event.at, event.worker));
    ++in_ring_;
    return true;
  });
}

}  // namespace starling::sim
