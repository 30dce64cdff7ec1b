/// An engine's hooks as a Task. Internal to the engines.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "starling/actor/compute/task.hpp"
#include "starling/actor/engines/engine_keys.hpp"
#include "starling/actor/interfaces.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::actor::detail {

/// Asks the owners of a running job for ranges, from any thread that is no actor's.
class Fetcher {
 public:
  Fetcher(std::vector<core::OwnerId> owner_of, std::chrono::nanoseconds timeout)
      : owner_of_(std::move(owner_of)), timeout_(timeout) {}

  /// Call before the job's first step.
  void attach(const actor::DirectoryPtr& directory, caf::actor_system& system) {
    directory_ = directory;
    system_ = &system;
  }

  /// One answer for each of `wanted`, in that order. Blocks.
  [[nodiscard]] Result<std::vector<core::Value>> read(
      core::MemberId worker, std::span<const core::RangeRows> wanted) const;

 private:
  std::vector<core::OwnerId> owner_of_;
  std::chrono::nanoseconds timeout_;
  /// Weak, so that a kept task keeps no actor of a job that is over.
  std::weak_ptr<const actor::Directory> directory_;
  caf::actor_system* system_ = nullptr;
};

/// The values that a step read of one key.
template <class T>
struct KeyRead {
  bool read = false;
  /// True where `values` holds the `rows` only, else all of the key.
  bool by_rows = false;
  std::span<const T> values;
  std::vector<std::uint32_t> rows;
};

/// The state of a step that a Turn shows.
template <class T>
struct TurnState {
  const KeyTable& keys;
  const Fetcher& fetcher;
  std::uint32_t workers;
  core::MemberId worker;
  core::Step step;
  Random random;
  /// By key; empty while scheduling.
  std::vector<KeyRead<T>> reads = {};
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
  [[nodiscard]] bool plans() const override { return static_cast<bool>(hooks_.schedule); }
  std::vector<core::RangeRows> plan(core::MemberId worker, core::Step step) override;
  StepResult compute(const StepInput& input, Scratch& scratch) override;

 private:
  TurnState<T> turn(core::MemberId worker, core::Step step) const;
  std::vector<KeyRead<T>> assemble(std::span<const core::Value> values, Scratch& scratch) const;
  Result<core::Update> cut(const std::vector<Update<T>>& updates) const;
  Result<void> cut_one(const Update<T>& update, std::size_t key, core::Update& all) const;

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
