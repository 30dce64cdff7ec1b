/// Members that run collectives over channels, on a simulated network. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/channel/channel.hpp"
#include "starling/engine/exchange/collective/executor.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/queue.hpp"

namespace starling::collective {

template <class Element>
using Vectors = std::vector<std::vector<Element>>;

/// Returns the members' vectors after the schedule, executed round by round, move by move.
template <class Element>
Vectors<Element> execute_in_order(const Schedule& schedule, Vectors<Element> values) {
  const auto bounds = chunk_bounds(schedule.chunks, values.front().size());
  for (const Round& round : schedule.rounds) {
    const auto before = values;
    for (const Move& move : round)
      for (std::size_t i = bounds[move.chunk]; i < bounds[move.chunk + 1]; ++i) {
        Element& element = values[move.to][i];
        if (move.action == ReceiveAction::copy)
          element = before[move.from][i];
        else
          element += before[move.from][i];
      }
  }
  return values;
}

/// Returns a vector for each member, whose sums depend on the order of summation.
inline Vectors<float> random_vectors(std::size_t members, std::size_t size, Random& random) {
  Vectors<float> vectors(members, std::vector<float>(size));
  for (auto& vector : vectors)
    for (float& element : vector) element = static_cast<float>(random.real() - 0.5);
  return vectors;
}

/// Expects that the chunks' destinations have the same bits in both.
template <class Element>
void expect_equal_results(const Schedule& schedule, const Vectors<Element>& expected,
                          const Vectors<Element>& results) {
  const auto bounds = chunk_bounds(schedule.chunks, expected.front().size());
  for (std::size_t member = 0; member < schedule.members; ++member) {
    ASSERT_EQ(results[member].size(), expected[member].size()) << "member " << member;
    for (std::size_t c = 0; c < schedule.chunks.size(); ++c) {
      if (schedule.chunks[c].destination.value_or(static_cast<Rank>(member)) != member) continue;
      for (std::size_t i = bounds[c]; i < bounds[c + 1]; ++i)
        ASSERT_EQ(results[member][i], expected[member][i])
            << "member " << member << ", chunk " << c << ", element " << i;
    }
  }
}

template <class Element>
class SimulatedMembers {
 public:
  SimulatedMembers(std::size_t members, const sim::LinkOptions& link, std::uint64_t seed,
                   ExecutorOptions options = {})
      : network_(link, seed), results_(members) {
    for (Rank i = 0; i < members; ++i) {
      executors_.emplace_back(options);
      for (Rank j = 0; j < members; ++j)
        if (i != j) channels_.try_emplace({i, j}, 1, 1);
    }
  }

  /// Starts a collective at one member.
  void start_at(core::Time at, Rank member, CollectiveId id, const Schedule& schedule,
                std::vector<Element> values, std::uint32_t slices) {
    auto program = std::make_shared<const Program>(make_program(schedule, member));
    queue_.push(at, {.member = member,
                     .start = std::make_shared<Start>(
                         Start{id, std::move(program), std::move(values), slices})});
  }

  /// Runs until nothing is in flight.
  void run() {
    for (std::size_t events = 0; !queue_.empty(); ++events) {
      ASSERT_LT(events, 20'000'000U) << "the members never finish";
      handle(queue_.pop());
    }
  }

  /// Returns the results of a collective by member; empty for a member that has not completed it.
  [[nodiscard]] Vectors<Element> results(CollectiveId id) const {
    Vectors<Element> found;
    for (const auto& results : results_) {
      const auto result = results.find(id);
      found.push_back(result == results.end() ? std::vector<Element>{} : result->second);
    }
    return found;
  }
  /// Expects that all collectives have ended at all members, and that nothing is left.
  void expect_settled() const {
    for (const auto& executor : executors_) {
      EXPECT_EQ(executor.open_count(), 0U);
      EXPECT_EQ(executor.waiting_pieces(), 0U);
    }
  }
  /// Returns the most pieces that have waited at one member.
  [[nodiscard]] std::size_t most_waiting() const { return most_waiting_; }
  /// Returns the most collectives that one member has had open.
  [[nodiscard]] std::size_t most_open() const { return most_open_; }

 private:
  using Payload = Message<Element>;
  struct Start {
    CollectiveId id;
    std::shared_ptr<const Program> program;
    std::vector<Element> values;
    std::uint32_t slices;
  };
  /// The start of a collective, or a packet or a timer of the channel to `other`.
  struct Event {
    Rank member = 0;
    Rank other = 0;
    std::optional<core::Packet<Payload>> packet = std::nullopt;
    std::shared_ptr<Start> start = nullptr;
  };

  void handle(Event event) {
    Effects<Element> effects;
    Executor<Element>& executor = executors_[event.member];
    if (event.start) {
      waiting_[event.member].push_back(std::move(*event.start));
    } else {
      core::ChannelEffects<Payload> out;
      auto& channel = channels_.at({event.member, event.other});
      if (event.packet)
        channel.on({queue_.now(), out}, *std::move(event.packet));
      else
        channel.on_timer({queue_.now(), out});
      execute(event.member, event.other, out, effects);
    }
    for (auto& starts = waiting_[event.member]; !starts.empty() && !executor.is_full();
         starts.pop_front())
      executor.start(effects, starts.front().id, starts.front().program,
                     std::move(starts.front().values), starts.front().slices);
    most_open_ = std::max(most_open_, executor.open_count());
    most_waiting_ = std::max(most_waiting_, executor.waiting_pieces());
    execute(event.member, effects);
  }

  void execute(Rank member, Effects<Element>& effects) {
    for (auto& effect : effects) {
      if (auto* send = std::get_if<Send<Element>>(&effect)) {
        core::ChannelEffects<Payload> out;
        auto& channel = channels_.at({member, send->to});
        ASSERT_TRUE(channel.send({queue_.now(), out}, std::move(send->message)));
        Effects<Element> none;
        execute(member, send->to, out, none);
      } else {
        auto& completed = std::get<Completed<Element>>(effect);
        const bool is_first =
            results_[member].emplace(completed.collective, std::move(completed.values)).second;
        ASSERT_TRUE(is_first) << "completed twice";
      }
    }
  }

  void execute(Rank member, Rank other, core::ChannelEffects<Payload>& out,
               Effects<Element>& effects) {
    for (auto& effect : out) {
      if (auto* transmit = std::get_if<core::Transmit<Payload>>(&effect)) {
        for (const core::Time at : network_.send(queue_.now(), member, other, 100))
          queue_.push(at, {.member = other, .other = member, .packet = transmit->packet});
      } else if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
        queue_.push(timer->at, {.member = member, .other = other});
      } else {
        auto& deliver = std::get<core::Deliver<Payload>>(effect);
        ASSERT_TRUE(executors_[member].on(effects, other, std::move(deliver.payload)));
      }
    }
  }

  sim::Network network_;
  sim::Queue<Event> queue_;
  std::vector<Executor<Element>> executors_;
  std::map<std::pair<Rank, Rank>, core::Channel<Payload>> channels_;
  /// By member.
  std::vector<std::map<CollectiveId, std::vector<Element>>> results_;
  /// By member: the collectives that it could not start yet.
  std::map<Rank, std::deque<Start>> waiting_;
  std::size_t most_waiting_ = 0;
  std::size_t most_open_ = 0;
};

}  // namespace starling::collective
