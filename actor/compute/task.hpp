/// The computation that a job's workers do, behind one interface for all kinds of jobs.
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/actor/compute/compute_pool.hpp"
#include "starling/engine/core/worker/worker.hpp"
#include "starling/engine/exchange/ownership/layout.hpp"
#include "starling/models/model.hpp"

namespace starling::actor {

/// Runs a user's code. Returns the message of the exception that it threw, or nothing if it
/// returned.
template <class F>
[[nodiscard]] std::optional<std::string> run_catching(F&& run) noexcept {
  try {
    run();
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return "out of memory; valid: a smaller model or batch, fewer workers or threads";
  } catch (const std::exception& fault) {
    return fault.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

/// One step's work for one worker.
struct StepInput {
  core::MemberId worker;
  /// Steps the worker has finished.
  core::Step step;
  /// The values that the worker read: one for each planned range.
  std::span<const core::Value> values;
};

struct StepResult {
  core::Update update;
  /// Mean loss over the step's samples; 0 if the task reports no loss.
  double loss = 0;
  /// Why the update cannot be pushed, for example because it has a NaN. If set, nothing is pushed
  /// and the job fails.
  std::optional<std::string> fault;
};

/// A job's computation. Several threads call it at once: the compute pool's and, in a LocalJob, the
/// thread of a worker's actor if the computation is brief. In a LocalJob it must therefore not send
/// requests to actors and wait for their answers. The caller catches exceptions from it, and tries
/// the step again.
class Task {
 public:
  virtual ~Task() = default;

  [[nodiscard]] virtual const core::Layout& layout() const = 0;
  /// True if plan() says which ranges a step reads; otherwise each step reads all of them.
  [[nodiscard]] virtual bool chooses_reads() const { return false; }
  virtual std::vector<core::RangeRows> plan(core::MemberId worker, core::Step step) {
    (void)worker;
    (void)step;
    return {};
  }
  virtual StepResult compute(const StepInput& input, Scratch& scratch) = 0;
  /// Prefetches the data that compute() will use for the same worker and step. Only a hint: an idle
  /// thread of the pool calls it.
  virtual void prefetch(core::MemberId worker, core::Step step, Scratch& scratch) {
    (void)worker;
    (void)step;
    (void)scratch;
  }

  /// The metrics of `model`: means over the test data or the training data; empty if the task has
  /// no such data.
  virtual models::Metrics evaluate(std::span<const core::RangeState> model, bool on_training_data,
                                   Scratch& scratch) {
    (void)model;
    (void)on_training_data;
    (void)scratch;
    return {};
  }
};

}  // namespace starling::actor
