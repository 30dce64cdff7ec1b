/// The work of a job's workers, behind one interface for every kind of job.
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

/// Runs a user's code. Returns what it threw, in words; nothing where it returned.
template <class F>
[[nodiscard]] std::optional<std::string> fault_of(F&& run) noexcept {
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
  /// The values that it read: one for each planned range.
  std::span<const core::Value> values;
};

struct StepResult {
  core::Update update;
  /// Mean loss over the step's samples; 0 where there is none.
  double loss = 0;
  /// Set where the update cannot be pushed (NaN, say): the job stops, and nothing is pushed.
  std::optional<std::string> fault;
};

/// Called by several threads at once: those of the compute pool and, in a LocalJob, where it is
/// brief, the one of the worker's actor. In a LocalJob it may therefore not ask actors. Exceptions
/// from it are caught, and the step is tried again.
class Task {
 public:
  virtual ~Task() = default;

  [[nodiscard]] virtual const core::Layout& layout() const = 0;
  /// True where plan() says what a step reads; else each step reads everything.
  [[nodiscard]] virtual bool chooses_reads() const { return false; }
  virtual std::vector<core::RangeRows> plan(core::MemberId worker, core::Step step) {
    (void)worker;
    (void)step;
    return {};
  }
  virtual StepResult compute(const StepInput& input, Scratch& scratch) = 0;
  /// Prefetches the data of the step after `step`. A hint, given where a thread has nothing better
  /// to do.
  virtual void prefetch(core::MemberId worker, core::Step step, Scratch& scratch) {
    (void)worker;
    (void)step;
    (void)scratch;
  }

  /// Means over the test data (or the training data where asked); empty where there is none.
  virtual models::Metrics evaluate(std::span<const core::RangeState> model, bool on_training_data,
                                   Scratch& scratch) {
    (void)model;
    (void)on_training_data;
    (void)scratch;
    return {};
  }
};

}  // namespace starling::actor
