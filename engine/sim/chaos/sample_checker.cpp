#include "starling/engine/sim/chaos/sample_checker.hpp"

#include <algorithm>

namespace starling::sim {

void SampleChecker::on_compute(std::size_t slot, core::MemberId worker, core::Step step,
                               const core::WorkShare& share) {
  std::vector<models::DealtSample>& batch = batches_[{slot, step}];
  if (share.order)
    share.order->batch(share.index, step - share.first_step, batch);
  else
    dealer_.order_of(dealer_.deal()).batch(worker, step, batch);
}

std::optional<std::uint64_t> SampleChecker::steps_wanted(const core::Deal& deal) const {
  if (!options_.epochs || deal.workers.empty()) return std::nullopt;
  return dealer_.order_of(deal).steps_until(*options_.epochs);
}

std::string SampleChecker::why_not_once(const std::vector<core::Step>& held, const core::Deal& deal,
                                        const std::vector<models::Taken>& taken,
                                        std::size_t ended) const {
  std::vector<models::DealtSample> all;
  std::size_t slot = 0;
  core::Step steps = 0;
  for (const auto& [key, batch] : batches_) {
    if (std::exchange(slot, key.first) != key.first) steps = 0;
    if (steps++ < held[slot]) all.insert(all.end(), batch.begin(), batch.end());
  }
  std::uint64_t epochs = 0;
  if (!deal.workers.empty()) {
    const models::SampleOrder order = dealer_.order_of(deal);
    const auto left = order.left(taken);
    all.insert(all.end(), left.begin(), left.end());
    epochs = order.epochs_begun(taken);
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
