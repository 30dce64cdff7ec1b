#include "starling/models/sample_order.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/base/random.hpp"

namespace starling::models {
namespace {

/// A key that makes the random numbers of the order independent of all others of the job's seed.
constexpr std::uint64_t order_stream = 0x6f72646572;

/// The samples that are left are listed in memory, so their number is bounded.
constexpr std::uint64_t epochs_apart_max = 100;
constexpr std::uint64_t epoch_max = UINT32_MAX - 2 * epochs_apart_max;
constexpr std::uint64_t count_max = std::uint64_t{1} << 60U;
constexpr std::uint64_t deals_max = 100;

/// Returns the number of steps in which `workers` workers take `samples` samples.
std::uint64_t steps_for(std::uint64_t samples, std::uint64_t workers, std::uint64_t batch_size) {
  if (samples == 0) return 0;
  const std::uint64_t samples_per_worker = (samples - 1) / workers + 1;
  return (samples_per_worker - 1) / batch_size + 1;
}

/// Returns the number of steps in so many whole or partial epochs, rounded, at most 1e15.
std::uint64_t rounded_steps(double epochs, std::uint64_t steps_per_epoch) {
  return static_cast<std::uint64_t>(
      std::min(std::round(epochs * static_cast<double>(steps_per_epoch)), 1e15));
}

std::uint64_t saturating_difference(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

SampleOrder::SampleOrder(std::uint64_t samples, std::uint64_t workers, std::uint64_t batch,
                         std::uint64_t seed, bool shuffle, std::uint64_t first_epoch,
                         std::shared_ptr<Rest> rest, std::uint64_t rest_size)
    : samples_(samples),
      workers_(workers),
      seed_(seed),
      shuffle_(shuffle),
      first_epoch_(first_epoch),
      rest_size_(rest_size),
      rest_(std::move(rest)) {
  STARLING_CHECK(samples > 0 && workers > 0 && batch > 0 && samples <= UINT32_MAX);
  batch_size_ = std::min(batch, (samples - 1) / workers + 1);
  steps_per_epoch_ = steps_for(samples, workers, batch_size_);
  rest_steps_ = steps_for(rest_size, workers, batch_size_);
}

SampleOrder::SampleOrder(std::uint64_t samples, std::uint64_t workers, std::uint64_t batch,
                         std::uint64_t seed, bool shuffle, std::span<const FormerDeal> former)
    : SampleOrder(samples, workers, batch, seed, shuffle, 0, nullptr, 0) {
  for (const FormerDeal& deal : former) {
    const std::shared_ptr<const SampleOrder> order{
        new SampleOrder{samples, deal.taken.size(), deal.batch, seed, shuffle, deal.first_epoch,
                        std::move(rest_), rest_size_}};
    rest_size_ = order->count_left(deal.taken);
    first_epoch_ = order->epochs_begun(deal.taken);
    rest_ = rest_size_ == 0 ? nullptr : std::make_shared<Rest>();
    if (!rest_) continue;
    rest_->order = order;
    rest_->taken = deal.taken;
  }
  rest_steps_ = steps_for(rest_size_, workers, batch_size_);
}

const std::vector<DealtSample>& SampleOrder::rest() const {
  static const std::vector<DealtSample> none;
  if (!rest_) return none;
  std::call_once(rest_->is_listed, [&] {
    rest_->samples = rest_->order->left(rest_->taken);
    rest_->order.reset();
  });
  return rest_->samples;
}

std::uint64_t SampleOrder::steps_in_epochs(double epochs) const {
  return epochs == 0 ? 0 : std::max<std::uint64_t>(1, rounded_steps(epochs, steps_per_epoch_));
}

std::uint64_t SampleOrder::steps_until(double epochs) const {
  const double whole = epochs - static_cast<double>(first_epoch_);
  if (whole >= 0) return rest_steps_ + rounded_steps(whole, steps_per_epoch_);
  // The job ends within the epochs that were begun: without the last samples of the rest.
  const double wanted = static_cast<double>(rest_size_) + whole * static_cast<double>(samples_);
  const auto round_size = static_cast<double>(workers_) * static_cast<double>(batch_size_);
  return static_cast<std::uint64_t>(std::ceil(std::max(0.0, wanted) / round_size));
}

double SampleOrder::epochs_after(std::uint64_t steps) const {
  const auto whole = static_cast<double>(first_epoch_);
  if (steps >= rest_steps_)
    return whole + static_cast<double>(steps - rest_steps_) / static_cast<double>(steps_per_epoch_);
  const auto rest_left = static_cast<double>(rest_size_) *
                         static_cast<double>(rest_steps_ - steps) /
                         static_cast<double>(rest_steps_);
  return whole - rest_left / static_cast<double>(samples_);
}

template <class Take>
void SampleOrder::for_each_sample(std::uint64_t worker, std::uint64_t step, Take take) const {
  STARLING_CHECK(worker < workers_);
  const bool takes_rest = step < rest_steps_;
  const std::uint64_t count = takes_rest ? rest_size_ : samples_;
  const std::uint64_t epoch = first_epoch_ + (step - rest_steps_) / steps_per_epoch_;
  const std::uint64_t first =
      (takes_rest ? step : (step - rest_steps_) % steps_per_epoch_) * batch_size_;
  const Permutation order = order_of(epoch);
  for (std::uint64_t i = first; i < first + batch_size_; ++i) {
    const std::uint64_t position = i * workers_ + worker;
    if (position >= count) break;
    if (takes_rest)
      take(rest()[position]);
    else
      take(DealtSample{static_cast<std::uint32_t>(shuffle_ ? order(position) : position),
                       static_cast<std::uint32_t>(epoch)});
  }
}

void SampleOrder::batch(std::uint64_t worker, std::uint64_t step,
                        std::vector<std::uint32_t>& out) const {
  out.clear();
  for_each_sample(worker, step, [&](DealtSample dealt) { out.push_back(dealt.sample); });
}

void SampleOrder::batch(std::uint64_t worker, std::uint64_t step,
                        std::vector<DealtSample>& out) const {
  out.clear();
  for_each_sample(worker, step, [&](DealtSample dealt) { out.push_back(dealt); });
}

std::uint64_t SampleOrder::share_of(std::uint64_t worker, std::uint64_t count) const {
  return count > worker ? (count - worker - 1) / workers_ + 1 : 0;
}

std::vector<DealtSample> SampleOrder::left(std::span<const Taken> taken) const {
  STARLING_CHECK(taken.size() == workers_);
  std::vector<DealtSample> left;
  // Adds those of `count` samples that were not taken. Each worker had made `steps` steps of the
  // deal before these, and had taken `samples_before(worker)` samples.
  const auto add = [&](std::uint64_t count, std::uint64_t steps, auto samples_before,
                       auto sample_at) {
    for (std::uint64_t position = 0; position < count; ++position) {
      const std::uint64_t worker = position % workers_;
      const std::uint64_t i = position / workers_;
      if (steps + i / batch_size_ >= taken[worker].steps &&
          samples_before(worker) + i >= taken[worker].samples)
        left.push_back(sample_at(position));
    }
  };
  add(
      rest().size(), 0, [](std::uint64_t) { return std::uint64_t{0}; },
      [&](std::uint64_t position) { return rest()[position]; });
  for (std::uint64_t epoch = first_epoch_left(taken); epoch < epochs_begun(taken); ++epoch) {
    const std::uint64_t before = epoch - first_epoch_;
    add(
        samples_, rest_steps_ + before * steps_per_epoch_,
        [&](std::uint64_t worker) {
          return share_of(worker, rest_size_) + before * share_of(worker, samples_);
        },
        [&, order = order_of(epoch)](std::uint64_t position) {
          return DealtSample{static_cast<std::uint32_t>(shuffle_ ? order(position) : position),
                             static_cast<std::uint32_t>(epoch)};
        });
  }
  return left;
}

std::uint64_t SampleOrder::count_left(std::span<const Taken> taken) const {
  std::uint64_t left = 0;
  // A worker's samples that it has not taken, of `share` samples, after `steps` steps of these and
  // at least `samples` samples.
  const auto left_of = [&](std::uint64_t share, std::uint64_t steps, std::uint64_t samples) {
    const std::uint64_t by_steps =
        steps > share / batch_size_ ? share : std::min(share, steps * batch_size_);
    return share - std::max(by_steps, std::min(share, samples));
  };
  const std::uint64_t first = first_epoch_left(taken);
  const std::uint64_t end = epochs_begun(taken);
  for (std::uint64_t worker = 0; worker < taken.size(); ++worker) {
    const auto& [steps, samples] = taken[worker];
    const std::uint64_t rest_share = share_of(worker, rest_size_);
    const std::uint64_t share = share_of(worker, samples_);
    left += left_of(rest_share, steps, samples);
    for (std::uint64_t epoch = first; epoch < end; ++epoch) {
      const std::uint64_t before = epoch - first_epoch_;
      left += left_of(share, saturating_difference(steps, rest_steps_ + before * steps_per_epoch_),
                      saturating_difference(samples, rest_share + before * share));
    }
  }
  return left;
}

std::uint64_t SampleOrder::epochs_begun(std::span<const Taken> taken) const {
  std::uint64_t begun = 0;
  for (std::uint64_t worker = 0; worker < taken.size(); ++worker) {
    const std::uint64_t steps = saturating_difference(taken[worker].steps, rest_steps_);
    const std::uint64_t samples =
        saturating_difference(taken[worker].samples, share_of(worker, rest_size_));
    const std::uint64_t share = std::max<std::uint64_t>(1, share_of(worker, samples_));
    begun = std::max(
        {begun, (steps + steps_per_epoch_ - 1) / steps_per_epoch_, (samples + share - 1) / share});
  }
  return first_epoch_ + begun;
}

std::uint64_t SampleOrder::first_epoch_left(std::span<const Taken> taken) const {
  std::uint64_t whole = UINT64_MAX;
  for (std::uint64_t worker = 0; worker < taken.size(); ++worker) {
    const std::uint64_t steps = saturating_difference(taken[worker].steps, rest_steps_);
    const std::uint64_t samples =
        saturating_difference(taken[worker].samples, share_of(worker, rest_size_));
    const std::uint64_t share = share_of(worker, samples_);
    if (share > 0) whole = std::min(whole, std::max(steps / steps_per_epoch_, samples / share));
  }
  return first_epoch_ + whole;
}

Permutation SampleOrder::order_of(std::uint64_t epoch) const {
  return {samples_, Random::stream(seed_, order_stream, epoch)()};
}

std::vector<FormerDeal> deals_after(std::span<const FormerDeal> former, const SampleOrder& order,
                                    FormerDeal last) {
  // A deal of which nobody has taken anything need not be remembered.
  if (std::ranges::count(last.taken, Taken{}) == std::ssize(last.taken))
    return {former.begin(), former.end()};
  last.first_epoch = order.first_epoch_;
  const auto rest_share = [&](std::uint64_t worker) {
    return order.share_of(worker, order.rest_size_);
  };
  bool has_rest = false;
  for (std::uint64_t worker = 0; worker < last.taken.size(); ++worker)
    has_rest = has_rest || (last.taken[worker].steps < order.rest_steps_ &&
                            last.taken[worker].samples < rest_share(worker));
  std::vector<FormerDeal> deals;
  if (has_rest) {
    deals.assign(former.begin(), former.end());
  } else {
    // All workers have taken what was left before, so it does not matter how that was dealt.
    for (std::uint64_t worker = 0; worker < last.taken.size(); ++worker) {
      Taken& taken = last.taken[worker];
      taken.steps = saturating_difference(taken.steps, order.rest_steps_);
      taken.samples = saturating_difference(taken.samples, rest_share(worker));
    }
  }
  deals.push_back(std::move(last));
  return deals;
}

Result<void> check_deals(std::span<const FormerDeal> former, std::uint64_t samples) {
  if (former.size() > deals_max)
    return Error{"the workers have changed " + std::to_string(former.size()) +
                 " times in one epoch; valid: up to " + std::to_string(deals_max)};
  std::uint64_t rest_size = 0;
  std::uint64_t epoch = former.empty() ? 0 : former.front().first_epoch;
  for (const FormerDeal& deal : former) {
    if (deal.batch == 0 || deal.taken.empty())
      return Error{"samples were dealt to " + std::to_string(deal.taken.size()) +
                   " workers in batches of " + std::to_string(deal.batch) +
                   "; valid: at least 1 of each"};
    if (deal.first_epoch != epoch || epoch > epoch_max)
      return Error{"holds a deal from epoch " + std::to_string(deal.first_epoch) +
                   " on; valid: " + std::to_string(std::min(epoch, epoch_max))};
    std::uint64_t most = 0;
    for (const Taken& taken : deal.taken) most = std::max({most, taken.steps, taken.samples});
    const SampleOrder order{samples, deal.taken.size(), deal.batch, 0,
                            false,   deal.first_epoch,  nullptr,    rest_size};
    if (most >= count_max || order.epochs_begun(deal.taken) > epoch_max)
      return Error{"holds step " + std::to_string(most) + ", which no job reaches"};
    epoch = order.epochs_begun(deal.taken);
    const std::uint64_t from = std::min(order.first_epoch_left(deal.taken), epoch);
    if (epoch - from > epochs_apart_max)
      return Error{"the workers are " + std::to_string(epoch - from) +
                   " epochs apart; valid: up to " + std::to_string(epochs_apart_max)};
    rest_size = order.count_left(deal.taken);
    if (rest_size > epochs_apart_max * samples)
      return Error{std::to_string(rest_size) + " samples are left; valid: up to " +
                   std::to_string(epochs_apart_max * samples)};
  }
  return {};
}

}  // namespace starling::models
