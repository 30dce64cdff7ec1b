#include "starling/engine/sim/chaos/invariant_checker.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "starling/barrier/barrier.hpp"

namespace starling::sim {
namespace {

using core::Step;

double sum_of_steps(Step first, Step count) {
  return static_cast<double>(count) * static_cast<double>(first) +
         static_cast<double>(count) * static_cast<double>(count + 1) / 2;
}

bool equal(const core::Slice& a, const core::Slice& b) {
  return std::ranges::equal(a.as<double>(), b.as<double>());
}

bool equal(const core::Push& a, const core::Push& b) {
  const auto head = [](const core::Push& push) {
    return std::tuple{push.worker,  push.incarnation,   push.step,
                      push.samples, push.samples_total, push.is_join};
  };
  return head(a) == head(b) && equal(a.update, b.update);
}

/// Returns what differs between two states of a range; nullptr if they are the same.
const char* difference(const core::RangeState& a, const core::RangeState& b) {
  if (!equal(a.value, b.value)) return "their values";
  if (!equal(a.slots, b.slots)) return "the optimiser's slots";
  if (a.updates != b.updates) return "the updates applied";
  if (a.samples != b.samples) return "the samples seen";
  if (a.round != b.round) return "their round";
  if (a.ledger != b.ledger) return "their ledgers";
  if (!std::ranges::equal(a.gathered, b.gathered,
                          [](const auto& x, const auto& y) { return equal(x, y); }))
    return "the gathered pushes";
  if (a.awaited != b.awaited) return "the awaited workers";
  return nullptr;
}

}  // namespace

InvariantChecker::InvariantChecker(const Scenario& scenario)
    : scenario_(scenario),
      nodes_(nodes_max),
      epochs_(1),
      acknowledged_(incarnations_max * scenario.ranges),
      permissions_(incarnations_max) {
  for (NodeState& node_state : nodes_) node_state.seen.resize(scenario.ranges);
}

std::optional<std::size_t> InvariantChecker::on_incarnation_started(core::Member member,
                                                                    const MemberCore* node) {
  if (incarnations_.size() == incarnations_max) return std::nullopt;
  NodeState& node_state = nodes_[member.id];
  node_state = {.node = node, .slot = incarnations_.size()};
  node_state.seen.resize(scenario_.ranges);
  incarnations_.push_back({.member = member});
  return node_state.slot;
}

void InvariantChecker::on_incarnation_ended(NodeId id) { nodes_[id].node = nullptr; }

void InvariantChecker::violate(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

std::string InvariantChecker::incarnation_name(std::size_t slot) const {
  const core::Member& member = incarnations_[slot].member;
  return std::to_string(member.id) + " (incarnation " + std::to_string(member.incarnation) + ")";
}

std::optional<std::size_t> InvariantChecker::slot_of(NodeId id,
                                                     core::Incarnation incarnation) const {
  for (std::size_t slot = incarnations_.size(); slot-- > 0;)
    if (incarnations_[slot].member.id == id &&
        incarnations_[slot].member.incarnation == incarnation)
      return slot;
  return std::nullopt;
}

void InvariantChecker::on_event(NodeId id) {
  NodeState& node_state = nodes_[id];
  if (node_state.node == nullptr || !node_state.node->configuration()) return;
  node_state.former = std::exchange(node_state.configuration, node_state.node->configuration());
  if (node_state.node->configuration()->epoch != node_state.epoch) on_configuration(node_state);
  if (node_state.node->state() != MemberCore::State::member) return;
  follow_worker(id, node_state);
  const auto& replica = node_state.node->replica();
  for (core::RangeId r = 0; r < node_state.seen.size(); ++r) {
    CheckedRange& seen = node_state.seen[r];
    if (!replica.shard().holds(r)) {
      seen = {};
      continue;
    }
    const CheckedRange now{replica.owner_epoch(r), replica.shard().updates(r),
                           replica.is_in_sync(r)};
    if (now.owner_epoch == seen.owner_epoch && now.updates == seen.updates && now.full == seen.full)
      continue;
    seen = now;
    const auto* owner = latest()->ranges[r].find(id);
    check_range(id, r, owner != nullptr && full_owner(r, *owner) != nullptr);
  }
}

/// Checks that each epoch has one configuration, and that no node goes back to an older epoch.
void InvariantChecker::on_configuration(NodeState& node_state) {
  const auto& mine = node_state.node->configuration();
  if (mine->epoch < node_state.epoch) violate("a node has gone back to an older epoch");
  node_state.epoch = mine->epoch;
  if (mine->epoch >= epochs_.size()) {
    epochs_.resize(mine->epoch + 1);
    std::erase_if(proposed_, [&](const auto& value) { return value->epoch <= mine->epoch; });
  }
  auto& known = epochs_[mine->epoch];
  if (!known) known = mine;
  if (known != mine && *known != *mine)
    violate("two configurations of epoch " + std::to_string(mine->epoch));
}

void InvariantChecker::follow_worker(NodeId id, NodeState& node_state) {
  const core::Worker* worker = node_state.node->worker();
  if (worker == nullptr || !worker->begun()) return;
  IncarnationProgress& incarnation = incarnations_[node_state.slot];
  incarnation.had_begun = incarnation.begun;
  if (!incarnation.begun) {
    incarnation.begun = true;
    incarnation.first = incarnation.reached = worker->step();
  }
  incarnation.done = worker->done();
  if (worker->step() == incarnation.reached) return;
  if (worker->step() != incarnation.reached + 1)
    violate("worker " + std::to_string(id) + " has skipped a step");
  incarnation.reached = worker->step();
  ++steps_;
  for (core::RangeId r = 0; r < scenario_.ranges; ++r)
    expect_held(node_state.slot, r, incarnation.reached);
}

const InvariantChecker::MemberCore* InvariantChecker::full_owner(
    core::RangeId range, const core::RangeOwner& owner) const {
  const MemberCore* node = nodes_[owner.id].node;
  if (node == nullptr || node->state() != MemberCore::State::member) return nullptr;
  if (!latest()->contains(owner.id, node->self().incarnation)) return nullptr;
  const auto* self = node->configuration()->ranges[range].find(owner.id);
  if (self == nullptr || self->since != owner.since) return nullptr;
  return node->replica().is_in_sync(range) ? node : nullptr;
}

/// Counts the steps of an incarnation that a range holds, or has gathered for a later round.
Step InvariantChecker::count_held(const MemberCore& node, std::size_t slot,
                                  core::RangeId range) const {
  const auto& shard = node.replica().shard();
  auto count = static_cast<Step>(shard.value(range)[2 * slot]);
  if (shard.gathered(range).empty()) return count;
  const core::Member& member = incarnations_[slot].member;
  for (const core::Push& push : shard.gathered(range)[member.id])
    count += push.incarnation == member.incarnation && !push.update.empty() ? 1 : 0;
  return count;
}

/// Checks that every full owner holds `step` of `slot`, whose push was acknowledged.
void InvariantChecker::expect_held(std::size_t slot, core::RangeId range, Step step) {
  Step& known = acknowledged(slot, range);
  if (step <= known || !incarnations_[slot].begun) return;
  known = step;
  std::size_t holders = 0;
  for (const core::RangeOwner& owner : latest()->ranges[range].owners) {
    const MemberCore* node = full_owner(range, owner);
    if (node == nullptr) continue;
    ++holders;
    if (count_held(*node, slot, range) < step - incarnations_[slot].first)
      violate("step " + std::to_string(step) + " of worker " + incarnation_name(slot) +
              " was acknowledged and is not in range " + std::to_string(range) + " at node " +
              std::to_string(owner.id));
  }
  if (holders == 0 && !scenario_.beyond && !latest()->has_lost_range())
    violate("range " + std::to_string(range) + " has no full owner");
}

/// Checks that a range at a node holds no step twice and, if it `must_hold` the acknowledged steps,
/// that none is missing.
void InvariantChecker::check_range(NodeId id, core::RangeId range, bool must_hold) {
  const auto value = nodes_[id].node->replica().shard().value(range);
  for (std::size_t slot = 0; slot < incarnations_.size(); ++slot) {
    const auto count = static_cast<Step>(value[2 * slot]);
    const IncarnationProgress& incarnation = incarnations_[slot];
    if (count == 0 && acknowledged(slot, range) == 0) continue;
    if (value[2 * slot + 1] != sum_of_steps(incarnation.first, count))
      violate("range " + std::to_string(range) + " at node " + std::to_string(id) +
              " does not hold each step of worker " + incarnation_name(slot) + " once");
    if (must_hold &&
        incarnation.first + count_held(*nodes_[id].node, slot, range) < acknowledged(slot, range))
      violate("range " + std::to_string(range) + " at node " + std::to_string(id) +
              " has lost step " + std::to_string(acknowledged(slot, range)) + " of worker " +
              incarnation_name(slot));
  }
}

void InvariantChecker::expect_equal_replicas() {
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
    std::optional<core::RangeState> first;
    for (const core::RangeOwner& owner : latest()->ranges[r].owners) {
      const MemberCore* node = full_owner(r, owner);
      if (node == nullptr) {
        violate("range " + std::to_string(r) + " is not held by its owner " +
                std::to_string(owner.id));
        continue;
      }
      auto state = node->replica().shard().hand_over(r);
      if (const char* what = first ? difference(*first, state) : nullptr)
        violate("replicas of range " + std::to_string(r) + " differ in " + what);
      first = std::move(state);
      check_range(owner.id, r, true);
    }
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
    const std::uint64_t by = sequence - sent.last;
    sent.earlier = by < 64 ? sent.earlier << by | std::uint64_t{1} << (by - 1) : 0;
    sent.last = sequence;
    return true;
  }
  if (sequence == sent.last) return false;
  const std::uint64_t bit = sent.last - sequence - 1;
  return bit < 64 &&
         (std::exchange(sent.earlier, sent.earlier | std::uint64_t{1} << bit) >> bit) % 2 == 0;
}

void InvariantChecker::expect_primary(NodeId id, core::RangeId range, core::Epoch owner_epoch,
                                      const char* does) {
  const core::Configuration* configuration = configuration_of(owner_epoch);
  if (configuration == nullptr || configuration->ranges[range].owners.empty() ||
      configuration->ranges[range].owners.front().id != id)
    violate("node " + std::to_string(id) + " " + does + " in range " + std::to_string(range) +
            " and is not its primary in epoch " + std::to_string(owner_epoch));
}

void InvariantChecker::check_message(NodeId id, const core::Envelope& envelope,
                                     const core::Ack& ack) {
  expect_primary(id, ack.range, ack.owner_epoch, "acknowledges");
  if (const auto slot = slot_of(envelope.to, ack.incarnation))
    expect_held(*slot, ack.range, ack.step);
}

void InvariantChecker::check_message(NodeId id, const core::Envelope& envelope,
                                     const core::Value& value) {
  expect_primary(id, value.range, envelope.epoch, "answers a read");
}

void InvariantChecker::check_message(NodeId id, const core::Envelope&,
                                     const core::Install& install) {
  expect_primary(id, install.state->range, install.owner_epoch, "begins an owner epoch");
}

void InvariantChecker::check_message(NodeId id, const core::Envelope&,
                                     const core::Forward& forward) {
  expect_primary(id, forward.range, forward.owner_epoch, "forwards a push");
}

void InvariantChecker::check_message(NodeId id, const core::Envelope&, const core::Held& held) {
  const core::Configuration* configuration = configuration_of(held.owner_epoch);
  if (configuration == nullptr || configuration->ranges[held.range].find(id) == nullptr)
    violate("node " + std::to_string(id) + " says that it holds range " +
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
    draw.expected = barrier::seen_workers(scenario_.barrier, other_workers(*configuration));
  }
  const auto* other = configuration->find(envelope.to);
  const auto slot = other != nullptr ? slot_of(other->id, other->incarnation) : std::nullopt;
  if (slot && std::ranges::find(draw.asked, *slot, &Asked::slot) == draw.asked.end())
    draw.asked.push_back({*slot, std::nullopt});
}

/// Checks that the answer is not ahead of the worker; it may be behind, because it may be late.
void InvariantChecker::check_message(NodeId id, const core::Envelope& envelope,
                                     const core::StepAnswer& answer) {
  const std::size_t slot = nodes_[id].slot;
  const IncarnationProgress& incarnation = incarnations_[slot];
  if (answer.step == core::not_begun && incarnation.had_begun)
    violate("worker " + incarnation_name(slot) + " says that it has not begun, and is at " +
            std::to_string(incarnation.reached));
  if (answer.step != core::not_begun && !has_reached(slot, answer.step))
    violate("worker " + incarnation_name(slot) + " says that it is at " +
            std::to_string(answer.step) + ", and is at " + std::to_string(incarnation.reached));
  Draw& draw = nodes_[envelope.to].draw;
  if (draw.number != answer.draw) return;
  const auto asked = std::ranges::find(draw.asked, slot, &Asked::slot);
  if (asked != draw.asked.end()) asked->answered = answer.step;
}

void InvariantChecker::check_message(NodeId, const core::Envelope&,
                                     const core::CouncilMessage& message) {
  const auto* request = std::get_if<core::Accept>(&message);
  if (request == nullptr || request->epoch < epochs_.size()) return;
  if (std::ranges::find(proposed_, request->value) == proposed_.end())
    proposed_.push_back(request->value);
}

}  // namespace starling::sim
