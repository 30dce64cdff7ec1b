/// The computation that a job's workers do, behind one interface for all kinds of jobs.
#pragma once

#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/actor/compute/compute_pool.hpp"
#include "starling/base/exception_text.hpp"
#include "starling/engine/core/worker/worker.hpp"
#include "starling/engine/exchange/layout.hpp"
#include "starling/engine/work/gradients.hpp"
#include "starling/models/model.hpp"
#include "starling/models/optimizer/compression.hpp"

namespace starling::actor {

/// Calls `run`, which is a user's code. Returns the message of the exception that it threw, at most
/// its first `exception_text_max` bytes, or nullopt if it threw none.
template <class F>
[[nodiscard]] std::optional<std::string> run_catching(F&& run) noexcept {
  try {
    run();
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return "out of memory; valid: a smaller model or batch, fewer workers or threads";
  } catch (const std::exception& fault) {
    return exception_text(fault);
  } catch (...) {
    return "an exception of unknown type";
  }
}

/// The input of one step of one worker.
struct StepInput {
  core::MemberId worker;
  /// The number of steps that the worker has finished.
  core::Step step;
  /// The worker's part of the job's work in this step.
  core::WorkShare share;
  /// The values that the worker read: one for each element of the result of plan(), in its order;
  /// if chooses_reads() is false, one for each range of the model. Empty for plan() and prefetch().
  std::span<const core::Value> values;
  /// If workers hand in early: the most samples that compute() may use, and a flag; once the flag
  /// is true, compute() returns the update of the samples so far.
  core::Cut cut = {};
  /// compute() may call this function with parts of the update that are complete before the whole
  /// (core::PartsSink). Null if the update must be given whole.
  std::function<void(core::EarlyParts parts)> on_parts = {};
};

struct StepResult {
  core::Update update;
  /// Why the update cannot be pushed, for example because it has a NaN. If set, nothing is pushed
  /// and the job fails.
  std::optional<std::string> fault;
};

/// A job's computation. Several threads call it at once: the compute pool's and, if the computation
/// is brief and does not wait for actors, those of the workers' actors. If plan() or compute()
/// throws, the worker tries the step again, and the job fails after JobOptions::attempts failures
/// in a row. If evaluate() throws, the job fails at once. An exception of prefetch() is ignored.
class Task {
 public:
  virtual ~Task() = default;

  [[nodiscard]] virtual const core::Layout& layout() const = 0;
  /// True if plan() says which ranges a step reads; otherwise each step reads all of them.
  [[nodiscard]] virtual bool chooses_reads() const { return false; }
  /// True if plan() or compute() may wait for the answers of actors. They then run on the compute
  /// pool's threads only.
  [[nodiscard]] virtual bool waits_for_actors() const { return false; }
  /// The rule by which each worker compresses its updates.
  [[nodiscard]] virtual models::Compression compression() const { return {}; }
  /// True if compute() can give parts of the update early (ExchangeOptions::has_early_parts).
  [[nodiscard]] virtual bool has_early_parts() const { return false; }
  /// True if members send elements with the precision of bfloat16
  /// (ExchangeOptions::rounds_to_bf16).
  [[nodiscard]] virtual bool rounds_to_bf16() const { return false; }
  /// Returns the ranges, or rows of them, that the worker reads for its next step.
  virtual std::vector<core::RangeRows> plan(const StepInput& input) {
    (void)input;
    return {};
  }
  /// Computes the update of the worker's next step.
  virtual StepResult compute(const StepInput& input, Scratch& scratch) = 0;
  /// Prefetches the data that compute() will use for the same worker and step. It is only a hint: a
  /// thread of the pool calls it if no other work waits.
  virtual void prefetch(const StepInput& input, Scratch& scratch) {
    (void)input;
    (void)scratch;
  }

  /// Returns the metrics of `model`: means over the test data or, if `on_training_data`, over the
  /// training data. They are empty if the task has no such data.
  virtual models::Metrics evaluate(std::span<const core::RangeState> model, bool on_training_data,
                                   Scratch& scratch) {
    (void)model;
    (void)on_training_data;
    (void)scratch;
    return {};
  }
};

}  // namespace starling::actor
