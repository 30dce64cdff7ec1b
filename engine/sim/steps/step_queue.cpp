#include "starling/engine/sim/steps/step_queue.hpp"

#include <algorithm>
#include <bit>

#include "starling/base/check.hpp"

namespace starling::sim {
namespace {

/// The mean number of events in a bucket: large enough that few buckets are used at a time, and
/// small enough that a bucket is sorted in the first-level cache.
constexpr std::uint64_t events_per_bucket = 512;
/// The length of the ring in mean step times. Few events are later than this, unless all workers
/// are stragglers.
constexpr std::uint64_t means_in_ring = 8;
/// The smallest and the largest number of buckets.
constexpr std::uint64_t ring_min = 64;
constexpr std::uint64_t ring_max = std::uint64_t{1} << 20U;
/// A Key has 32 bits for the time since the beginning of the bucket.
constexpr unsigned width_bits_max = 32;

/// Returns the binary logarithm of a bucket's width in ns.
unsigned width_bits(std::size_t workers, std::uint64_t mean_ns) {
  const double width = static_cast<double>(mean_ns) * static_cast<double>(events_per_bucket) /
                       static_cast<double>(workers);
  if (width >= 0x1p32) return width_bits_max;
  return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(width) / 2));
}

}  // namespace

StepQueue::StepQueue(std::size_t workers, core::Time mean)
    : width_bits_(width_bits(workers, static_cast<std::uint64_t>(mean.count()))) {
  const auto buckets = (static_cast<std::uint64_t>(mean.count()) >> width_bits_) * means_in_ring;
  ring_.resize(std::bit_ceil(std::clamp(buckets, ring_min, ring_max)));
}

StepQueue::Key StepQueue::key_of(core::Time at, core::MemberId worker) const {
  const auto offset =
      static_cast<std::uint64_t>(at.count()) & ((std::uint64_t{1} << width_bits_) - 1);
  return (offset << 32U) | worker;
}

void StepQueue::push(core::Time at, core::MemberId worker) {
  const std::uint64_t bucket = bucket_of(at);
  STARLING_CHECK(bucket >= current_bucket_);
  if (bucket == current_bucket_) {
    const Key key = key_of(at, worker);
    const auto next = current_events_.begin() + static_cast<std::ptrdiff_t>(next_);
    current_events_.insert(std::upper_bound(next, current_events_.end(), key), key);
  } else if (bucket - current_bucket_ < ring_.size()) {
    ring_[bucket & (ring_.size() - 1)].push_back(key_of(at, worker));
    ++events_in_ring_;
  } else {
    beyond_ring_.push_back({at, worker});
  }
}

std::optional<StepQueue::Event> StepQueue::pop() {
  while (next_ == current_events_.size()) {
    if (events_in_ring_ == 0 && beyond_ring_.empty()) return std::nullopt;
    advance();
  }
  const Key key = current_events_[next_++];
  const auto at = static_cast<core::Time::rep>((current_bucket_ << width_bits_) + (key >> 32U));
  return Event{core::Time{at}, static_cast<core::MemberId>(key)};
}

/// Moves on to the next bucket or, if the ring is empty, to the next bucket that holds an event.
void StepQueue::advance() {
  if (events_in_ring_ == 0) {
    const auto earliest = std::ranges::min_element(beyond_ring_, {}, &Event::at);
    current_bucket_ = bucket_of(earliest->at);
    fill_ring();
  } else if ((++current_bucket_ & (ring_.size() / 2 - 1)) == 0) {
    fill_ring();
  }
  // Frees the memory of a bucket that was very full. Otherwise each bucket could in turn keep
  // memory for all workers.
  if (current_events_.capacity() > 16 * events_per_bucket) current_events_ = Bucket{};
  current_events_.clear();
  next_ = 0;
  current_events_.swap(ring_[current_bucket_ & (ring_.size() - 1)]);
  events_in_ring_ -= current_events_.size();
  std::ranges::sort(current_events_);
}

/// Moves into the ring the events that it now reaches. Called twice in each round of the ring.
void StepQueue::fill_ring() {
  std::erase_if(beyond_ring_, [&](const Event& event) {
    const std::uint64_t bucket = bucket_of(event.at);
    if (bucket - current_bucket_ >= ring_.size()) return false;
    ring_[bucket & (ring_.size() - 1)].push_back(key_of(event.at, event.worker));
    ++events_in_ring_;
    return true;
  });
}

}  // namespace starling::sim
