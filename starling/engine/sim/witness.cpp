#include "starling/engine/sim/witness.hpp"

#include <algorithm>
#include <utility>

#include "starling/barrier/barrier.hpp"

namespace starling::sim {
namespace {

using core::Step;

double sum_of_steps(Step first, Step count) {
  return static_cast<double>(count) * static_cast<double>(first) +
         static_cast<double>(count) * static_cast<double>(count + 1) / 2;
}

}  // namespace

Witness::Witness(const Scenario& scenario)
    : scenario_(scenario),
      places_(nodes_max),
      epochs_(1),
      acknowledged_(lives_max * scenario.ranges),
      let_go_(lives_max) {
  for (Place& place : places_) place.seen.resize(scenario.ranges);
}

std::optional<std::size_t> Witness::on_birth(core::Member member, const Node* node) {
  if (lives_.size() == lives_max) return std::nullopt;
  Place& place = places_[member.id];
  place = {.node = node, .slot = lives_.size()};
  place.seen.resize(scenario_.ranges);
  lives_.push_back({.member = member});
  return place.slot;
}

void Witness::on_death(NodeId id) { places_[id].node = nullptr; }

void Witness::violate(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

std::string Witness::life_name(std::size_t slot) const {
  const core::Member& member = lives_[slot].member;
  return std::to_string(member.id) + " (life " + std::to_string(member.life) + ")";
}

std::optional<std::size_t> Witness::slot_of(NodeId id, core::Incarnation life) const {
  for (std::size_t slot = lives_.size(); slot-- > 0;)
    if (lives_[slot].member.id == id && lives_[slot].member.life == life) return slot;
  return std::nullopt;
}

void Witness::on_event(NodeId id) {
  Place& place = places_[id];
  if (place.node == nullptr || !place.node->configuration()) return;
  place.former = std::exchange(place.known, place.node->configuration());
  if (place.node->configuration()->epoch != place.epoch) on_configuration(place);
  if (place.node->state() != Node::State::member) return;
  follow_worker(id, place);
  const auto* replica = place.node->replica();
  if (replica == nullptr) return;
  for (core::RangeId r = 0; r < place.seen.size(); ++r) {
    Seen& seen = place.seen[r];
    const core::Ownership& ownership = place.node->configuration()->ranges[r];
    if (replica->is_primary(r) != (ownership.owners.front().id == id) ||
        (ownership.find(id) != nullptr) != (replica->view(r) == ownership.view))
      violate("node " + std::to_string(id) + " does not serve range " + std::to_string(r) +
              " as epoch " + std::to_string(place.epoch) + " says");
    if (!replica->shard().holds(r)) {
      seen = {};
      continue;
    }
    const Seen now{replica->view(r), replica->shard().updates(r), replica->is_full(r)};
    if (now.view == seen.view && now.updates == seen.updates && now.full == seen.full) continue;
    seen = now;
    const auto* owner = latest()->ranges[r].find(id);
    inspect(id, r, owner != nullptr && full_owner(r, *owner) != nullptr);
  }
}

/// One configuration an epoch, and every node follows them upwards.
void Witness::on_configuration(Place& place) {
  const auto& mine = place.node->configuration();
  if (mine->epoch < place.epoch) violate("a node has gone back to an older epoch");
  place.epoch = mine->epoch;
  if (mine->epoch >= epochs_.size()) {
    epochs_.resize(mine->epoch + 1);
    std::erase_if(proposed_, [&](const auto& value) { return value->epoch <= mine->epoch; });
  }
  auto& known = epochs_[mine->epoch];
  if (!known) known = mine;
  if (known != mine && *known != *mine)
    violate("two configurations of epoch " + std::to_string(mine->epoch));
}

void Witness::follow_worker(NodeId id, Place& place) {
  const core::Worker* worker = place.node->worker();
  if (worker == nullptr || !worker->begun()) return;
  Life& life = lives_[place.slot];
  if (!life.begun) {
    life.begun = true;
    life.first = life.reached = worker->step();
  }
  life.done = worker->done();
  if (worker->step() == life.reached) return;
  if (worker->step() != life.reached + 1)
    violate("worker " + std::to_string(id) + " has skipped a step");
  life.reached = worker->step();
  ++steps_;
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) expect_held(place.slot, r, life.reached);
}

const Witness::Node* Witness::full_owner(core::RangeId range, const core::RangeOwner& owner) const {
  const Node* node = places_[owner.id].node;
  if (node == nullptr || node->state() != Node::State::member || node->replica() == nullptr)
    return nullptr;
  if (!latest()->contains(owner.id, node->self().life)) return nullptr;
  const auto* self = node->configuration()->ranges[range].find(owner.id);
  if (self == nullptr || self->since != owner.since) return nullptr;
  return node->replica()->is_full(range) ? node : nullptr;
}

/// Steps of a life that are in a range, or wait for their round there.
Step Witness::count_held(const Node& node, std::size_t slot, core::RangeId range) const {
  const auto& shard = node.replica()->shard();
  auto count = static_cast<Step>(shard.value(range)[2 * slot]);
  if (shard.gathered(range).empty()) return count;
  const core::Member& member = lives_[slot].member;
  for (const core::Push& push : shard.gathered(range)[member.id])
    count += push.incarnation == member.life && !push.update.empty() ? 1 : 0;
  return count;
}

/// `slot` was told that its push is held: it must be, by every full owner.
void Witness::expect_held(std::size_t slot, core::RangeId range, Step step) {
  Step& known = acknowledged(slot, range);
  if (step <= known || !lives_[slot].begun) return;
  known = step;
  std::size_t holders = 0;
  for (const core::RangeOwner& owner : latest()->ranges[range].owners) {
    const Node* node = full_owner(range, owner);
    if (node == nullptr) continue;
    ++holders;
    if (count_held(*node, slot, range) < step - lives_[slot].first)
      violate("step " + std::to_string(step) + " of worker " + life_name(slot) +
              " was acknowledged and is not in range " + std::to_string(range) + " at node " +
              std::to_string(owner.id));
  }
  if (holders == 0 && !scenario_.beyond && !latest()->lost())
    violate("range " + std::to_string(range) + " has no full owner");
}

/// All that is in a range at a node: each step once, and where it `must_hold` them, none missing.
void Witness::inspect(NodeId id, core::RangeId range, bool must_hold) {
  const auto value = places_[id].node->replica()->shard().value(range);
  for (std::size_t slot = 0; slot < lives_.size(); ++slot) {
    const auto count = static_cast<Step>(value[2 * slot]);
    const Life& life = lives_[slot];
    if (count == 0 && acknowledged(slot, range) == 0) continue;
    if (value[2 * slot + 1] != sum_of_steps(life.first, count))
      violate("range " + std::to_string(range) + " at node " + std::to_string(id) +
              " does not hold each step of worker " + life_name(slot) + " once");
    if (must_hold &&
        life.first + count_held(*places_[id].node, slot, range) < acknowledged(slot, range))
      violate("range " + std::to_string(range) + " at node " + std::to_string(id) +
              " has lost step " + std::to_string(acknowledged(slot, range)) + " of worker " +
              life_name(slot));
  }
}

void Witness::on_dispatch(NodeId id, const core::Envelope& envelope) {
  if (!envelope.packet.payload) return;
  const core::Letter& letter = **envelope.packet.payload;
  const Place& place = places_[id];
  if (const auto* ack = std::get_if<core::Ack>(&letter)) {
    if (const auto slot = slot_of(envelope.to, ack->incarnation))
      expect_held(*slot, ack->range, ack->step);
  } else if (const auto* query = std::get_if<core::StepQuery>(&letter)) {
    Draw& draw = places_[id].draw;
    if (draw.number > query->draw) return;  // sent again
    const core::Configuration& known = *epochs_.at(envelope.epoch);
    if (draw.number < query->draw) {
      draw = {};
      draw.number = query->draw;
      draw.expected = barrier::observes(scenario_.barrier, others(known));
    }
    const auto* other = known.find(envelope.to);
    const auto slot = other != nullptr ? slot_of(other->id, other->life) : std::nullopt;
    if (slot && std::ranges::find(draw.asked, *slot, &Asked::slot) == draw.asked.end())
      draw.asked.push_back({*slot, std::nullopt});
  } else if (const auto* answer = std::get_if<core::StepAnswer>(&letter)) {
    Draw& draw = places_[envelope.to].draw;
    if (draw.number != answer->draw) return;
    const auto asked = std::ranges::find(draw.asked, place.slot, &Asked::slot);
    if (asked != draw.asked.end()) asked->told = answer->step;
  } else if (const auto* proceed = std::get_if<core::Proceed>(&letter)) {
    judge_proceed(*epochs_.at(envelope.epoch), envelope.to, proceed->step);
  } else if (const auto* accept = std::get_if<core::CouncilMessage>(&letter)) {
    if (const auto* wish = std::get_if<core::Accept>(accept); wish && wish->epoch >= epochs_.size())
      if (std::ranges::find(proposed_, wish->value) == proposed_.end())
        proposed_.push_back(wish->value);
  }
}

bool Witness::has_reached(std::size_t slot, Step floor) const {
  const Life& life = lives_[slot];
  return life.done || life.reached >= floor;
}

/// The worker of `id` goes on from `step`.
void Witness::on_plan(NodeId id, Step step) {
  const Life& life = lives_[places_[id].slot];
  if (step == life.first || scenario_.has_coordinator()) return;  // the first step is free
  judge_pass(id, step);
}

void Witness::judge_pass(NodeId id, Step step) {
  const auto floor = barrier::floor(scenario_.barrier, step);
  Place& place = places_[id];
  place.view.clear();
  if (barrier::always_passes(scenario_.barrier) || !floor || *floor == 0) return;
  const std::string why = why_not_pass(place.draw, *floor);
  // Whoever was alone for a moment needed no draw.
  const bool alone = others(*place.known) == 0 || (place.former && others(*place.former) == 0);
  if (!why.empty() && !alone)
    violate("worker " + std::to_string(id) + " has passed the barrier at step " +
            std::to_string(step) + why);
  if (!why.empty()) return;
  ++passes_;
  place.draw.used = true;
  for (const Asked& asked : place.draw.asked)
    if (asked.told != core::not_begun) place.view.push_back(asked.slot);
}

std::string Witness::why_not_pass(const Draw& draw, Step floor) const {
  if (draw.number == 0 || draw.used) return " without asking anyone";
  if (draw.asked.size() != draw.expected)
    return " after asking " + std::to_string(draw.asked.size()) + " others, not " +
           std::to_string(draw.expected);
  for (const Asked& asked : draw.asked)
    if (asked.told != core::not_begun && !has_reached(asked.slot, floor))
      return " though worker " + life_name(asked.slot) + " is at " +
             std::to_string(lives_[asked.slot].reached);
  return {};
}

/// Workers but one.
std::size_t Witness::others(const core::Configuration& configuration) {
  return static_cast<std::size_t>(
      std::ranges::count_if(configuration.members, &core::Member::works) - 1);
}

/// The coordinator lets `whom` go on from `step`.
void Witness::judge_proceed(const core::Configuration& known, NodeId whom, Step step) {
  auto& judged = let_go_[places_[whom].slot];
  if (judged && *judged >= step) return;  // sent again
  judged = step;
  const auto floor = barrier::floor(scenario_.barrier, step);
  if (barrier::always_passes(scenario_.barrier) || !floor || *floor == 0) return;
  std::size_t workers = 0;
  std::size_t on_pace = 0;
  for (const core::Member& member : known.members) {
    if (!member.works) continue;
    ++workers;
    const auto slot = slot_of(member.id, member.life);
    if (!slot || !lives_[*slot].begun || has_reached(*slot, *floor)) ++on_pace;
  }
  ++passes_;
  const std::size_t needed =
      scenario_.barrier.sample ? std::min(*scenario_.barrier.sample + 1, workers) : workers;
  if (on_pace < needed)
    violate("the coordinator lets a worker go on from step " + std::to_string(step) + " with " +
            std::to_string(on_pace) + " of " + std::to_string(workers) + " workers on pace");
}

void Witness::on_compute(NodeId id, const core::Compute& compute) {
  const Place& place = places_[id];
  const auto floor = barrier::floor(scenario_.barrier, compute.step);
  if (compute.step == lives_[place.slot].first || !floor || *floor == 0) return;
  if (barrier::always_passes(scenario_.barrier)) return;
  const auto judge = [&](std::size_t slot) {
    const Life& life = lives_[slot];
    const Step known = std::min(*floor, life.reached);
    if (!life.begun || life.first >= known) return;
    const auto due = static_cast<double>(known - life.first);
    for (const core::Value& value : compute.values)
      if (value.value.as<double>()[2 * slot] < due)
        violate("worker " + std::to_string(id) + " reads range " + std::to_string(value.range) +
                " for step " + std::to_string(compute.step + 1) + " without step " +
                std::to_string(*floor) + " of worker " + life_name(slot));
  };
  judge(place.slot);
  if (!scenario_.has_coordinator()) {
    for (const std::size_t slot : place.view) judge(slot);
  } else if (!scenario_.barrier.sample) {
    for (const core::Member& member : place.node->configuration()->members)
      if (const auto slot = slot_of(member.id, member.life)) judge(*slot);
  }
}

void Witness::expect_equal_copies() {
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
    std::optional<std::span<const double>> first;
    for (const core::RangeOwner& owner : latest()->ranges[r].owners) {
      const Node* node = full_owner(r, owner);
      if (node == nullptr) {
        violate("range " + std::to_string(r) + " is not held by its owner " +
                std::to_string(owner.id));
        continue;
      }
      const auto value = node->replica()->shard().value(r);
      if (first && !std::ranges::equal(*first, value))
        violate("copies of range " + std::to_string(r) + " differ");
      first = value;
      inspect(owner.id, r, true);
    }
  }
}

}  // namespace starling::sim
