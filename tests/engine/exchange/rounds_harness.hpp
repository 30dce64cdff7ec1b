/// Tests exchanges that sum in rounds, message by message.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "tests/engine/exchange/exchange_harness.hpp"
#include "tests/sanitized.hpp"

namespace starling::core {

/// Delivers messages in random order. T is the type of the elements.
template <class E, class T = double>
class RoundsHarness : public ExchangeHarness<E, T> {
 protected:
  using Base = ExchangeHarness<E, T>;
  using Base::add;
  using Base::adopt;
  using Base::configuration_;
  using Base::deliver;
  using Base::epochs_;
  using Base::exchange;
  using Base::failure_;
  using Base::in_flight_;
  using Base::layout_;
  using Base::name_;
  using Base::random_;
  using Base::remove;
  using Base::run;
  using Base::start;
  using Base::sum;
  using Base::write;
  using Base::written_;
  using typename Base::InFlight;

  /// Delivers messages in random order, until none is left.
  void deliver_all() {
    while (!in_flight_.empty()) deliver_one();
  }
  /// Delivers one message. Its receiver first adopts the sender's configuration.
  void deliver_one() {
    const auto at = static_cast<std::ptrdiff_t>(random_.below(in_flight_.size()));
    const InFlight message = in_flight_[static_cast<std::size_t>(at)];
    in_flight_.erase(in_flight_.begin() + at);
    if (!is_member(message.from) || !is_member(message.sent.to)) return;
    if (epoch_of(message) > epochs_[message.sent.to]) adopt(message.sent.to);
    deliver(message);
  }
  [[nodiscard]] bool is_member(MemberId id) const { return configuration_.find(id) != nullptr; }
  static Epoch epoch_of(const InFlight& message) {
    return std::visit(
        []<class M>(const M& m) -> Epoch {
          if constexpr (requires { m.epoch; })
            return m.epoch;
          else
            return 0;
        },
        message.sent.message);
  }
  /// Returns an update: this value to each range from `first` on, or to the range `to`.
  [[nodiscard]] Update update_of(double value, std::uint32_t samples,
                                 std::optional<RangeId> to = std::nullopt,
                                 RangeId first = 0) const {
    Update update{.parts = {}, .samples = samples};
    for (RangeId r = first; r < layout_->ranges.size(); ++r) {
      if (to && *to != r) continue;
      auto one = Buffer::make<T>(1);
      one->template as<T>()[0] = static_cast<T>(value);
      update.parts.push_back({r, {std::move(one), 0, 1, nullptr}});
    }
    return update;
  }
  void write(MemberId id, Step step, double value, std::uint32_t samples = 1,
             std::optional<RangeId> to = std::nullopt) {
    Update update = update_of(value, samples, to);
    run(id, [&](auto& e, const auto& c) { e.write(c, {step, std::move(update), step * samples}); });
  }
  /// Gives the parts of an update from a range on.
  void write_parts(MemberId id, Step step, double value, RangeId first, std::uint32_t samples = 1) {
    run(id, [&](auto& e, const auto& c) {
      e.write_parts(c, {step, {first, update_of(value, samples, std::nullopt, first)}});
    });
  }
  void end(MemberId id, Step step) {
    run(id, [&](auto& e, const auto& c) { e.end(c, {step}); });
  }
  void enter(MemberId id) {
    run(id, [&](auto& e, const auto& c) { e.enter(c, {}); });
  }
  void adopt_all() {
    for (const Member& member : configuration_.members)
      if (epochs_[member.id] < configuration_.epoch) adopt(member.id);
  }
  /// Returns the value after the member's last round.
  double shared(MemberId id) { return exchange(id).state(0).value.template as<T>()[0]; }
  void expect_equal_copies() {
    for (const Member& member : configuration_.members)
      for (RangeId r = 0; r < layout_->ranges.size(); ++r)
        EXPECT_EQ(sum(member.id, r), sum(configuration_.members.front().id, r)) << member.id;
    for (const Member& member : configuration_.members)
      EXPECT_EQ(exchange(member.id).copy_hash(),
                exchange(configuration_.members.front().id).copy_hash());
  }
  /// Returns true if dead workers may have held the only copy of something, so that the job had to
  /// fail.
  /// `deaths` is the number of deaths since the members last completed a round that they had begun
  /// in their present configuration; `gone` also counts the workers that have left.
  [[nodiscard]] virtual bool may_fail(int deaths, int gone) const { return gone < deaths; }
  /// Called when all copies are equal and nothing is in flight.
  virtual void check_at_end() {}

