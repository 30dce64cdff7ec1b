#include "starling/actor/engines/engine.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "starling/actor/engines/engine_task.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/training/hand_ins.hpp"

namespace starling::actor {
namespace {

JobOptions to_job_options(const EngineOptions& options, core::Mode mode) {
  JobOptions job_options;
  job_options.mode = mode;
  job_options.workers = options.workers;
  const std::size_t others = options.workers > 0 ? options.workers - 1 : 0;
  job_options.barrier = options.barrier.value_or(
      core::keeps_steps_centrally(mode)
          ? barrier::Barrier{barrier::Bsp{}}
          : barrier::sampled(barrier::Ssp{4}, std::min<std::size_t>(2, others)));
  job_options.recheck = options.recheck;
  job_options.shards = options.shards;
  job_options.steps = options.steps;
  job_options.time = options.time;
  job_options.seed = options.seed;
  job_options.delay = options.delay;
  job_options.stragglers = options.stragglers;
  job_options.compute_threads = options.compute_threads;
  job_options.attempts = options.attempts;
  job_options.evaluate_train = false;
  job_options.on_progress = options.on_progress;
  job_options.progress_every = options.progress_every;
  job_options.stop = options.stop;
  return job_options;
}

Result<core::Mode> choose_mode(const EngineOptions& options, std::span<const core::Mode> modes) {
  if (!options.mode) return modes.front();
  if (std::ranges::find(modes, *options.mode) != modes.end()) return *options.mode;
  std::string valid;
  for (const core::Mode mode : modes) valid += (valid.empty() ? "" : ", ") + core::print(mode);
  return Error{"mode " + core::print(*options.mode) +
               " does not run on this engine; valid: " + valid};
}

/// Checks the options that check(JobOptions) does not check.
template <class T>
Result<void> check(const EngineOptions& options, const Hooks<T>& hooks) {
  if (!hooks.push)
    return Error{"the hook push is missing: it computes a worker's updates and is required"};
  if (options.barrier)
    if (auto valid = core::check_needs_no_gradients(*options.barrier); !valid) return valid;
  if (options.steps == barrier::unlimited && !options.time && !hooks.stop)
    return Error{"the job would never end; valid: steps, time or the hook stop"};
  if (hooks.stop && options.stop_every == 0) return Error{"stop_every=0; valid: 1 step or more"};
  if (options.fetch_timeout <= std::chrono::nanoseconds{0})
    return Error{"fetch_timeout=" + std::to_string(options.fetch_timeout.count()) +
                 "ns; valid: above 0 ns"};
  return {};
}

}  // namespace

template <class T>
class Engine<T>::Impl {
 public:
  Impl(EngineOptions options, JobOptions job_options, Hooks<T> hooks,
       std::shared_ptr<const detail::KeyTable> keys)
      : options_(std::move(options)),
        job_options_(std::move(job_options)),
        hooks_(std::make_shared<const Hooks<T>>(std::move(hooks))),
        keys_(std::move(keys)),
        states_(keys_->layout().ranges.size()) {
    if (hooks_->stop) {
      job_options_.evaluate_every = options_.stop_every;
      job_options_.stop_when = [this](const Progress& progress,
                                      const std::vector<core::RangeState>& states) {
        return hooks_->stop(progress, Tensors<T>{*keys_, states});
      };
    }
  }

  [[nodiscard]] const JobOptions& job_options() const { return job_options_; }
  [[nodiscard]] const detail::KeyTable& keys() const { return *keys_; }

  Outcome run() {
    auto initial_states = begin();
    if (!initial_states)
      return {.end = Outcome::End::failed,
              .error = std::move(initial_states).error().message,
              .last = {},
              .model = {}};
    const RunningFlag running{*this};
    const auto task = make_task();
    auto outcome = run_job(job_for(task), task, core::merge_applier<T>(task->merge()),
                           *std::move(initial_states));
    if (!outcome)
      return {.end = Outcome::End::failed,
              .error = std::move(outcome).error().message,
              .last = {},
              .model = {}};
    store_tensors(outcome->model);
    return *std::move(outcome);
  }

  Result<std::vector<T>> get(std::string_view key) const {
    const auto k = keys_->find(key);
    if (!k) return k.error();
    const std::lock_guard lock{mutex_};
    if (running_)
      return Error{
          "get: the engine is running; valid meanwhile: StepContext::get and StepContext::fetch"};
    return detail::collect<T>(*keys_, *k, states_);
  }

  Result<void> set(std::string_view key, const std::vector<T>& values) {
    const auto k = keys_->find(key);
    if (!k) return k.error();
    const std::size_t size = keys_->key(*k).size();
    if (values.size() != size)
      return Error{detail::quoted_key(key) + ": " + std::to_string(values.size()) +
                   " values are given; valid: " + std::to_string(size)};
    const auto buffer = core::Buffer::copy_of<T>(values);
    const std::lock_guard lock{mutex_};
    if (running_) return Error{"set: the engine is running; meanwhile only pushes change tensors"};
    for (auto [range, last] = keys_->ranges(*k); range < last; ++range) {
      states_[range].range = range;
      states_[range].value = {buffer, keys_->offset_in_key(range),
                              keys_->layout().ranges[range].count, nullptr};
    }
    return {};
  }

 private:
  /// Clears `running_` in its destructor.
  struct RunningFlag {
    explicit RunningFlag(Impl& impl) : impl_(impl) {}
    RunningFlag(const RunningFlag&) = delete;
    RunningFlag& operator=(const RunningFlag&) = delete;
    ~RunningFlag() {
      const std::lock_guard lock{impl_.mutex_};
      impl_.running_ = false;
    }
    Impl& impl_;
  };

