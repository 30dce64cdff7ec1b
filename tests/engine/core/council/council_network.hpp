/// Simulates a network of councils for tests: delivers or loses their messages, and checks that all
/// councils agree.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/council/council.hpp"

namespace starling::core {

inline std::vector<Member> initial_members(MemberId count) {
  std::vector<Member> members;
  for (MemberId id = 0; id < count; ++id) members.push_back({id, 1});
  return members;
}

/// The councils of all members and the messages in flight between them, in virtual time. Fails the
/// test if two councils decide on different configurations of one epoch.
class CouncilNetwork {
 public:
  /// Members 0 to `members` - 1 found the job; the `joiners` ids after them may join.
  CouncilNetwork(MemberId members, std::size_t ranges, std::uint64_t seed, MemberId joiners = 0)
      : random_(seed) {
    const auto first = std::make_shared<const Configuration>(
        first_configuration(initial_members(members), ranges, 2));
    decided_[1] = first;
    for (MemberId id = 0; id < members + joiners; ++id) {
      CouncilOptions options{.self = {id, 1}};
      options.give_up_after = std::chrono::seconds{1};
      councils_.emplace_back(options);
      epochs_.push_back(0);
    }
    for (MemberId id = 0; id < members; ++id) adopt(id, first);
  }

  /// Calls `event(council, context)` with the council of member `id`, and executes the effects.
  /// Does nothing if the member has crashed.
  template <class Event>
  void run(MemberId id, Event event) {
    if (crashed_.contains(id)) return;
    std::vector<CouncilEffect> effects;
    event(councils_[id], CouncilContext{now_, random_, effects});
    for (auto& effect : effects) execute(id, effect);
  }

  /// Lets member `id` suspect `other`, or no longer suspect it.
  void suspect(MemberId id, MemberId other) {
    run(id, [&](Council& council, const auto& context) { council.suspect(context, other, 1); });
  }
  void trust(MemberId id, MemberId other) {
    run(id, [&](Council& council, const auto& context) { council.trust(context, other, 1); });
  }
  /// From now on, member `id` receives nothing from `other`, and suspects it.
  void drop_incoming(MemberId id, MemberId other) {
    blocked_.insert({other, id});
    suspect(id, other);
  }
  void crash(MemberId id) { crashed_.insert(id); }

  /// Delivers one message, or fires the next timer. With `loss` above 0, it picks a random message,
  /// loses it with probability `loss`, and keeps it for a second delivery with probability
  /// `duplication`. Returns false if there is neither a message nor a timer.
  bool step(double loss, double duplication) {
    if (!in_flight_.empty() && (timers_.empty() || loss == 0 || random_.below(10) > 0)) {
      const std::size_t index = loss > 0 ? random_.below(in_flight_.size()) : 0;
      const Sent sent = in_flight_[index];
      if (random_.real() >= duplication)
        in_flight_.erase(in_flight_.begin() + static_cast<long>(index));
      if (random_.real() >= loss) deliver(sent);
      return true;
    }
    if (timers_.empty()) return false;
    const auto [fires_at, id] = *timers_.begin();
    timers_.erase(timers_.begin());
    now_ = std::max(now_, fires_at);
    run(id, [](Council& council, const auto& context) { council.on_timer(context); });
    return true;
  }
  /// Calls step() without faults until there is no message and no timer, at most 20,000 times.
  void run_to_end() {
    for (int i = 0; i < 20'000 && step(0, 0); ++i) {
    }
  }
  /// Calls step() without faults until the time is `until`.
  void run_until(Time until) {
    while ((!in_flight_.empty() || (!timers_.empty() && timers_.begin()->first <= until)) &&
           step(0, 0)) {
    }
    now_ = std::max(now_, until);
  }

  [[nodiscard]] const Configuration& configuration(MemberId id) const {
    return *decided_.at(epochs_[id]);
  }
  [[nodiscard]] Epoch epoch(MemberId id) const { return epochs_[id]; }
  /// The last epoch that any council decided.
  [[nodiscard]] Epoch last_epoch() const { return decided_.rbegin()->first; }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }
  [[nodiscard]] bool suspects(MemberId id, MemberId other) const {
    return councils_[id].suspects(other);
  }
  [[nodiscard]] bool has_crashed(MemberId id) const { return crashed_.contains(id); }
  Random& random() { return random_; }

 private:
  /// A message in flight: `message`, or `configuration` if that is set.
  struct Sent {
    MemberId from;
    MemberId to;
    CouncilMessage message;
    ConfigurationPtr configuration;
  };

  void execute(MemberId id, CouncilEffect& effect) {
    if (auto* send = std::get_if<CouncilSend>(&effect)) {
      in_flight_.push_back({id, send->to, send->message, nullptr});
    } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
      timers_.insert({timer->at, id});
    } else if (const auto* fail = std::get_if<Fail>(&effect)) {
      failures_.push_back(fail->why);
    } else {
      const auto next = std::get<Decided>(effect).configuration;
      for (const Member& member : next->members) in_flight_.push_back({id, member.id, {}, next});
      adopt(id, next);
    }
  }

  void deliver(const Sent& sent) {
    if (blocked_.contains({sent.from, sent.to})) return;
    if (sent.configuration) return adopt(sent.to, sent.configuration);
    run(sent.to, [&](Council& council, const auto& context) {
      if (!council.on(context, sent.from, sent.message) && epochs_[sent.to] > 0)
        in_flight_.push_back({sent.to, sent.from, {}, decided_.at(epochs_[sent.to])});
    });
  }

  /// Passes a decided configuration to a council. Checks first that no other configuration of its
  /// epoch was decided.
  void adopt(MemberId id, const ConfigurationPtr& configuration) {
    const auto [known, is_new] = decided_.try_emplace(configuration->epoch, configuration);
    ASSERT_EQ(*known->second, *configuration);
    if (configuration->epoch <= epochs_[id] || !configuration->contains(id, 1)) return;
    epochs_[id] = configuration->epoch;
    run(id, [&](Council& council, const auto& context) {
      std::vector<RangeId> full;
      for (RangeId r = 0; r < configuration->ranges.size(); ++r)
        if (configuration->ranges[r].find(id) != nullptr) full.push_back(r);
      council.on_configuration(context, configuration);
      council.on_full_ranges(context, full);  // new owners hold their ranges at once
    });
  }

  Random random_;
  Time now_{};
  std::vector<Council> councils_;
  /// By member: the epoch of its configuration; 0 if it has none.
  std::vector<Epoch> epochs_;
  std::map<Epoch, ConfigurationPtr> decided_;
  std::vector<Sent> in_flight_;
  std::multiset<std::pair<Time, MemberId>> timers_;
  std::set<MemberId> crashed_;
  /// Pairs of a sender and a receiver between which messages are lost.
  std::set<std::pair<MemberId, MemberId>> blocked_;
  std::vector<std::string> failures_;
};

}  // namespace starling::core
