/// A Task that calls a user's hooks (schedule, push, pull) in each step. Internal to the engines.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "starling/actor/compute/task.hpp"
#include "starling/actor/engines/engine_keys.hpp"
#include "starling/actor/interfaces.hpp"
#include "starling/engine/exchange/applier.hpp"

namespace starling::actor::detail {

/// Reads ranges from their owners while the job runs. Any thread may call it, except an actor's.
class Fetcher {
 public:
  /// Waits for at most a year, because CAF adds the timeout to the time of its clock.
  explicit Fetcher(std::chrono::nanoseconds timeout)
      : timeout_(std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours{24 * 365})) {}

  /// Connects the fetcher to a job. Call it before the job's first step.
  void attach(const MemberHandle& model, caf::actor_system& system) {
    model_ = caf::actor_cast<caf::actor_addr>(model);
    system_ = &system;
  }

  /// Returns the value of each range, in the order of the plan. Blocks until all owners have
  /// answered. Returns an Error if an owner refuses, or does not answer within the timeout.
  [[nodiscard]] Result<std::vector<core::Value>> read(std::span<const core::RangeRows> plan) const;

 private:
  std::chrono::nanoseconds timeout_;
  /// Weak, so that a task that outlives its job does not keep the job's actors alive.
  caf::actor_addr model_;
  caf::actor_system* system_ = nullptr;
};

/// The values of one key that a worker read for its step.
template <class T>
struct KeyRead {
  /// False if the hook `schedule` did not choose the key; the other fields are then empty.
  bool was_read = false;
  /// True if `values` has only the rows in `rows`; false if it has the whole key.
  bool by_rows = false;
  std::span<const T> values;
  std::vector<std::uint32_t> rows;
};

/// The data of a StepContext, the argument of a user's hooks: the worker, its step, the step's
/// random numbers, and the values that were read for the step.
template <class T>
struct StepState {
  const KeyTable& keys;
  const Fetcher& fetcher;
  std::uint32_t worker_count;
  /// The part of the job's work that this worker does.
  core::WorkShare share;
  core::MemberId worker;
  core::Step step;
  Random random;
  /// The values that were read, by key; empty during the hook `schedule`.
  std::vector<KeyRead<T>> reads = {};
  /// The loss that the hook `push` reported, if any.
  std::optional<double> loss = std::nullopt;
};

template <class T>
class EngineTask final : public Task {
 public:
  EngineTask(std::shared_ptr<const KeyTable> keys, std::shared_ptr<const Hooks<T>> hooks,
             std::size_t workers, std::uint64_t seed, Fetcher fetcher)
      : keys_(std::move(keys)),
        hooks_(std::move(hooks)),
        workers_(workers),
        seed_(seed),
        fetcher_(std::move(fetcher)) {}

  [[nodiscard]] Fetcher& fetcher() noexcept { return fetcher_; }
  /// Returns the function with which owners apply an update to a value: the user's hook `pull`, or
  /// addition if there is none.
  [[nodiscard]] core::Merge<T> merge() const;

  [[nodiscard]] const core::Layout& layout() const override { return keys_->layout(); }
  [[nodiscard]] bool waits_for_actors() const override { return true; }
  [[nodiscard]] bool chooses_reads() const override { return static_cast<bool>(hooks_->schedule); }
  std::vector<core::RangeRows> plan(const StepInput& input) override;
  StepResult compute(const StepInput& input, Scratch& scratch) override;

  /// Sets the function by which evaluate() computes its metrics.
  void set_evaluate(std::function<models::Metrics(const Tensors<T>&)> evaluate) {
    evaluate_ = std::move(evaluate);
  }
  /// The user's function gets the model and no samples, so it would return the same metrics for
  /// training and test data. They are reported once, as metrics on test data.
  models::Metrics evaluate(std::span<const core::RangeState> model, bool on_training_data,
                           Scratch&) override {
    return evaluate_ && !on_training_data ? evaluate_(Tensors<T>{*keys_, model})
                                          : models::Metrics{};
  }

 private:
  /// Makes the data of the StepContext for a step, without the values that were read.
  StepState<T> make_step_state(const StepInput& input) const;
  /// Groups by key the values that were read for a step.
  std::vector<KeyRead<T>> assemble(std::span<const core::Value> values, Scratch& scratch) const;
  /// Checks the updates that the hook `push` returned, and splits them by range.
  Result<core::Update> split_by_range(const std::vector<Update<T>>& updates) const;
  /// Checks and splits the update of the key at position `key`, and appends its parts to `out`.
  Result<void> split_one_by_range(const Update<T>& update, std::size_t key,
                                  core::Update& out) const;

  std::shared_ptr<const KeyTable> keys_;
  std::shared_ptr<const Hooks<T>> hooks_;
  std::function<models::Metrics(const Tensors<T>&)> evaluate_;
  std::size_t workers_;
  std::uint64_t seed_;
  Fetcher fetcher_;
};

extern template class EngineTask<float>;
extern template class EngineTask<double>;

}  // namespace starling::actor::detail
