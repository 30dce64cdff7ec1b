/// The functions of InvariantChecker that check a job that has ended, when nothing is in flight.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/engine/sim/chaos/invariant_checker.hpp"

namespace starling::sim {

using core::Step;

void InvariantChecker::expect_equal_replicas() {
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
    const MemberCore* previous = nullptr;
    const auto owners = holders(*latest(), r);
    std::size_t states = 0;
    for (const core::RangeOwner& owner : owners) {
      const MemberCore* core = full_owner(r, owner);
      if (core == nullptr) {
        report_violation("range " + std::to_string(r) + " is not held by its owner " +
                         std::to_string(owner.id));
        continue;
      }
      const std::string_view what =
          previous == nullptr ? std::string_view{} : oracle_->difference(*previous, *core, r);
      if (!what.empty())
        report_violation("replicas of range " + std::to_string(r) + " differ in " +
                         std::string{what});
      previous = core;
      if (oracle_->has_state(*core, r)) ++states;
      check_range(owner.id, r, true);
      if (oracle_->has_whole_updates()) expect_samples(owner.id, r);
    }
    // At least two holders have the state of the optimizer, so that it survives if one dies.
    if (states < std::min<std::size_t>(2, owners.size()))
      report_violation("only " + std::to_string(states) + " of the " +
                       std::to_string(owners.size()) + " holders of range " + std::to_string(r) +
                       " have the state of the optimizer");
    if (oracle_->has_push_sums()) expect_push_sums(r);
  }
}

/// Checks that a node counts for a range the samples of all updates that the range holds.
void InvariantChecker::expect_samples(NodeId id, core::RangeId range) {
  const auto values = oracle_->values(*nodes_[id].core, range);
  std::uint64_t samples = 0;
  for (std::size_t i = 0; i < incarnations_.size(); ++i)
    for (Step step = 0; step < static_cast<Step>(values[2 * i]); ++step)
      samples += samples_.batch_size(i, incarnations_[i].first_step + step);
  const std::uint64_t counted = oracle_->samples(*nodes_[id].core, range);
  if (counted != samples)
    report_violation("range " + std::to_string(range) + " at node " + std::to_string(id) +
                     " counts " + std::to_string(counted) + " samples, and holds updates of " +
                     std::to_string(samples));
}

/// Checks that the push-sum weights of all holders of the range add up to at most 1 for each
/// incarnation of a worker that has begun. If no worker has joined or left the job, checks that
/// they add up to exactly that, and that the holders' weighted values contain each update of each
/// worker once.
void InvariantChecker::expect_push_sums(core::RangeId range) {
  double weights = 0;
  std::vector<double> sums(2 * incarnations_.size());
  for (const core::RangeOwner& holder : holders(*latest(), range)) {
    const MemberCore* core = full_owner(range, holder);
    if (core == nullptr) continue;
    const double weight = oracle_->weight(*core, range);
    weights += weight;
    const auto values = oracle_->values(*core, range);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * values[i];
  }
  const auto begun =
      static_cast<double>(std::ranges::count(incarnations_, true, &IncarnationProgress::begun));
  const bool is_complete = incarnations_.size() == scenario_.workers && latest()->epoch > 0 &&
                           latest()->members.size() == scenario_.workers;
  const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-6 * (1 + std::abs(b)); };
  if (is_complete ? differ(weights, begun) : weights > begun + 1e-6)
    report_violation("the push-sum weights of range " + std::to_string(range) + " add up to " +
                     print_number(weights) + ", and " + print_number(begun) +
                     " workers have begun");
  for (std::size_t incarnation_index = 0; is_complete && incarnation_index < incarnations_.size();
       ++incarnation_index) {
    const IncarnationProgress& incarnation = incarnations_[incarnation_index];
    const Step count = incarnation.reached - incarnation.first_step;
    if (differ(sums[2 * incarnation_index], static_cast<double>(count)) ||
        differ(sums[2 * incarnation_index + 1], sum_of_steps(incarnation.first_step, count)))
      report_violation("range " + std::to_string(range) + " has " +
                       print_number(sums[2 * incarnation_index]) + " updates of worker " +
                       incarnation_name(incarnation_index) + ", which has made " +
                       std::to_string(count));
  }
}

