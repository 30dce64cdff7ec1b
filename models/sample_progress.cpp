/// The functions of SampleOrder for workers whose progress in a deal is a number of samples.
#include <algorithm>
#include <cmath>

#include "starling/base/check.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::models {

SampleOrder::WorkerPosition SampleOrder::position_after(std::uint64_t worker,
                                                        std::uint64_t taken) const {
  STARLING_CHECK(worker < workers_ && begins_.empty());
  const std::uint64_t leftover_share = share_of(worker, leftover_size_);
  if (taken < leftover_share) return {true, 0, leftover_share, taken};
  const std::uint64_t share = share_of(worker, samples_);
  if (share == 0) return {false, first_epoch_, 0, 0};
  const std::uint64_t whole = taken - leftover_share;
  return {false, first_epoch_ + whole / share, share, whole % share};
}

std::uint64_t SampleOrder::size_after(std::uint64_t worker, std::uint64_t taken) const {
  const WorkerPosition at = position_after(worker, taken);
  return share_of(worker, samples_) > 0 ? batch_size_ : std::min(batch_size_, at.share - at.taken);
}

template <class Take>
void SampleOrder::for_each_sample_after(std::uint64_t worker, std::uint64_t taken,
                                        Take take) const {
  const std::uint64_t end = taken + size_after(worker, taken);
  while (taken < end) {
    const WorkerPosition at = position_after(worker, taken);
    const Permutation order = order_of(at.epoch);
    const std::uint64_t last = std::min(at.share, at.taken + (end - taken));
    taken += last - at.taken;
    for (std::uint64_t i = at.taken; i < last; ++i) {
      const std::uint64_t position = i * workers_ + worker;
      if (at.in_leftover)
        take(leftover()[position]);
      else
        take(DealtSample{static_cast<std::uint32_t>(shuffle_ ? order(position) : position),
                         static_cast<std::uint32_t>(at.epoch)});
    }
  }
}

void SampleOrder::batch_after(std::uint64_t worker, std::uint64_t taken,
                              std::vector<std::uint32_t>& out) const {
  out.clear();
  for_each_sample_after(worker, taken, [&](DealtSample dealt) { out.push_back(dealt.sample); });
}

void SampleOrder::batch_after(std::uint64_t worker, std::uint64_t taken,
                              std::vector<DealtSample>& out) const {
  out.clear();
  for_each_sample_after(worker, taken, [&](DealtSample dealt) { out.push_back(dealt); });
}

std::uint64_t SampleOrder::samples_of_first_epoch(std::uint64_t worker) const {
  return share_of(worker, leftover_size_) + share_of(worker, samples_);
}

std::uint64_t SampleOrder::samples_until(std::uint64_t worker, double epochs) const {
  constexpr double most = 1e15;
  const double whole = epochs - static_cast<double>(first_epoch_);
  // The job ends before the workers have taken all samples that were left.
  if (whole < 0) {
    const double wanted =
        static_cast<double>(leftover_size_) + whole * static_cast<double>(samples_);
    return share_of(worker, static_cast<std::uint64_t>(std::ceil(std::max(0.0, wanted))));
  }
  const auto share = static_cast<double>(share_of(worker, samples_));
  return share_of(worker, leftover_size_) +
         static_cast<std::uint64_t>(std::min(std::round(whole * share), most));
}

double SampleOrder::epochs_after_samples(std::uint64_t worker, std::uint64_t taken) const {
  const auto whole = static_cast<double>(first_epoch_);
  const std::uint64_t leftover_share = share_of(worker, leftover_size_);
  const std::uint64_t share = share_of(worker, samples_);
  if (taken >= leftover_share && share == 0) return whole;
  if (taken >= leftover_share)
    return whole + static_cast<double>(taken - leftover_share) / static_cast<double>(share);
  const double left = static_cast<double>(leftover_size_) *
                      static_cast<double>(leftover_share - taken) /
                      static_cast<double>(leftover_share);
  return whole - left / static_cast<double>(samples_);
}

std::uint64_t steps_max_in(double epochs, std::uint64_t samples) {
  return static_cast<std::uint64_t>(
      std::min(std::ceil(epochs * static_cast<double>(samples)), 1e15));
}

std::uint64_t samples_at_resume(std::uint64_t samples, std::uint64_t workers,
                                std::uint64_t worker) {
  return samples / workers + (worker < samples % workers ? 1 : 0);
}

}  // namespace starling::models
