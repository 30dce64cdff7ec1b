/// EngineTask: the Task that runs the hooks of an engine's user as the steps of a job's workers.
/// Internal to the engines.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "starling/actor/compute/task.hpp"
#include "starling/actor/engines/engine_keys.hpp"
#include "starling/actor/interfaces.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::actor::detail {

/// Reads ranges from their owners while the job runs. Any thread but an actor's.
class Fetcher {
 public:
  Fetcher(std::vector<core::OwnerId> owner_by_range, std::chrono::nanoseconds timeout)
      : owner_by_range_(std::move(owner_by_range)), timeout_(timeout) {}

  /// Call before the job's first step.
  void attach(const actor::DirectoryPtr& directory, caf::actor_system& system) {
    directory_ = directory;
    system_ = &system;
  }

  /// Returns the value of each wanted range, in the order of `wanted`. Blocks until all owners have
  /// answered; an Error where one does not in time.
  [[nodiscard]] Result<std::vector<core::Value>> read(
      core::MemberId worker, std::span<const core::RangeRows> wanted) const;

 private:
  std::vector<core::OwnerId> owner_by_range_;
  std::chrono::nanoseconds timeout_;
  /// Weak, so that a task that outlives its job does not keep the job's actors alive.
  std::weak_ptr<const actor::Directory> directory_;
  caf::actor_system* system_ = nullptr;
};

/// The values of one key that a worker read for its step.
template <class T>
struct KeyRead {
  /// False where the hook `schedule` did not choose the key.
  bool was_read = false;
  /// True where `values` holds only the rows in `rows`; false where it holds the whole key.
  bool by_rows = false;
  std::span<const T> values;
  std::vector<std::uint32_t> rows;
};

/// The data behind a Turn, which is the context that a user's hooks are called with: whose step it
/// is, the step's random numbers, and the values that were read for it.
template <class T>
struct TurnState {
  const KeyTable& keys;
  const Fetcher& fetcher;
  std::uint32_t workers;
  core::MemberId worker;
  core::Step step;
  Random random;
  /// By key; empty during the hook `schedule`, before anything is read.
  std::vector<KeyRead<T>> reads = {};
  /// The loss that the hook `push` reported.
  double loss = 0;
};

template <class T>
class EngineTask final : public Task {
 public:
  EngineTask(std::shared_ptr<const KeyTable> keys, const Hooks<T>& hooks, std::size_t workers,
             std::uint64_t seed, Fetcher fetcher)
      : keys_(std::move(keys)),
        hooks_(hooks),
        workers_(workers),
        seed_(seed),
        fetcher_(std::move(fetcher)) {}

  [[nodiscard]] Fetcher& fetcher() noexcept { return fetcher_; }
  /// How owners apply updates: by the `pull` hook, or by adding.
  [[nodiscard]] core::Merge<T> merge() const;

  [[nodiscard]] const core::Layout& layout() const override { return keys_->layout(); }
  [[nodiscard]] bool chooses_reads() const override { return static_cast<bool>(hooks_.schedule); }
  std::vector<core::RangeRows> plan(core::MemberId worker, core::Step step) override;
  StepResult compute(const StepInput& input, Scratch& scratch) override;

 private:
  /// Makes the data of the Turn for a step, without values.
  TurnState<T> make_turn(core::MemberId worker, core::Step step) const;
  /// Sorts the values that were read for a step by key.
  std::vector<KeyRead<T>> assemble(std::span<const core::Value> values, Scratch& scratch) const;
  Result<core::Update> split_by_range(const std::vector<Update<T>>& updates) const;
  Result<void> split_one_by_range(const Update<T>& update, std::size_t key,
                                  core::Update& out) const;

  std::shared_ptr<const KeyTable> keys_;
  /// The engine's hooks, which outlive the job.
  const Hooks<T>& hooks_;
  std::size_t workers_;
  std::uint64_t seed_;
  Fetcher fetcher_;
};

extern template class EngineTask<float>;
extern template class EngineTask<double>;

}  // namespace starling::actor::detail
