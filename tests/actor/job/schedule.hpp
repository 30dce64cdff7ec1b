/// A scheduler that chooses at random which actor handles its next message, which computation runs,
/// and when time passes. Each of these is an act. The same seed gives the same acts. For tests.
#pragma once

#include <algorithm>
#include <caf/scheduler/test_coordinator.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/interfaces.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/base/random.hpp"
#include "tests/engine/core/print.hpp"

namespace starling::actor {

class Schedule final : public TestScheduler {
 public:
  /// Called with each message of the cores, and its receiver, before the receiver handles it.
  std::function<void(const std::string& to, const core::TranscriptMessage&)> on_message;
  /// Called after each act with the number of acts so far.
  std::function<void(std::size_t)> on_act;
  /// If not null, a line is appended for each act.
  std::vector<std::string>* trace = nullptr;
  /// True: time passes only while no actor can act, as if computing and sending took no time.
  bool prompt = false;
  /// The scheduler gives up on the job after this many acts.
  std::size_t acts_max = 1'000'000;

  explicit Schedule(std::uint64_t seed) : seed_(seed), random_(Random::stream(seed, 0x5c4ed)) {}

  /// Returns `options` with this schedule as the scheduler.
  [[nodiscard]] JobOptions scheduled(JobOptions options) {
    options.scheduler = this;
    options.on_start = [this, on_start = options.on_start](const auto& actors, auto& system) {
      name_actors(*actors);
      if (on_start) on_start(actors, system);
    };
    return options;
  }

  [[nodiscard]] std::size_t acts() const { return acts_; }
  /// Returns true if the job had no outcome after `acts_max` acts, or when no actor could act any
  /// more.
  [[nodiscard]] bool stuck() const { return is_stuck_; }

  void run_until(caf::actor_system& system, ComputePool& pool,
                 const std::function<bool()>& over) override {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
    const bool ending = std::exchange(has_run_, true);
    for (std::size_t limit = acts_ + acts_max; !over();) {
      if (acts_ < limit && act(scheduler, pool)) continue;
      is_stuck_ = true;
      if (!ending) return;
      // The job would wait for ever.
      std::fprintf(stderr, "schedule %llu: an actor does not end\n",
                   static_cast<unsigned long long>(seed_));
      std::abort();
    }
  }

 private:
  /// In one of this many acts, time passes although an actor could act.
  static constexpr std::uint64_t time_passes_once_in = 50;
  /// One actor of each job is neglected: if drawn, another draw replaces it, except in one of this
  /// many cases.
  static constexpr std::uint64_t neglected_acts_once_in = 6;

  /// Gives the actors of a job names for the trace, and chooses the neglected actor.
  void name_actors(const actor::JobActors& actors) {
    const auto set_name = [&](const auto& handle, const std::string& text) {
      names_[caf::actor_cast<caf::strong_actor_ptr>(handle)->id()] = text;
    };
    set_name(actors.job, "observer");
    for (std::size_t i = 0; i < actors.owners.size(); ++i)
      set_name(actors.owners[i], "owner " + std::to_string(i));
    if (actors.coordinator) set_name(actors.coordinator, "coordinator");
    for (std::size_t i = 0; i < actors.workers.size(); ++i)
      set_name(actors.workers[i], "worker " + std::to_string(i));
    const auto index = static_cast<std::ptrdiff_t>(random_.below(names_.size()));
    neglected_ = std::next(names_.begin(), index)->first;
  }

  /// Makes one act; returns false if no actor can ever act again.
  bool act(caf::scheduler::test_coordinator& scheduler, ComputePool& pool) {
    ++acts_;
    const std::size_t ready = scheduler.jobs.size();
    const std::size_t choice_count = ready + pool.queue_size();
    if (choice_count == 0 || (!prompt && random_.below(time_passes_once_in) == 0)) {
      if (!pass_time(scheduler, choice_count > 0)) return choice_count > 0;
    } else if (const auto next = choose(scheduler, choice_count); next < ready) {
      run_actor(scheduler, next);
    } else {
      add_to_trace("the pool computes");
      pool.run(next - ready, scratch_);
    }
    if (on_act) on_act(acts_);
    return true;
  }

