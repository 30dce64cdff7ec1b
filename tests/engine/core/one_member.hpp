/// A test fixture with one member; it keeps the messages that the member sends and the timers that
/// it sets.
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

inline NodeRecord record(NodeId id, std::uint64_t incarnation = 0,
                         NodeState state = NodeState::alive) {
  return {id, "host:" + std::to_string(id), "m" + std::to_string(id), 2, incarnation, state};
}

class MembershipTest : public testing::Test {
 protected:
  MembershipTest() { make({}); }

  void make(MembershipOptions options) {
    options.self = record(self_id);
    options_ = options;
    member_.emplace(options, 7);
    now_ = 0ms;
    effects_.clear();
    timers_.clear();
    member_->start({now_, random_, effects_});
  }

  void receive(NodeId from, MembershipMessage::Body body = Gossip{},
               std::vector<NodeUpdate> updates = {}) {
    receive({record(from), std::move(body), std::move(updates)});
  }
  void receive(const MembershipMessage& message) {
    member_->on({now_, random_, effects_}, message);
  }

  /// Advances the time by `duration` and fires the timers on the way.
  void pass(Time duration) {
    const Time end = now_ + duration;
    for (keep_timers(); !timers_.empty() && *timers_.begin() <= end; keep_timers()) {
      now_ = std::max(now_, *timers_.begin());
      timers_.erase(timers_.begin());
      member_->on_timer({now_, random_, effects_});
    }
    now_ = end;
  }
  /// Advances the time by `duration`, but fires no timer.
  void stand_still(Time duration) { now_ += duration; }

  /// Returns all messages so far that have such a body.
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
  /// Drops the effects so far; timers stay set.
  void forget() {
    keep_timers();
    effects_.clear();
  }
  [[nodiscard]] std::optional<NodeState> state(NodeId id) const {
    const NodeEntry* entry = member_->nodes().find(id);
    if (entry == nullptr) return std::nullopt;
    return entry->record.state;
  }
  /// Receives the answers of `id` to all pings that the member has sent it.
  void answer_as(NodeId id) {
    for (const auto& send : sent_to<Ping>(id))
      receive(id, PingAck{std::get<Ping>(send.message.body).sequence});
  }

  MembershipOptions options_;
  std::optional<Membership> member_;
  Random random_{1};
  Time now_{};
  std::vector<MembershipEffect> effects_;

 private:
  void keep_timers() {
    std::erase_if(effects_, [&](const auto& effect) {
      if (const auto* timer = std::get_if<SetTimer>(&effect)) timers_.insert(timer->at);
      return std::holds_alternative<SetTimer>(effect);
    });
  }

  std::multiset<Time> timers_;
};

}  // namespace starling::core
