/// Runs counting jobs under a Schedule, and checks that they keep their barriers. For tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/actor/job/schedule.hpp"
#include "tests/sanitized.hpp"

namespace starling::actor {

/// The number of seeds with which a test runs a job.
inline constexpr std::uint64_t schedule_count = sanitized ? 20 : 200;

/// A task in which every range has a counter for each worker. Each step of the worker adds exactly
/// 1 to it, so the values that a step reads show which updates they contain.
class CountingTask final : public Task {
 public:
  /// Called with the values that a step has read.
  std::function<void(core::MemberId, core::Step, std::span<const core::Value>)> on_read;
  /// Returns true if this computation of the step must throw.
  std::function<bool(core::MemberId, core::Step)> throws;

  CountingTask(std::size_t workers, std::size_t ranges, bool bsp)
      : workers_(workers), gradient_(bsp ? -static_cast<float>(workers) : -1.0F) {
    for (core::RangeId r = 0; r < ranges; ++r) {
      layout_.parameters.push_back({.name = "counters", .shape = {workers}});
      layout_.offsets.push_back(layout_.size);
      layout_.ranges.push_back({layout_.size, workers, 0, {{r, 0, 0, workers}}});
      layout_.size += workers;
    }
  }

  [[nodiscard]] const core::Layout& layout() const override { return layout_; }

  /// Without bsp, a push of `workers` samples has weight 1 at batch 1. Under bsp, the mean of a
  /// round divides by the number of workers, so the gradients are multiplied by it.
  [[nodiscard]] static core::ApplierPtr applier() {
    return core::gradient_applier<float>(
        {.optimizer = models::Sgd{.lr = 1}, .schedule = {}, .l2 = 0, .batch = 1});
  }
  [[nodiscard]] std::vector<core::RangeState> initial_states() const {
    return to_ranges<float>(layout_, std::vector<float>(layout_.size));
  }

  StepResult compute(const StepInput& input, Scratch&) override {
    if (on_read) on_read(input.worker, input.step, input.values);
    if (throws && throws(input.worker, input.step)) throw std::runtime_error{"not in the mood"};
    StepResult result;
    result.update.samples = static_cast<std::uint32_t>(workers_);
    for (core::RangeId r = 0; r < layout_.ranges.size(); ++r) {
      std::vector<float> one_hot(workers_);
      one_hot[input.worker] = gradient_;
      const auto buffer = core::Buffer::copy_of<float>(one_hot);
      result.update.parts.push_back({r, {buffer, 0, workers_, nullptr}});
    }
    return result;
  }

 private:
  std::size_t workers_;
  float gradient_;
  core::Layout layout_;
};

/// Checks that no worker passes its barrier too early. Records from the messages which steps the
/// barrier of each worker may have seen.
class BarrierChecker {
 public:
  explicit BarrierChecker(JobOptions options)
      : options_(std::move(options)), answers_(options_.workers) {}

  /// Called with each message of the cores before its receiver `to` handles it.
  void on_message(const std::string& to, const core::TranscriptMessage& message) {
    if (const auto* arrived = std::get_if<core::Arrived>(&message))
      arrived_[arrived->worker] = arrived->step;
    if (const auto* ended = std::get_if<core::Ended>(&message); ended && to == "coordinator")
      arrived_[ended->worker] = barrier::finished;
    if (const auto* answer = std::get_if<core::StepAnswer>(&message)) {
      Answers& answers = answers_.at(std::stoul(to.substr(to.find(' '))));
      if (answer->draw > answers.draw) answers = {answer->draw, {}};
      if (answer->draw == answers.draw) answers.steps[answer->from] = answer->step;
    }
  }

  /// Called when a worker has passed the barrier at `step` and has read `values`. Checks that
  /// enough other workers had reached the step that the barrier demands, and that the values
  /// contain the worker's own updates. If it is known which workers the barrier saw, also checks
  /// that the values contain their updates.
  void on_read(core::MemberId reader, core::Step step, std::span<const core::Value> values) {
    const std::string who = "worker " + std::to_string(reader) + " at step " + std::to_string(step);
    const auto required_step = barrier::promised_floor(options_.barrier, step).value_or(0);
    const bool central = core::keeps_steps_centrally(options_.mode);
    std::set<core::MemberId> ahead;
    for (const auto& [other, reached] : central ? arrived_ : answers_[reader].steps)
      if (other != reader && reached >= required_step) ahead.insert(other);
    const std::size_t others = options_.workers - 1;
    // A tuned barrier may see no one.
    const std::size_t needed = required_step > 0 && !barrier::is_tuned(options_.barrier)
                                   ? barrier::seen_workers(options_.barrier, others)
                                   : 0;
    if (ahead.size() < needed)
      violations.push_back(who + " has passed a barrier that holds it back");
    // Which workers the coordinator drew is known only if it drew all.
    if (needed == 0 || (central && needed < others)) ahead.clear();
    for (const core::Value& value : values) {
      const auto counters = value.value.as<float>();
      if (counters[reader] != static_cast<float>(step))
        violations.push_back(who + " does not read its own updates");
      for (const core::MemberId other : ahead)
        if (counters[other] < static_cast<float>(std::min(required_step, options_.steps)))
          violations.push_back(who + " reads without updates of worker " + std::to_string(other));
    }
  }

  /// Violations that were found, one sentence each.
  std::vector<std::string> violations;

 private:
  struct Answers {
    std::uint64_t draw = 0;
    std::map<core::MemberId, core::Step> steps;
  };
  JobOptions options_;
  std::map<core::MemberId, core::Step> arrived_;
  std::vector<Answers> answers_;
};

/// The result of a job under one schedule.
struct ScheduledRun {
  Outcome outcome;
  /// Violations that were found, one sentence each.
  std::vector<std::string> violations;
  /// A line for each act, if `traced` was true.
  std::vector<std::string> trace;
};

/// Functions that a scheduled run calls.
struct RunHooks {
  /// Returns true if this computation of a step must throw.
  std::function<bool(core::MemberId, core::Step)> throws = nullptr;
  /// Called after each act with the number of acts so far.
  std::function<void(std::size_t)> on_act = nullptr;
};

/// Runs a counting job to its end under the schedule of its seed. Records in
/// ScheduledRun::violations where it does not keep the barrier `checked`.
inline ScheduledRun run(const JobOptions& options, const barrier::Barrier& checked,
                        RunHooks hooks = {}, bool traced = false) {
  JobOptions checked_options = options;
  checked_options.barrier = checked;
  BarrierChecker checker{checked_options};
  const auto task =
      std::make_shared<CountingTask>(options.workers, 3, barrier::is_bsp(options.barrier));
  task->throws = std::move(hooks.throws);
  task->on_read = [&](core::MemberId worker, core::Step step, std::span<const core::Value> values) {
    checker.on_read(worker, step, values);
  };
  ScheduledRun run_result;
  Schedule schedule{options.seed};
  schedule.on_message = [&](const std::string& to, const core::TranscriptMessage& message) {
    checker.on_message(to, message);
  };
  schedule.on_act = std::move(hooks.on_act);
  if (traced) schedule.trace = &run_result.trace;
  const auto initial_states = task->initial_states();
  run_result.outcome =
      run_job(schedule.scheduled(options), task, CountingTask::applier(), initial_states).value();
  run_result.violations = std::move(checker.violations);
  if (schedule.stuck())
    run_result.violations.emplace_back("no actor can act, or the job takes too long");
  return run_result;
}

}  // namespace starling::actor