void InvariantChecker::expect_all_steps() {
  for (const core::Member& member : latest()->members) {
    const std::size_t incarnation_index = nodes_[member.id].incarnation_index;
    const IncarnationProgress& incarnation = incarnations_[incarnation_index];
    if (member.works && incarnation.done && !incarnation.leaves &&
        incarnation.reached < scenario_.steps)
      report_violation("worker " + incarnation_name(incarnation_index) + " has ended after step " +
                       std::to_string(incarnation.reached) + " of " +
                       std::to_string(scenario_.steps));
  }
}

void InvariantChecker::expect_samples_taken_once() {
  std::vector<Step> held(incarnations_.size());
  // A ledger has only the last incarnation of a worker.
  for (std::size_t incarnation_index = 0;
       !oracle_->has_whole_updates() && incarnation_index < held.size(); ++incarnation_index)
    for (core::RangeId r = 0; r < scenario_.ranges; ++r)
      held[incarnation_index] = std::max(held[incarnation_index],
                                         acknowledged(incarnation_index, r) -
                                             std::min(acknowledged(incarnation_index, r),
                                                      incarnations_[incarnation_index].first_step));
  for (core::RangeId r = 0; r < scenario_.ranges; ++r)
    for (const core::RangeOwner& owner : holders(*latest(), r))
      if (const MemberCore* core = full_owner(r, owner))
        for (std::size_t incarnation_index = 0; incarnation_index < held.size();
             ++incarnation_index)
          held[incarnation_index] =
              std::max(held[incarnation_index], count_held(*core, incarnation_index, r));
  const core::Deal* deal = nullptr;
  std::map<core::MemberId, core::DealReport> reports;
  for (const core::Member& member : latest()->members) {
    if (nodes_[member.id].core == nullptr) return;
    const auto& training = nodes_[member.id].core->role<core::Training>();
    if (training.dealer() == nullptr) return;
    if (deal == nullptr || training.dealer()->deal().number > deal->number)
      deal = &training.dealer()->deal();
    core::DealReport& report = reports[member.id];
    report.deal = training.dealer()->deal();
    if (training.worker() != nullptr && training.dealer()->has_begun())
      report.taken = training.worker()->dealt_taken();
    report.progress = std::visit([](const auto& e) { return e.progress(); }, training.exchange());
  }
  if (deal == nullptr) return;
  // With push-sum, the updates of a dead worker are in the copies of the workers to which it sent
  // its weight. If these have died, too, any update of the dead worker may be lost, even if that
  // worker had finished. With other exchanges, a dead worker loses at most steps_lost() steps,
  // including the one that it was making.
  const std::size_t steps_lost = oracle_->has_push_sums() ? scenario_.steps : oracle_->steps_lost();
  const auto ended = static_cast<std::size_t>(
      std::ranges::count_if(incarnations_, [&](const IncarnationProgress& incarnation) {
        return incarnation.begun && (!incarnation.finished || oracle_->has_push_sums()) &&
               !latest()->contains(incarnation.member.id, incarnation.member.incarnation);
      }));
  const std::string why = samples_.why_not_once(
      held, *deal, samples_.dealer().taken_of(*deal, *latest(), reports), ended * steps_lost);
  if (!why.empty()) report_violation(why);
  for (const core::DealtWorker& dealt : deal->workers) {
    const auto expected =
        samples_.expected(*deal, static_cast<std::size_t>(&dealt - deal->workers.data()));
    // The members may have changed since the deal.
    const MemberCore* core = nodes_[dealt.id].core;
    if (core == nullptr || core->self().incarnation != dealt.incarnation) continue;
    const IncarnationProgress& incarnation = incarnations_[nodes_[dealt.id].incarnation_index];
    const std::uint64_t taken = reports[dealt.id].taken.value_or(0);
    // A worker that joins when the others have ended ends at once.
    if (expected && !incarnation.leaves && !incarnation.came_late && taken < *expected)
      report_violation("worker " + std::to_string(dealt.id) + " has ended after " +
                       std::to_string(taken) + " of its " + std::to_string(*expected) +
                       (samples_.counts_samples() ? " samples" : " steps") + " of the last deal");
  }
}

}  // namespace starling::sim
