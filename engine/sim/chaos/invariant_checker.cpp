#include "starling/engine/sim/chaos/invariant_checker.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "starling/barrier/barrier.hpp"
#include "starling/base/text.hpp"

namespace starling::sim {
using core::Step;

InvariantChecker::InvariantChecker(const Scenario& scenario, const core::DealOptions& deal)
    : scenario_(scenario),
      oracle_(make_oracle(scenario.exchange)),
      samples_(deal),
      nodes_(nodes_max),
      epochs_(1),
      acknowledged_(incarnations_max * scenario.ranges),
      permissions_(incarnations_max) {
  for (NodeState& node_state : nodes_) node_state.checked_ranges.resize(scenario.ranges);
}

std::optional<std::size_t> InvariantChecker::on_incarnation_started(core::Member member,
                                                                    const MemberCore* core) {
  if (incarnations_.size() == incarnations_max) return std::nullopt;
  NodeState& node_state = nodes_[member.id];
  node_state = {.core = core, .incarnation_index = incarnations_.size()};
  node_state.checked_ranges.resize(scenario_.ranges);
  incarnations_.push_back({.member = member});
  return node_state.incarnation_index;
}

void InvariantChecker::on_incarnation_ended(NodeId id) { nodes_[id].core = nullptr; }

void InvariantChecker::report_violation(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

std::string InvariantChecker::incarnation_name(std::size_t incarnation_index) const {
  const core::Member& member = incarnations_[incarnation_index].member;
  return std::to_string(member.id) + " (incarnation " + std::to_string(member.incarnation) + ")";
}

std::optional<std::size_t> InvariantChecker::incarnation_index_of(
    NodeId id, core::Incarnation incarnation) const {
  for (std::size_t incarnation_index = incarnations_.size(); incarnation_index-- > 0;)
    if (incarnations_[incarnation_index].member.id == id &&
        incarnations_[incarnation_index].member.incarnation == incarnation)
      return incarnation_index;
  return std::nullopt;
}

void InvariantChecker::on_event(NodeId id) {
  NodeState& node_state = nodes_[id];
  if (node_state.core == nullptr || !node_state.core->configuration()) return;
  node_state.previous_configuration =
      std::exchange(node_state.configuration, node_state.core->configuration());
  if (node_state.core->configuration()->epoch != node_state.epoch) on_configuration(node_state);
  const bool is_member = node_state.core->state() == MemberCore::State::member;
  // A worker may make a step in the event in which its member is excluded.
  if (std::exchange(node_state.is_member, is_member) || is_member) follow_worker(id, node_state);
  if (!is_member) return;
  const core::Worker* worker = node_state.core->role<core::Training>().worker();
  if (worker != nullptr && worker->is_held() && !node_state.held_since)
    node_state.held_since = epoch_of_pass(node_state);
  for (core::RangeId r = 0; r < node_state.checked_ranges.size(); ++r) {
    std::optional<ExchangeOracle::Version>& checked = node_state.checked_ranges[r];
    if (oracle_->values(*node_state.core, r).empty()) {
      checked.reset();
      continue;
    }
    const ExchangeOracle::Version now = oracle_->version(*node_state.core, r);
    if (checked == now) continue;
    checked = now;
    const bool is_holder = is_full_holder(id, r);
    check_range(id, r, is_holder);
    if (is_holder) check_round(id, r);
  }
}

/// Called when a node is in another epoch than before. Checks that each epoch has one
/// configuration, and that no node goes back to an older epoch.
void InvariantChecker::on_configuration(NodeState& node_state) {
  const auto& adopted = node_state.core->configuration();
  if (adopted->epoch < node_state.epoch) report_violation("a node has gone back to an older epoch");
  node_state.epoch = adopted->epoch;
  if (adopted->epoch >= epochs_.size()) {
    epochs_.resize(adopted->epoch + 1);
    std::erase_if(proposed_, [&](const auto& value) { return value->epoch <= adopted->epoch; });
  }
  auto& known = epochs_[adopted->epoch];
  if (!known) known = adopted;
  if (known != adopted && *known != *adopted)
    report_violation("two configurations of epoch " + std::to_string(adopted->epoch));
}

/// Returns true if a worker of another node has begun and not ended. Does not count a worker whose
/// answer in the last draw of the node's own worker said that it had not begun.
bool InvariantChecker::is_other_running(NodeId id, const core::Configuration& configuration) const {
  const auto said_not_begun = [&](const AskedWorker& asked) {
    return asked.answer && asked.answer->step == core::not_begun;
  };
  return std::ranges::any_of(configuration.members, [&](const core::Member& member) {
    const auto incarnation_index = incarnation_index_of(member.id, member.incarnation);
    if (!member.works || member.id == id || !incarnation_index) return false;
    if (!incarnations_[*incarnation_index].begun || incarnations_[*incarnation_index].done)
      return false;
    const auto& all = nodes_[id].draw.asked;
    const auto asked = std::ranges::find(all, *incarnation_index, &AskedWorker::incarnation_index);
    return asked == all.end() || !said_not_begun(*asked);
  });
}

/// Records the worker's step after an event. If it has finished a step, checks that all ranges hold
/// the step's update.
void InvariantChecker::follow_worker(NodeId id, NodeState& node_state) {
  const core::Worker* worker = node_state.core->role<core::Training>().worker();
  if (worker == nullptr || !worker->begun()) return;
  IncarnationProgress& incarnation = incarnations_[node_state.incarnation_index];
  incarnation.had_begun = incarnation.begun;
  if (!incarnation.begun) {
    incarnation.begun = true;
    incarnation.first_step = incarnation.reached = worker->step();
    if (worker->options().joins && !worker->is_done()) expect_entry(id, *worker);
  }
  if (!incarnation.done && worker->is_done())
    incarnation.came_late = worker->options().joins && worker->dealt_taken().value_or(0) == 0 &&
                            !is_other_running(id, *node_state.configuration);
  incarnation.done = worker->is_done();
  incarnation.finished = node_state.core->role<core::Training>().is_done();
  for (core::RangeId r = 0; !oracle_->has_whole_updates() && r < scenario_.ranges; ++r)
    expect_held(node_state.incarnation_index, r, oracle_->step_written(*node_state.core));
  if (worker->step() == incarnation.reached) return;
  if (worker->step() != incarnation.reached + 1)
    report_violation("worker " + std::to_string(id) + " has skipped a step");
  incarnation.reached = worker->step();
  ++steps_;
  for (core::RangeId r = 0; oracle_->has_whole_updates() && r < scenario_.ranges; ++r)
    expect_held(node_state.incarnation_index, r, incarnation.reached);
}

const InvariantChecker::MemberCore* InvariantChecker::full_owner(
    core::RangeId range, const core::RangeOwner& owner) const {
  const MemberCore* core = nodes_[owner.id].core;
  if (core == nullptr || core->state() != MemberCore::State::member) return nullptr;
  if (!latest()->contains(owner.id, core->self().incarnation)) return nullptr;
  const auto known = holders(*core->configuration(), range);
  const auto self = std::ranges::find(known, owner.id, &core::RangeOwner::id);
  if (self == known.end() || self->since != owner.since) return nullptr;
  return oracle_->is_full(*core, range) ? core : nullptr;
}

bool InvariantChecker::is_full_holder(NodeId id, core::RangeId range) const {
  const auto all = holders(*latest(), range);
  const auto holder = std::ranges::find(all, id, &core::RangeOwner::id);
  return holder != all.end() && full_owner(range, *holder) != nullptr;
}

/// Counts the steps of an incarnation whose updates a node has applied to a range, or keeps until
/// their round.
Step InvariantChecker::count_held(const MemberCore& core, std::size_t incarnation_index,
                                  core::RangeId range) const {
  const IncarnationProgress& incarnation = incarnations_[incarnation_index];
  return oracle_->count_held(core, range, incarnation_index, incarnation.member,
                             incarnation.first_step);
}

/// Records that the push of `step` of the incarnation's worker was acknowledged, and checks that
/// every full owner holds it.
void InvariantChecker::expect_held(std::size_t incarnation_index, core::RangeId range, Step step) {
  Step& known = acknowledged(incarnation_index, range);
  if (step <= known || !incarnations_[incarnation_index].begun) return;
  known = step;
  // If updates are not whole, only ledgers show which steps a node holds. A ledger has only the
  // last incarnation of a worker, and an earlier incarnation may learn late what was acknowledged.
  const core::Member& worker = incarnations_[incarnation_index].member;
  if (!oracle_->has_whole_updates() && !latest()->contains(worker.id, worker.incarnation)) return;
  std::size_t count = 0;
  for (const core::RangeOwner& owner : holders(*latest(), range)) {
    const MemberCore* core = full_owner(range, owner);
    if (core == nullptr) continue;
    ++count;
    if (count_held(*core, incarnation_index, range) + steps_ahead(incarnation_index, owner.id) <
        step - incarnations_[incarnation_index].first_step)
      report_violation("step " + std::to_string(step) + " of worker " +
                       incarnation_name(incarnation_index) +
                       " was acknowledged and is not in range " + std::to_string(range) +
                       " at node " + std::to_string(owner.id));
  }
  if (count == 0 && !scenario_.exceeds_fault_budget && !latest()->has_lost_range())
    report_violation("range " + std::to_string(range) + " has no full owner");
}

/// Returns how many of the last steps of an incarnation's worker a node may lack.
Step InvariantChecker::steps_ahead(std::size_t incarnation_index, NodeId id) const {
  return nodes_[id].incarnation_index == incarnation_index ? oracle_->own_steps_unread()
                                                           : oracle_->steps_ahead();
}

/// Checks that a holder's copy of a range is equal to those of all holders that are at its round.
void InvariantChecker::check_round(NodeId id, core::RangeId range) {
  const MemberCore& core = *nodes_[id].core;
  const auto round = oracle_->round(core);
  if (!round) return;
  for (const core::RangeOwner& owner : holders(*latest(), range)) {
    const MemberCore* other = full_owner(range, owner);
    if (other == nullptr || oracle_->round(*other) != round) continue;
    const std::string_view what = oracle_->difference(core, *other, range);
    if (!what.empty())
      report_violation("range " + std::to_string(range) + " differs at nodes " +
                       std::to_string(id) + " and " + std::to_string(owner.id) + " after round " +
                       std::to_string(*round) + " in " + std::string{what});
  }
}

/// Checks that a range at a node holds no step twice. If `must_hold`, also checks that it holds
/// every acknowledged step.
void InvariantChecker::check_range(NodeId id, core::RangeId range, bool must_hold) {
  const auto value = oracle_->values(*nodes_[id].core, range);
  if (oracle_->has_means()) expect_means(id, range, value);
  if (!oracle_->has_whole_updates()) return;
  for (std::size_t incarnation_index = 0; incarnation_index < incarnations_.size();
       ++incarnation_index) {
    const auto count = static_cast<Step>(value[2 * incarnation_index]);
    const IncarnationProgress& incarnation = incarnations_[incarnation_index];
    if (count == 0 && acknowledged(incarnation_index, range) == 0) continue;
    if (value[2 * incarnation_index + 1] != sum_of_steps(incarnation.first_step, count))
      report_violation("range " + std::to_string(range) + " at node " + std::to_string(id) +
                       " does not hold each step of worker " + incarnation_name(incarnation_index) +
                       " once");
    if (must_hold && incarnation.first_step +
                             count_held(*nodes_[id].core, incarnation_index, range) +
                             steps_ahead(incarnation_index, id) <
                         acknowledged(incarnation_index, range))
      report_violation("range " + std::to_string(range) + " at node " + std::to_string(id) +
                       " has lost step " + std::to_string(acknowledged(incarnation_index, range)) +
                       " of worker " + incarnation_name(incarnation_index));
  }
}

/// Checks that a mean has no more updates of a worker than the worker has made, including the one
/// that does not count yet.
void InvariantChecker::expect_means(NodeId id, core::RangeId range, std::span<const double> value) {
  constexpr double rounding = 1e-9;
  for (std::size_t incarnation_index = 0; incarnation_index < incarnations_.size();
       ++incarnation_index) {
    const IncarnationProgress& incarnation = incarnations_[incarnation_index];
    const auto made = static_cast<double>(
        incarnation.begun ? incarnation.reached - incarnation.first_step + 1 : 0);
    if (value[2 * incarnation_index] < -rounding || value[2 * incarnation_index] > made + rounding)
      report_violation("range " + std::to_string(range) + " at node " + std::to_string(id) +
                       " has " + print_number(value[2 * incarnation_index]) +
                       " updates of worker " + incarnation_name(incarnation_index) +
                       ", which has made " + print_number(made));
  }
}

// --- messages ------------------------------------------------------------------------------------

void InvariantChecker::on_dispatch(NodeId id, const core::Envelope& envelope) {
  if (!envelope.packet.payload || !is_new(nodes_[id], envelope)) return;
  std::visit([&](const auto& message) { check_message(id, envelope, message); },
             **envelope.packet.payload);
}

bool InvariantChecker::is_new(NodeState& node_state, const core::Envelope& envelope) {
  const std::uint64_t sequence = envelope.packet.sequence;
  if (sequence == 0) return true;
  SentSequences& sent =
      node_state.sent[2 * envelope.to + static_cast<std::size_t>(envelope.traffic_class)];
  if (envelope.packet.to != sent.incarnation)
    sent = {.incarnation = envelope.packet.to.value_or(0)};
  if (sequence > sent.last) {
    const std::uint64_t shift = sequence - sent.last;
    sent.earlier = shift < 64 ? sent.earlier << shift | std::uint64_t{1} << (shift - 1) : 0;
    sent.last = sequence;
    return true;
  }
  if (sequence == sent.last) return false;
  const std::uint64_t bit = sent.last - sequence - 1;
  return bit < 64 &&
         (std::exchange(sent.earlier, sent.earlier | std::uint64_t{1} << bit) >> bit) % 2 == 0;
}

void InvariantChecker::expect_primary(NodeId id, core::RangeId range, core::Epoch owner_epoch,
                                      const char* action) {
  const core::Configuration* configuration = configuration_of(owner_epoch);
  if (configuration == nullptr || configuration->ranges[range].owners.empty() ||
      configuration->ranges[range].owners.front().id != id)
    report_violation("node " + std::to_string(id) + " " + action + " in range " +
                     std::to_string(range) + " and is not its primary in epoch " +
                     std::to_string(owner_epoch));
}

void InvariantChecker::check_message(NodeId id, const core::Envelope& envelope,
                                     const core::Ack& ack) {
  expect_primary(id, ack.range, ack.owner_epoch, "acknowledges");
  if (const auto incarnation_index = incarnation_index_of(envelope.to, ack.incarnation))
    expect_held(*incarnation_index, ack.range, ack.step);
}

void InvariantChecker::check_message(NodeId id, const core::Envelope& envelope,
                                     const core::Value& value) {
  expect_primary(id, value.range, envelope.epoch, "answers a read");
}

void InvariantChecker::check_message(NodeId id, const core::Envelope&,
                                     const core::Install& install) {
  expect_primary(id, install.state->state.range, install.owner_epoch, "begins an owner epoch");
}

void InvariantChecker::check_message(NodeId id, const core::Envelope&,
                                     const core::Forward& forward) {
  expect_primary(id, forward.range, forward.owner_epoch, "forwards a push");
}

void InvariantChecker::check_message(NodeId id, const core::Envelope&, const core::Held& held) {
  const core::Configuration* configuration = configuration_of(held.owner_epoch);
  if (configuration == nullptr || configuration->ranges[held.range].find(id) == nullptr)
    report_violation("node " + std::to_string(id) + " says that it holds range " +
                     std::to_string(held.range) + ", which it does not own");
}

void InvariantChecker::check_message(NodeId id, const core::Envelope& envelope,
                                     const core::StepQuery& query) {
  Draw& draw = nodes_[id].draw;
  const core::Configuration* configuration = configuration_of(envelope.epoch);
  if (draw.number > query.draw || configuration == nullptr) return;
  if (draw.number < query.draw) {
    draw = {};
    draw.number = query.draw;
    if (const core::Worker* worker = nodes_[id].core->role<core::Training>().worker()) {
      draw.step = worker->step();
      if (worker->gate() != nullptr && worker->gate()->tuner())
        draw.tuned_floor = barrier::floor(worker->gate()->tuner()->barrier(), draw.step);
    }
    draw.expected = barrier::seen_workers(scenario_.barrier, other_worker_count(*configuration));
  }
  const auto* other = configuration->find(envelope.to);
  const auto incarnation_index =
      other != nullptr ? incarnation_index_of(other->id, other->incarnation) : std::nullopt;
  if (incarnation_index && std::ranges::find(draw.asked, *incarnation_index,
                                             &AskedWorker::incarnation_index) == draw.asked.end())
    draw.asked.push_back(
        {*incarnation_index, incarnations_[*incarnation_index].begun, std::nullopt});
}

/// Checks that the answered step is not beyond the worker's. The answered step may be lower,
/// because the answer may be late: it waits behind other messages while the receiver acknowledges
/// nothing. So "has not begun" is false only if the worker had begun before it was asked.
void InvariantChecker::check_message(NodeId id, const core::Envelope& envelope,
                                     const core::StepAnswer& answer) {
  const std::size_t incarnation_index = nodes_[id].incarnation_index;
  const IncarnationProgress& incarnation = incarnations_[incarnation_index];
  if (answer.step != core::not_begun && !has_reached(incarnation_index, answer.step))
    report_violation("worker " + incarnation_name(incarnation_index) + " says that it is at " +
                     std::to_string(answer.step) + ", and is at " +
                     std::to_string(incarnation.reached));
  Draw& draw = nodes_[envelope.to].draw;
  if (draw.number != answer.draw) return;
  const auto asked =
      std::ranges::find(draw.asked, incarnation_index, &AskedWorker::incarnation_index);
  if (asked == draw.asked.end()) return;
  asked->answer = answer;
  if (answer.step == core::not_begun && asked->had_begun)
    report_violation("worker " + incarnation_name(incarnation_index) +
                     " says that it has not begun, and is at " +
                     std::to_string(incarnation.reached));
}

void InvariantChecker::check_message(NodeId, const core::Envelope&,
                                     const core::CouncilMessage& message) {
  const auto* request = std::get_if<core::Accept>(&message);
  if (request == nullptr || request->epoch < epochs_.size()) return;
  if (std::ranges::find(proposed_, request->value) == proposed_.end())
    proposed_.push_back(request->value);
}

}  // namespace starling::sim
