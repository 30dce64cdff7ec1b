#include "starling/models/sample_order.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/base/random.hpp"
#include "starling/models/batch_sizes.hpp"

namespace starling::models {
namespace {

/// A key that makes the random numbers of the order independent of all others of the job's seed.
constexpr std::uint64_t order_stream = 0x6f72646572;

/// The samples that former deals left are listed in memory, so check_deals() bounds their number.
constexpr std::uint64_t epochs_apart_max = 100;
constexpr std::uint64_t epoch_max = UINT32_MAX - 2 * epochs_apart_max;
constexpr std::uint64_t count_max = std::uint64_t{1} << 60U;
constexpr std::uint64_t deals_max = 100;
constexpr std::uint64_t round_size_max = std::uint64_t{1} << 32U;

/// Returns the number of steps in `epochs` whole or partial epochs, rounded, at most 1e15.
std::uint64_t rounded_steps(double epochs, std::uint64_t steps_per_epoch) {
  return static_cast<std::uint64_t>(
      std::min(std::round(epochs * static_cast<double>(steps_per_epoch)), 1e15));
}

/// Returns true if each batch has a sample, and all together have at most `round_size_max`.
bool are_valid(std::span<const std::uint64_t> sizes) {
  std::uint64_t sum = 0;
  for (const std::uint64_t size : sizes) {
    if (size == 0 || size > round_size_max - sum) return false;
    sum += size;
  }
  return true;
}

std::uint64_t saturating_difference(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

SampleOrder::SampleOrder(std::uint64_t samples, const Parts& parts, std::uint64_t seed,
                         bool shuffle, std::uint64_t first_epoch,
                         std::shared_ptr<Leftover> leftover, std::uint64_t leftover_size)
    : samples_(samples),
      workers_(parts.workers),
      seed_(seed),
      shuffle_(shuffle),
      first_epoch_(first_epoch),
      leftover_size_(leftover_size),
      leftover_(std::move(leftover)) {
  STARLING_CHECK(samples > 0 && workers_ > 0 && samples <= UINT32_MAX);
  if (parts.sizes.empty()) {
    STARLING_CHECK(parts.batch > 0);
    batch_size_ = std::min(parts.batch, (samples - 1) / workers_ + 1);
  } else {
    STARLING_CHECK(parts.sizes.size() == workers_ && are_valid(parts.sizes));
    begins_.push_back(0);
    for (const std::uint64_t size : parts.sizes) begins_.push_back(begins_.back() + size);
    round_size_ = begins_.back();
    batch_size_ = (round_size_ - 1) / workers_ + 1;
  }
  steps_per_epoch_ = steps_for(samples);
  leftover_steps_ = steps_for(leftover_size);
}

SampleOrder::SampleOrder(std::uint64_t samples, std::uint64_t workers, std::uint64_t batch,
                         std::uint64_t seed, bool shuffle, std::span<const FormerDeal> former)
    : SampleOrder(samples, {workers, batch, {}}, seed, shuffle, 0, nullptr, 0) {
  follow(former);
}

SampleOrder::SampleOrder(std::uint64_t samples, std::span<const std::uint64_t> sizes,
                         std::uint64_t seed, bool shuffle, std::span<const FormerDeal> former)
    : SampleOrder(samples, {sizes.size(), 0, sizes}, seed, shuffle, 0, nullptr, 0) {
  follow(former);
}

void SampleOrder::follow(std::span<const FormerDeal> former) {
  for (const FormerDeal& deal : former) {
    const std::shared_ptr<const SampleOrder> order{
        new SampleOrder{samples_,
                        {deal.taken.size(), deal.batch, deal.sizes},
                        seed_,
                        shuffle_,
                        deal.first_epoch,
                        std::move(leftover_),
                        leftover_size_}};
    leftover_size_ = order->count_left(deal.taken);
    first_epoch_ = order->first_new_epoch(deal.taken);
    leftover_ = leftover_size_ == 0 ? nullptr : std::make_shared<Leftover>();
    if (!leftover_) continue;
    leftover_->order = order;
    leftover_->taken = deal.taken;
  }
  leftover_steps_ = steps_for(leftover_size_);
}

const std::vector<DealtSample>& SampleOrder::leftover() const {
  static const std::vector<DealtSample> none;
  if (!leftover_) return none;
  std::call_once(leftover_->is_listed, [&] {
    leftover_->samples = leftover_->order->left(leftover_->taken);
    leftover_->order.reset();
  });
  return leftover_->samples;
}

std::uint64_t SampleOrder::steps_in_epochs(double epochs) const {
  return epochs == 0 ? 0 : std::max<std::uint64_t>(1, rounded_steps(epochs, steps_per_epoch_));
}

std::uint64_t SampleOrder::steps_until(double epochs) const {
  const double whole = epochs - static_cast<double>(first_epoch_);
  if (whole >= 0) return leftover_steps_ + rounded_steps(whole, steps_per_epoch_);
  // The job ends before the workers have taken all samples that were left.
  const double wanted = static_cast<double>(leftover_size_) + whole * static_cast<double>(samples_);
  const double round_size = begins_.empty()
                                ? static_cast<double>(workers_) * static_cast<double>(batch_size_)
                                : static_cast<double>(round_size_);
  return static_cast<std::uint64_t>(std::ceil(std::max(0.0, wanted) / round_size));
}

double SampleOrder::epochs_after(std::uint64_t steps) const {
  const auto whole = static_cast<double>(first_epoch_);
  if (steps >= leftover_steps_)
    return whole +
           static_cast<double>(steps - leftover_steps_) / static_cast<double>(steps_per_epoch_);
  const auto left = static_cast<double>(leftover_size_) *
                    static_cast<double>(leftover_steps_ - steps) /
                    static_cast<double>(leftover_steps_);
  return whole - left / static_cast<double>(samples_);
}

template <class Take>
void SampleOrder::for_each_sample(std::uint64_t worker, std::uint64_t step, Take take) const {
  STARLING_CHECK(worker < workers_);
  const bool in_leftover = step < leftover_steps_;
  const std::uint64_t count = in_leftover ? leftover_size_ : samples_;
  const std::uint64_t epoch = first_epoch_ + (step - leftover_steps_) / steps_per_epoch_;
  const std::uint64_t part_step = in_leftover ? step : (step - leftover_steps_) % steps_per_epoch_;
  const Permutation order = order_of(epoch);
  const auto take_position = [&](std::uint64_t position) {
    if (in_leftover)
      take(leftover()[position]);
    else
      take(DealtSample{static_cast<std::uint32_t>(shuffle_ ? order(position) : position),
                       static_cast<std::uint32_t>(epoch)});
  };
  if (begins_.empty()) {
    const std::uint64_t first = part_step * batch_size_;
    for (std::uint64_t i = first; i < first + batch_size_; ++i) {
      const std::uint64_t position = i * workers_ + worker;
      if (position >= count) break;
      take_position(position);
    }
    return;
  }
  const std::uint64_t first = part_step * round_size_;
  const std::uint64_t end = first + begin_of(worker + 1, count - first);
  for (std::uint64_t position = first + begin_of(worker, count - first); position < end; ++position)
    take_position(position);
}

std::uint64_t SampleOrder::size_at(std::uint64_t worker, std::uint64_t step) const {
  const bool in_leftover = step < leftover_steps_;
  const std::uint64_t count = in_leftover ? leftover_size_ : samples_;
  const std::uint64_t before = in_leftover ? step : (step - leftover_steps_) % steps_per_epoch_;
  return share_of_steps(worker, count, before + 1) - share_of_steps(worker, count, before);
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

std::uint64_t SampleOrder::steps_for(std::uint64_t count) const {
  if (count == 0) return 0;
  if (!begins_.empty()) return (count - 1) / round_size_ + 1;
  const std::uint64_t samples_per_worker = (count - 1) / workers_ + 1;
  return (samples_per_worker - 1) / batch_size_ + 1;
}

std::uint64_t SampleOrder::share_of(std::uint64_t worker, std::uint64_t count) const {
  if (begins_.empty()) return count > worker ? (count - worker - 1) / workers_ + 1 : 0;
  const std::uint64_t last_slice = count % round_size_;
  return count / round_size_ * (begins_[worker + 1] - begins_[worker]) +
         begin_of(worker + 1, last_slice) - begin_of(worker, last_slice);
}

std::uint64_t SampleOrder::share_of_steps(std::uint64_t worker, std::uint64_t count,
                                          std::uint64_t steps) const {
  const std::uint64_t share = share_of(worker, count);
  if (steps >= steps_for(count)) return share;
  const std::uint64_t size = begins_.empty() ? batch_size_ : begins_[worker + 1] - begins_[worker];
  return std::min(share, steps * size);
}

SampleOrder::SamplePlace SampleOrder::place_of(std::uint64_t count, std::uint64_t position) const {
  if (begins_.empty()) {
    const std::uint64_t index = position / workers_;
    return {position % workers_, index / batch_size_, index};
  }
  const std::uint64_t step = position / round_size_;
  const std::uint64_t slice = count - step * round_size_;
  const std::uint64_t at = position % round_size_;
  // The last worker whose part begins at or before the position; parts before it may be empty.
  std::uint64_t worker = 0;
  for (std::uint64_t last = workers_ - 1; worker < last;) {
    const std::uint64_t middle = worker + (last - worker + 1) / 2;
    if (begin_of(middle, slice) <= at)
      worker = middle;
    else
      last = middle - 1;
  }
  return {worker, step,
          step * (begins_[worker + 1] - begins_[worker]) + at - begin_of(worker, slice)};
}

std::vector<DealtSample> SampleOrder::left(std::span<const Taken> taken) const {
  STARLING_CHECK(taken.size() == workers_);
  std::vector<DealtSample> left;
  // Adds those of `count` samples that were not taken. The deal has `steps` steps before these
  // samples, in which a worker takes `samples_before(worker)` samples.
  const auto add = [&](std::uint64_t count, std::uint64_t steps, auto samples_before,
                       auto sample_at) {
    for (std::uint64_t position = 0; position < count; ++position) {
      const auto [worker, step, index] = place_of(count, position);
      if (steps + step >= taken[worker].steps &&
          samples_before(worker) + index >= taken[worker].samples)
        left.push_back(sample_at(position));
    }
  };
  add(
      leftover().size(), 0, [](std::uint64_t) { return std::uint64_t{0}; },
      [&](std::uint64_t position) { return leftover()[position]; });
  for (std::uint64_t epoch = first_unfinished_epoch(taken); epoch < first_new_epoch(taken);
       ++epoch) {
    const std::uint64_t before = epoch - first_epoch_;
    add(
        samples_, leftover_steps_ + before * steps_per_epoch_,
        [&](std::uint64_t worker) {
          return share_of(worker, leftover_size_) + before * share_of(worker, samples_);
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
  // Returns how many samples of its part of `count` samples a worker has not taken, if it has taken
  // those of the part's first `steps` steps, and at least the first `samples` samples of the part.
  const auto left_of = [&](std::uint64_t worker, std::uint64_t count, std::uint64_t steps,
                           std::uint64_t samples) {
    const std::uint64_t share = share_of(worker, count);
    return share - std::max(share_of_steps(worker, count, steps), std::min(share, samples));
  };
  const std::uint64_t first = first_unfinished_epoch(taken);
  const std::uint64_t end = first_new_epoch(taken);
  for (std::uint64_t worker = 0; worker < taken.size(); ++worker) {
    const auto& [steps, samples] = taken[worker];
    const std::uint64_t leftover_share = share_of(worker, leftover_size_);
    const std::uint64_t share = share_of(worker, samples_);
    left += left_of(worker, leftover_size_, steps, samples);
    for (std::uint64_t epoch = first; epoch < end; ++epoch) {
      const std::uint64_t before = epoch - first_epoch_;
      left += left_of(worker, samples_,
                      saturating_difference(steps, leftover_steps_ + before * steps_per_epoch_),
                      saturating_difference(samples, leftover_share + before * share));
    }
  }
  return left;
}

std::uint64_t SampleOrder::first_new_epoch(std::span<const Taken> taken) const {
  std::uint64_t begun = 0;
  for (std::uint64_t worker = 0; worker < taken.size(); ++worker) {
    const std::uint64_t steps = saturating_difference(taken[worker].steps, leftover_steps_);
    const std::uint64_t samples =
        saturating_difference(taken[worker].samples, share_of(worker, leftover_size_));
    const std::uint64_t share = std::max<std::uint64_t>(1, share_of(worker, samples_));
    begun = std::max(
        {begun, (steps + steps_per_epoch_ - 1) / steps_per_epoch_, (samples + share - 1) / share});
  }
  return first_epoch_ + begun;
}

std::uint64_t SampleOrder::first_unfinished_epoch(std::span<const Taken> taken) const {
  std::uint64_t whole = UINT64_MAX;
  for (std::uint64_t worker = 0; worker < taken.size(); ++worker) {
    const std::uint64_t steps = saturating_difference(taken[worker].steps, leftover_steps_);
    const std::uint64_t samples =
        saturating_difference(taken[worker].samples, share_of(worker, leftover_size_));
    const std::uint64_t share = share_of(worker, samples_);
    if (share > 0) whole = std::min(whole, std::max(steps / steps_per_epoch_, samples / share));
  }
  return first_epoch_ + whole;
}

Permutation SampleOrder::order_of(std::uint64_t epoch) const {
  return {samples_, Random::stream(seed_, order_stream, epoch)()};
}

SampleOrder first_order(std::uint64_t samples, std::uint64_t workers, std::uint64_t batch,
                        bool dynamic, std::uint64_t seed, std::span<const FormerDeal> former) {
  if (dynamic) return {samples, divide_batch(batch, workers), seed, true, former};
  return {samples, workers, batch, seed, true, former};
}

std::vector<FormerDeal> deals_after(std::span<const FormerDeal> former, const SampleOrder& order,
                                    FormerDeal last) {
  // A deal of which nobody has taken anything need not be remembered.
  if (std::ranges::count(last.taken, Taken{}) == std::ssize(last.taken))
    return {former.begin(), former.end()};
  last.first_epoch = order.first_epoch_;
  const auto leftover_share = [&](std::uint64_t worker) {
    return order.share_of(worker, order.leftover_size_);
  };
  bool has_leftover = false;
  for (std::uint64_t worker = 0; worker < last.taken.size(); ++worker)
    has_leftover = has_leftover || (last.taken[worker].steps < order.leftover_steps_ &&
                                    last.taken[worker].samples < leftover_share(worker));
  std::vector<FormerDeal> deals;
  if (has_leftover) {
    deals.assign(former.begin(), former.end());
  } else {
    // All workers have taken what was left before, so it does not matter how that was dealt.
    for (std::uint64_t worker = 0; worker < last.taken.size(); ++worker) {
      Taken& taken = last.taken[worker];
      taken.steps = saturating_difference(taken.steps, order.leftover_steps_);
      taken.samples = saturating_difference(taken.samples, leftover_share(worker));
    }
  }
  deals.push_back(std::move(last));
  return deals;
}

Result<void> check_deals(std::span<const FormerDeal> former, std::uint64_t samples) {
  if (former.size() > deals_max)
    return Error{"the workers have changed " + std::to_string(former.size()) +
                 " times in one epoch; valid: up to " + std::to_string(deals_max)};
  std::uint64_t leftover_size = 0;
  std::uint64_t epoch = former.empty() ? 0 : former.front().first_epoch;
  for (const FormerDeal& deal : former) {
    if (!deal.sizes.empty() &&
        (deal.batch != 0 || deal.sizes.size() != deal.taken.size() || !are_valid(deal.sizes)))
      return Error{
          "samples were dealt to " + std::to_string(deal.taken.size()) + " workers in " +
          std::to_string(deal.sizes.size()) +
          " sizes of batches; valid: one for each worker, each at least 1, together up to " +
          std::to_string(round_size_max)};
    if ((deal.batch == 0 && deal.sizes.empty()) || deal.taken.empty())
      return Error{"samples were dealt to " + std::to_string(deal.taken.size()) +
                   " workers in batches of " + std::to_string(deal.batch) +
                   "; valid: at least 1 of each"};
    if (deal.first_epoch != epoch || epoch > epoch_max)
      return Error{
          "a former deal begins with epoch " + std::to_string(deal.first_epoch) + "; valid: " +
          (epoch > epoch_max ? "up to " + std::to_string(epoch_max)
                             : std::to_string(epoch) +
                                   ", the first epoch that the deal before it has not begun")};
    std::uint64_t most = 0;
    for (const Taken& taken : deal.taken) most = std::max({most, taken.steps, taken.samples});
    const SampleOrder order{samples,
                            {deal.taken.size(), deal.batch, deal.sizes},
                            0,
                            false,
                            deal.first_epoch,
                            nullptr,
                            leftover_size};
    if (most >= count_max || order.first_new_epoch(deal.taken) > epoch_max)
      return Error{"a worker has taken " + std::to_string(most) +
                   " steps or samples, more than any job takes"};
    epoch = order.first_new_epoch(deal.taken);
    const std::uint64_t from = std::min(order.first_unfinished_epoch(deal.taken), epoch);
    if (epoch - from > epochs_apart_max)
      return Error{"the workers are " + std::to_string(epoch - from) +
                   " epochs apart; valid: up to " + std::to_string(epochs_apart_max)};
    leftover_size = order.count_left(deal.taken);
    if (leftover_size > epochs_apart_max * samples)
      return Error{std::to_string(leftover_size) + " samples are left; valid: up to " +
                   std::to_string(epochs_apart_max * samples)};
  }
  return {};
}

}  // namespace starling::models
