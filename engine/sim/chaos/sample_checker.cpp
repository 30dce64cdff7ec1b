#include "starling/engine/sim/chaos/sample_checker.hpp"

#include <algorithm>

namespace starling::sim {

std::string SampleChecker::on_compute(std::size_t incarnation_index, core::MemberId worker,
                                      const core::Compute& compute) {
  const core::Step step = compute.step;
  const core::WorkShare& share = compute.share;
  std::vector<models::DealtSample>& batch = batches_[{incarnation_index, step}];
  if (share.taken) {
    share.order->batch_after(share.index, *share.taken, batch);
    if (batch.size() > compute.samples_max) batch.resize(compute.samples_max);
    const auto last = last_.find(incarnation_index);
    std::uint64_t expected = 0;
    if (last != last_.end() && last->second.share.order == share.order)
      expected = *last->second.share.taken + batch_size(incarnation_index, last->second.step);
    last_[incarnation_index] = {step, share};
    if (*share.taken != expected)
      return "worker " + std::to_string(worker) + " goes on after " + std::to_string(*share.taken) +
             " samples of its part, and has taken " + std::to_string(expected);
    return {};
  }
  if (share.order)
    share.order->batch(share.index, step - share.first_step, batch);
  else
    dealer_.order_of(dealer_.deal()).batch(worker, step, batch);
  return {};
}

std::optional<std::uint64_t> SampleChecker::expected(const core::Deal& deal,
                                                     std::size_t index) const {
  if (!options_.epochs || deal.workers.empty()) return std::nullopt;
  const models::SampleOrder order = dealer_.order_of(deal);
  return options_.by_samples ? order.samples_until(index, *options_.epochs)
                             : order.steps_until(*options_.epochs);
}

std::string SampleChecker::why_not_once(const std::vector<core::Step>& held, const core::Deal& deal,
                                        const std::vector<models::Taken>& taken,
                                        std::size_t ended) const {
  std::vector<models::DealtSample> all;
  std::size_t incarnation_index = 0;
  core::Step steps = 0;
  for (const auto& [key, batch] : batches_) {
    if (std::exchange(incarnation_index, key.first) != key.first) steps = 0;
    if (steps++ < held[incarnation_index]) all.insert(all.end(), batch.begin(), batch.end());
  }
  std::uint64_t epochs = 0;
  if (!deal.workers.empty()) {
    const models::SampleOrder order = dealer_.order_of(deal);
    const auto left = order.left(taken);
    all.insert(all.end(), left.begin(), left.end());
    epochs = order.first_new_epoch(taken);
  }
  std::ranges::sort(all);
  const auto name = [](models::DealtSample dealt) {
    return "sample " + std::to_string(dealt.sample) + " of epoch " + std::to_string(dealt.epoch);
  };
  const auto twice = std::ranges::adjacent_find(all);
  if (twice != all.end()) return name(*twice) + " was taken twice";
  const std::uint64_t lost_max = ended * options_.batch;
  if (!deal.workers.empty() && all.size() + lost_max < epochs * options_.samples)
    return std::to_string(epochs * options_.samples - all.size()) + " samples of " +
           std::to_string(epochs) + " epochs were lost with " + std::to_string(ended) +
           " incarnations; valid: up to " + std::to_string(lost_max);
  return {};
}

}  // namespace starling::sim
