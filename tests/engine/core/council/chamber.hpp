/// Councils whose messages a test has in its hand, and a check that all of them agree.
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

inline std::vector<Member> founders(MemberId count) {
  std::vector<Member> members;
  for (MemberId id = 0; id < count; ++id) members.push_back({id, 1});
  return members;
}

/// Councils and the messages in flight between them; a test decides which arrive, and when.
class Chamber {
 public:
  Chamber(MemberId members, std::size_t ranges, std::uint64_t seed, MemberId spare = 0)
      : random_(seed) {
    const auto first =
        std::make_shared<const Configuration>(first_configuration(founders(members), ranges, 2));
    decided_[1] = first;
    for (MemberId id = 0; id < members + spare; ++id) {
      CouncilOptions options{.self = {id, 1}};
      options.give_up_after = std::chrono::seconds{1};
      councils_.emplace_back(options);
      epochs_.push_back(0);
    }
    for (MemberId id = 0; id < members; ++id) adopt(id, first);
  }

  template <class Event>
  void happen(MemberId id, Event event) {
    if (crashed_.contains(id)) return;
    std::vector<CouncilEffect> effects;
    event(councils_[id], CouncilContext{now_, random_, effects});
    for (auto& effect : effects) execute(id, effect);
  }

  void suspect(MemberId id, MemberId whom) {
    happen(id, [&](Council& council, const auto& context) { council.suspect(context, whom, 1); });
  }
  void trust(MemberId id, MemberId whom) {
    happen(id, [&](Council& council, const auto& context) { council.trust(context, whom, 1); });
  }
  /// `id` receives nothing from `whom` from now on, and suspects it.
  void drop_incoming(MemberId id, MemberId whom) {
    deaf_.insert({whom, id});
    suspect(id, whom);
  }
  void crash(MemberId id) { crashed_.insert(id); }

  /// One thing happens: a message arrives, is lost or comes twice, in any order; or time passes.
  /// False where nothing is left to happen.
  bool stir(double loss, double twice) {
    if (!in_flight_.empty() && (timers_.empty() || loss == 0 || random_.below(10) > 0)) {
      const std::size_t at = loss > 0 ? random_.below(in_flight_.size()) : 0;
      const Sent sent = in_flight_[at];
      if (random_.real() >= twice) in_flight_.erase(in_flight_.begin() + static_cast<long>(at));
      if (random_.real() >= loss) deliver(sent);
      return true;
    }
    if (timers_.empty()) return false;
    const auto [at, id] = *timers_.begin();
    timers_.erase(timers_.begin());
    now_ = std::max(now_, at);
    happen(id, [](Council& council, const auto& context) { council.on_timer(context); });
    return true;
  }
  void settle() {
    for (int i = 0; i < 20'000 && stir(0, 0); ++i) {
    }
  }
  /// As far as it goes before `until`.
  void settle(Time until) {
    while ((!in_flight_.empty() || (!timers_.empty() && timers_.begin()->first <= until)) &&
           stir(0, 0)) {
    }
    now_ = std::max(now_, until);
  }

  [[nodiscard]] const Configuration& of(MemberId id) const { return *decided_.at(epochs_[id]); }
  [[nodiscard]] Epoch epoch(MemberId id) const { return epochs_[id]; }
  [[nodiscard]] Epoch last() const { return decided_.rbegin()->first; }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }
  [[nodiscard]] bool suspects(MemberId id, MemberId whom) const {
    return councils_[id].suspects(whom);
  }
  [[nodiscard]] bool crashed(MemberId id) const { return crashed_.contains(id); }
  Random& random() { return random_; }

 private:
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
    if (deaf_.contains({sent.from, sent.to})) return;
    if (sent.configuration) return adopt(sent.to, sent.configuration);
    happen(sent.to, [&](Council& council, const auto& context) {
      if (!council.on(context, sent.from, sent.message) && epochs_[sent.to] > 0)
        in_flight_.push_back({sent.to, sent.from, {}, decided_.at(epochs_[sent.to])});
    });
  }

  /// Checks agreement: an epoch has one configuration, whichever member decided it.
  void adopt(MemberId id, const ConfigurationPtr& configuration) {
    const auto [known, fresh] = decided_.try_emplace(configuration->epoch, configuration);
    ASSERT_EQ(*known->second, *configuration);
    if (configuration->epoch <= epochs_[id] || !configuration->contains(id, 1)) return;
    epochs_[id] = configuration->epoch;
    happen(id, [&](Council& council, const auto& context) {
      std::vector<RangeId> full;
      for (RangeId r = 0; r < configuration->ranges.size(); ++r)
        if (configuration->ranges[r].find(id) != nullptr) full.push_back(r);
      council.on_configuration(context, configuration);
      council.on_full_ranges(context, full);  // hand-over takes no time here
    });
  }

  Random random_;
  Time now_{};
  std::vector<Council> councils_;
  std::vector<Epoch> epochs_;
  std::map<Epoch, ConfigurationPtr> decided_;
  std::vector<Sent> in_flight_;
  std::multiset<std::pair<Time, MemberId>> timers_;
  std::set<MemberId> crashed_;
  /// Pairs of a sender and a receiver between which messages are lost.
  std::set<std::pair<MemberId, MemberId>> deaf_;
  std::vector<std::string> failures_;
};

}  // namespace starling::core