  /// Marks the engine as running. Returns the states from which the job starts.
  Result<std::vector<core::RangeState>> begin() {
    const std::lock_guard lock{mutex_};
    if (running_) return Error{"run: the engine is running already"};
    running_ = true;
    return states_;
  }

  std::shared_ptr<detail::EngineTask<T>> make_task() const {
    return std::make_shared<detail::EngineTask<T>>(keys_, hooks_, job_options_.workers,
                                                   job_options_.seed,
                                                   detail::Fetcher{options_.fetch_timeout});
  }

  /// Returns the job's options. Their on_start connects the fetcher of `task` to the job's actors.
  JobOptions job_for(std::shared_ptr<detail::EngineTask<T>> task) const {
    JobOptions job_options = job_options_;
    job_options.on_start = [task = std::move(task), &users_on_start = options_.on_start](
                               const JobActorsPtr& actors, caf::actor_system& system) {
      task->fetcher().attach(actors->model, system);
      if (users_on_start) users_on_start(actors, system);
    };
    return job_options;
  }

  /// Stores the tensors of a job that has ended, and no other state, because the next run counts
  /// its steps from 0.
  void store_tensors(const std::vector<core::RangeState>& model) {
    const std::lock_guard lock{mutex_};
    for (const core::RangeState& state : model)
      if (state.value.buffer) states_[state.range].value = state.value;
  }

  EngineOptions options_;
  JobOptions job_options_;
  std::shared_ptr<const Hooks<T>> hooks_;
  std::shared_ptr<const detail::KeyTable> keys_;

  mutable std::mutex mutex_;
  bool running_ = false;
  /// The tensors, by range. Each state has only `range` and `value`.
  std::vector<core::RangeState> states_;
};

template <class T>
Engine<T>::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
template <class T>
Engine<T>::Engine(Engine&&) noexcept = default;
template <class T>
Engine<T>& Engine<T>::operator=(Engine&&) noexcept = default;
template <class T>
Engine<T>::~Engine() = default;

template <class T>
Result<std::unique_ptr<typename Engine<T>::Impl>> Engine<T>::prepare(
    EngineOptions options, std::vector<Tensor<T>> tensors, Hooks<T> hooks,
    std::span<const core::Mode> modes) {
  const auto mode = choose_mode(options, modes);
  if (!mode) return mode.error();
  if (auto valid = check(options, hooks); !valid) return std::move(valid).error();
  JobOptions job_options = to_job_options(options, *mode);
  // Tells check() that the hook may end the job. The Impl replaces this function by the hook.
  if (hooks.stop) job_options.stop_when = [](const auto&, const auto&) { return false; };
  if (auto valid = actor::check(job_options); !valid) return std::move(valid).error();
  std::vector<models::Parameter> shapes;
  shapes.reserve(tensors.size());
  for (const Tensor<T>& tensor : tensors)
    shapes.push_back({.name = tensor.key,
                      .shape = tensor.shape,
                      .row_sparse = tensor.row_sparse,
                      .decay = false});
  auto keys = detail::KeyTable::make(std::move(shapes), sizeof(T), owner_count(job_options));
  if (!keys) return std::move(keys).error();
  auto impl = std::make_unique<Impl>(std::move(options), std::move(job_options), std::move(hooks),
                                     std::make_shared<const detail::KeyTable>(*std::move(keys)));
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    auto& values = tensors[k].values;
    if (values.empty()) values.resize(impl->keys().key(k).size());
    if (auto done = impl->set(tensors[k].key, values); !done) return std::move(done).error();
  }
  return impl;
}

template <class T>
Outcome Engine<T>::run() {
  return impl_->run();
}

template <class T>
Result<std::vector<T>> Engine<T>::get(std::string_view key) const {
  return impl_->get(key);
}

template <class T>
Result<void> Engine<T>::set(std::string_view key, const std::vector<T>& values) {
  return impl_->set(key, values);
}

template <class T>
std::vector<std::string> Engine<T>::keys() const {
  return impl_->keys().names();
}

template <class T>
std::size_t Engine<T>::workers() const {
  return impl_->job_options().workers;
}

template <class T>
Result<ParameterEngine<T>> ParameterEngine<T>::make(EngineOptions options,
                                                    std::vector<Tensor<T>> tensors,
                                                    Hooks<T> hooks) {
  static constexpr core::Mode modes[] = {core::Mode::central, core::Mode::hybrid};
  auto impl = Engine<T>::prepare(std::move(options), std::move(tensors), std::move(hooks), modes);
  if (!impl) return std::move(impl).error().within("parameter engine");
  return ParameterEngine{*std::move(impl)};
}

template <class T>
Result<PeerEngine<T>> PeerEngine<T>::make(EngineOptions options, std::vector<Tensor<T>> tensors,
                                          Hooks<T> hooks) {
  static constexpr core::Mode modes[] = {core::Mode::peer};
  auto impl = Engine<T>::prepare(std::move(options), std::move(tensors), std::move(hooks), modes);
  if (!impl) return std::move(impl).error().within("peer engine");
  return PeerEngine{*std::move(impl)};
}

template class Engine<float>;
template class Engine<double>;
template class ParameterEngine<float>;
template class ParameterEngine<double>;
template class PeerEngine<float>;
template class PeerEngine<double>;

}  // namespace starling::actor