  /// Returns which of the actors that are ready, followed by the computations that wait, acts next.
  std::size_t choose(caf::scheduler::test_coordinator& scheduler, std::size_t choice_count) {
    const auto draw = [&] { return static_cast<std::size_t>(random_.below(choice_count)); };
    const std::size_t next = draw();
    if (next >= scheduler.jobs.size() || random_.below(neglected_acts_once_in) == 0) return next;
    const auto* actor = dynamic_cast<caf::scheduled_actor*>(scheduler.jobs[next]);
    return actor != nullptr && actor->id() == neglected_ ? draw() : next;
  }

  /// Advances the clock to the next timer or, if actors can act, to a random time before it.
  /// Returns false if there is no timer.
  bool pass_time(caf::scheduler::test_coordinator& scheduler, bool can_actors_act) {
    auto& clock = scheduler.clock();
    if (!clock.has_pending_timeout()) return false;
    const auto gap =
        std::max(core::Time{0}, core::Time{clock.schedule().begin()->first - clock.current_time});
    const auto gap_ns = static_cast<std::uint64_t>(gap.count());
    const core::Time passed{
        static_cast<core::Time::rep>(can_actors_act ? random_.below(gap_ns + 1) : gap_ns)};
    if (trace != nullptr) add_to_trace("time passes: " + std::to_string(passed.count()) + " ns");
    scheduler.advance_time(passed);
    return true;
  }

  /// Lets the actor with this index in the scheduler's queue handle its next message.
  void run_actor(caf::scheduler::test_coordinator& scheduler, std::size_t at) {
    auto& jobs = scheduler.jobs;
    const auto job = jobs.begin() + static_cast<std::ptrdiff_t>(at);
    std::rotate(jobs.begin(), job, job + 1);
    if (auto* actor = dynamic_cast<caf::scheduled_actor*>(jobs.front()); actor != nullptr)
      if (auto* mail = actor->peek_at_next_mailbox_element(); mail != nullptr)
        report_next_message(*actor, mail->content());
    scheduler.run_once();
  }

  void report_next_message(const caf::scheduled_actor& actor, caf::type_erased_tuple& content) {
    const auto found = names_.find(actor.id());
    const std::string to = found == names_.end() ? "another" : found->second;
    const auto message = core_message(content, static_cast<core::TranscriptMessage*>(nullptr));
    if (message && on_message) on_message(to, *message);
    if (trace != nullptr)
      add_to_trace(to + ": " + (message ? core::to_text(*message) : content.stringify()));
  }

  /// Returns `content` as a message of the cores, or nullopt if it is another message.
  template <class... Ms>
  static std::optional<core::TranscriptMessage> core_message(caf::type_erased_tuple& content,
                                                             std::variant<Ms...>*) {
    std::optional<core::TranscriptMessage> message;
    const auto match = [&]<class M>(const M*) {
      if (content.size() == 1 && content.match_element<M>(0)) message = content.get_as<M>(0);
    };
    (match(static_cast<const Ms*>(nullptr)), ...);
    if (content.size() == 1 && content.match_element<core::LocalMessage>(0))
      std::visit(
          [&]<class M>(const M& local) {
            if constexpr (std::is_constructible_v<core::TranscriptMessage, const M&>)
              message = local;
          },
          *content.get_as<core::LocalMessage>(0).message);
    return message;
  }

  void add_to_trace(std::string line) {
    if (trace != nullptr) trace->push_back(std::move(line));
  }

  std::uint64_t seed_;
  Random random_;
  std::map<caf::actor_id, std::string> names_;
  caf::actor_id neglected_ = 0;
  Scratch scratch_;
  std::size_t acts_ = 0;
  bool has_run_ = false;
  bool is_stuck_ = false;
};

}  // namespace starling::actor
