/// A test fixture with the Membership of one node. It records the messages that the node sends, and
/// fires the timers that it sets. The tests play the other nodes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "starling/engine/core/membership/membership.hpp"

namespace starling::core {

using namespace std::chrono_literals;

inline constexpr NodeId self_id = 10'000;

/// Returns the record of a node with 2 workers. Each id has its own address and name.
inline NodeRecord record(NodeId id, std::uint64_t incarnation = 0,
                         NodeState state = NodeState::alive) {
  return {id, "host:" + std::to_string(id), "m" + std::to_string(id), 2, incarnation, state};
}

class MembershipTest : public testing::Test {
 protected:
  MembershipTest() { start_with({}); }

  /// Starts the node anew, at time 0.
  void start_with(MembershipOptions options) {
    options.self = record(self_id);
    options_ = options;
    membership_.emplace(options, 7);
    now_ = 0ms;
    effects_.clear();
    timers_.clear();
    membership_->start({now_, random_, effects_});
  }

  /// Delivers a message to the node.
  void receive(NodeId from, MembershipMessage::Body body = Gossip{},
               std::vector<NodeUpdate> updates = {}) {
    receive({record(from), std::move(body), std::move(updates)});
  }
  void receive(const MembershipMessage& message) {
    membership_->on({now_, random_, effects_}, message);
  }

  /// Advances the time by `duration`, and fires each timer when it is due.
  void advance(Time duration) {
    const Time end = now_ + duration;
    for (collect_timers(); !timers_.empty() && *timers_.begin() <= end; collect_timers()) {
      now_ = std::max(now_, *timers_.begin());
      timers_.erase(timers_.begin());
      membership_->on_timer({now_, random_, effects_});
    }
    now_ = end;
  }
  /// Advances the time by `duration`, but fires no timers, as if the node did not run.
  void advance_without_timers(Time duration) { now_ += duration; }

  /// Returns the messages with such a body that the node has sent since clear_effects().
  template <class Body>
  [[nodiscard]] std::vector<MembershipSend> sent() const {
    std::vector<MembershipSend> found;
    for (const auto& effect : effects_)
      if (const auto* send = std::get_if<MembershipSend>(&effect))
        if (std::holds_alternative<Body>(send->message.body)) found.push_back(*send);
    return found;
  }
  template <class Body>
  [[nodiscard]] std::vector<MembershipSend> sent_to(NodeId id) const {
    auto all = sent<Body>();
    std::erase_if(all, [&](const auto& send) { return send.address != record(id).address; });
    return all;
  }
  /// Returns the records of the NodeChanged effects since clear_effects().
  [[nodiscard]] std::vector<NodeRecord> changes() const {
    std::vector<NodeRecord> found;
    for (const auto& effect : effects_)
      if (const auto* changed = std::get_if<NodeChanged>(&effect)) found.push_back(changed->record);
    return found;
  }
  template <class Effect>
  [[nodiscard]] bool has_effect() const {
    return std::ranges::any_of(
        effects_, [](const auto& effect) { return std::holds_alternative<Effect>(effect); });
  }
  /// Drops the recorded effects. Timers stay set.
  void clear_effects() {
    collect_timers();
    effects_.clear();
  }
  /// Returns the state of a node as this node knows it; nullopt if this node does not know it.
  [[nodiscard]] std::optional<NodeState> state(NodeId id) const {
    const NodeEntry* entry = membership_->nodes().find(id);
    if (entry == nullptr) return std::nullopt;
    return entry->record.state;
  }
  /// Delivers the answers of node `id` to all pings sent to it since clear_effects().
  void answer_as(NodeId id) {
    for (const auto& send : sent_to<Ping>(id))
      receive(id, PingAck{std::get<Ping>(send.message.body).sequence});
  }

  MembershipOptions options_;
  std::optional<Membership> membership_;
  Random random_{1};
  Time now_{};
  std::vector<MembershipEffect> effects_;

 private:
  /// Moves the timers from the effects to `timers_`.
  void collect_timers() {
    std::erase_if(effects_, [&](const auto& effect) {
      if (const auto* timer = std::get_if<SetTimer>(&effect)) timers_.insert(timer->at);
      return std::holds_alternative<SetTimer>(effect);
    });
  }

  std::multiset<Time> timers_;
};

}  // namespace starling::core