  /// Workers join, end, leave and die at any message. Expects that all copies are equal after each
  /// round, and that each update is in them once. `choose(seed)` returns the exchange and the
  /// number of steps of its rounds. If the exchange names buckets, workers give parts of updates.
  template <class Choose>
  void expect_agreement_despite_faults(Choose choose) {
    constexpr auto seeds = static_cast<int>(seeds_to_run(400));
    int faults = 0;
    int repeated = 0;
    int failed = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      SCOPED_TRACE(seed);
      const auto [name, every] = choose(seed);
      random_ = Random{seed};
      name_ = name;
      written_.clear();
      start(1 + seed % 3, static_cast<MemberId>(1 + random_.below(6)));
      failure_.clear();
      std::map<MemberId, Step> next;  // the step that a worker writes next
      std::set<MemberId> entering;
      std::set<MemberId> has_given_parts;
      const bool gives_parts = name_.find("buckets=") != std::string::npos;
      MemberId joiner = 100;
      std::set<MemberId> leaving;
      int deaths = 0;
      int gone = 0;
      Step last_round = 0;  // the latest round at the last departure
      for (const Member& member : configuration_.members) next[member.id] = 1;
      for (int event = 0; event < 600; ++event) {
        const Member member = configuration_.members[random_.below(configuration_.members.size())];
        if (entering.contains(member.id) && written_[member.id] > 0) {
          entering.erase(member.id);
          next[member.id] = exchange(member.id).synced_step() + 1;
        }
        const bool may_write = !entering.contains(member.id) && !leaving.contains(member.id) &&
                               !exchange(member.id).is_writing() && epochs_[member.id] > 0;
        const auto note_round = [&] {
          for (const Member& other : configuration_.members)
            last_round = std::max(last_round, exchange(other.id).synced_step());
        };
        const auto has_other_copy = [&] {
          return std::ranges::any_of(configuration_.members, [&](const Member& other) {
            return other.id != member.id && exchange(other.id).has_copy(0);
          });
        };
        // As the council lets members leave: one after the other, each in the present epoch.
        if (leaving.contains(member.id) && epochs_[member.id] == configuration_.epoch &&
            has_other_copy() && exchange(member.id).may_leave()) {
          note_round();
          ++gone;
          remove(member.id);
          continue;
        }
        if (random_.below(60) == 0 && faults < 100'000) {
          ++faults;
          if (random_.below(2) == 0 && configuration_.members.size() < 8) {
            add(joiner);
            adopt(joiner);
            enter(joiner);
            entering.insert(joiner++);
          } else if (configuration_.members.size() > 1) {
            if (!has_other_copy()) continue;
            const Step most = exchange(member.id).synced_step();
            repeated += std::ranges::any_of(configuration_.members, [&](const Member& other) {
              return exchange(other.id).synced_step() < most;
            });
            remove(member.id);
            ++deaths;
            ++gone;
            last_round = std::max(last_round, most);
            note_round();
          }
        } else if (may_write && !has_given_parts.contains(member.id) && leaving.size() < 2 &&
                   random_.below(200) == 0) {
          leaving.insert(member.id);
          end(member.id, 0);
        } else if (may_write && gives_parts && random_.below(3) == 0) {
          const auto first = static_cast<RangeId>(random_.below(layout_->ranges.size()));
          write_parts(member.id, next[member.id], 1, first);
          has_given_parts.insert(member.id);
        } else if (may_write && random_.below(3) == 0) {
          write(member.id, next[member.id]++, 1);
          has_given_parts.erase(member.id);
        } else if (epochs_[member.id] < configuration_.epoch && random_.below(4) == 0) {
          adopt(member.id);
        } else if (!in_flight_.empty()) {
          deliver_one();
        }
        // The sum after the next one has begun in the present configuration.
        if (std::ranges::all_of(configuration_.members, [&](const Member& other) {
              return exchange(other.id).synced_step() >= last_round + 2 * every;
            }))
          deaths = gone = 0;
        if (!failure_.empty()) break;
        for (const Member& a : configuration_.members)
          for (const Member& b : configuration_.members) {
            if (!exchange(a.id).has_copy(0) || !exchange(b.id).has_copy(0)) continue;
            const auto apart = static_cast<std::int64_t>(exchange(a.id).state(0).round) -
                               static_cast<std::int64_t>(exchange(b.id).state(0).round);
            ASSERT_LE(std::abs(apart), static_cast<std::int64_t>(every));
            ASSERT_TRUE(apart != 0 || shared(a.id) == shared(b.id));
          }
      }
      adopt_all();
      for (const MemberId id : has_given_parts)
        if (is_member(id)) write(id, next[id]++, 1);
      for (const Member& member : configuration_.members)
        if (!exchange(member.id).is_writing()) end(member.id, 0);
      deliver_all();
      if (!failure_.empty() && may_fail(deaths, gone)) {
        ++failed;
        continue;
      }
      for (const Member& member : configuration_.members) end(member.id, 0);
      deliver_all();
      expect_equal_copies();
      ASSERT_EQ(failure_, "");
      for (const Member& member : configuration_.members)
        EXPECT_FALSE(exchange(member.id).is_writing()) << member.id;
      // Each update adds 1 to each range; the progress says how many there were.
      double updates = 0;
      for (const WorkerProgress& progress : exchange(configuration_.members[0].id).progress())
        updates += static_cast<double>(progress.samples);
      EXPECT_EQ(sum(configuration_.members[0].id), updates);
      check_at_end();
    }
    EXPECT_LT(failed, seeds / 4);
    EXPECT_GT(faults, 5 * seeds / 2);
    EXPECT_GT(repeated, seeds / 20) << "deaths of workers that alone have completed a round";
  }
};

}  // namespace starling::core
