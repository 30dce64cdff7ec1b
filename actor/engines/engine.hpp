/// The parameter engine and the peer engine. They run any iterative algorithm over keyed tensors,
/// with the actors, barriers and modes of `train`. The same hooks run on both. In the parameter
/// engine, servers own the tensors; in the peer engine, each worker owns a part of them.
///
///     // Four workers average their numbers: each moves "mean" towards its own number.
///     using Engine = starling::actor::PeerEngine<double>;
///     auto engine = Engine::make(
///         {.workers = 4, .barrier = barrier::parse("pssp:s=4,beta=2").value(), .steps = 500},
///         {{"mean", {1}}},
///         {.push = [&](auto& context) -> std::vector<actor::Update<double>> {
///           const double mine = numbers[context.worker()];
///           return {{"mean", {0.01 * (mine - context.get("mean")[0])}}};
///         }});
///     if (!engine) return fail(engine.error().message);
///     const auto outcome = engine->run();
///     std::cout << engine->get("mean").value()[0];
///
/// In the example, `numbers` is the user's std::vector<double> with a number for each worker, and
/// fail() is a function of the user's that reports an error.
///
/// The hooks are those of the engines in the OCaml framework Actor (Wang, Catterall, Mortier):
/// schedule, push, pull and stop. That framework's fifth hook, barrier, is EngineOptions::barrier.
#pragma once

#include <memory>

#include "starling/actor/engines/engine_hooks.hpp"

namespace starling::actor {

/// A field that has no comment here means the same as in JobOptions.
struct EngineOptions {
  std::size_t workers = 4;
  /// Central (the default) or hybrid for the parameter engine; peer for the peer engine.
  std::optional<core::Mode> mode = std::nullopt;
  /// A built-in barrier or a predicate of the user's. The engines refuse barriers that need
  /// gradients (barrier::moves_with_descent()) or samples (barrier::hands_in_early()), and each
  /// mode refuses some (core::check()). Default: bsp in central mode, otherwise pssp:s=4,beta=2,
  /// with a smaller beta if there are fewer than 2 other workers.
  std::optional<barrier::Barrier> barrier = std::nullopt;
  std::optional<barrier::Recheck> recheck = std::nullopt;
  /// 0 stands for the default number; see JobOptions.
  std::size_t shards = 0;
  /// Each worker makes this many steps in one run. Without a limit of steps, `time` or Hooks::stop
  /// must end the run.
  core::Step steps = barrier::unlimited;
  std::optional<std::chrono::nanoseconds> time = std::nullopt;
  /// Hooks::stop is called each time that the workers' mean step has grown by this much; above 0.
  core::Step stop_every = 1;
  std::uint64_t seed = 1;
  Distribution delay = {};
  std::vector<StragglerRule> stragglers = {};
  /// 0 stands for the default number; see JobOptions.
  std::size_t compute_threads = 0;
  int attempts = 3;
  /// How long StepContext::fetch() waits for the owners' answers.
  std::chrono::nanoseconds fetch_timeout = std::chrono::seconds{1};
  std::function<bool(const Progress&)> on_progress = {};
  std::chrono::nanoseconds progress_every = std::chrono::milliseconds{200};
  std::stop_token stop = {};
  OnStart on_start = {};
};

/// The common part of both engines. T is the element type of all tensors: float or double.
///
/// Thread-safe, except for moving. During run(), get(), set() and a second run() fail: the
/// hooks read through their StepContext, and write by returning updates.
template <class T>
class Engine {
 public:
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  /// Runs a job; blocks until all steps are made, the time is up, Hooks::stop returns true, or the
  /// job is stopped or fails. May be called again: the next run resumes from the tensors as they
  /// are, and counts its steps from 0. If the job fails, Outcome::end is `failed` and
  /// Outcome::error says why. Each part of a tensor then has the value that was read from its owner
  /// or, if it could not be read, the value from before the run.
  [[nodiscard]] Outcome run();

  /// Returns all elements of a key, row-major.
  [[nodiscard]] Result<std::vector<T>> get(std::string_view key) const;
  /// Replaces all elements of a key. Returns an Error unless there are as many values as elements.
  Result<void> set(std::string_view key, const std::vector<T>& values);

  /// The names of the tensors, in the order in which they were given.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::size_t workers() const;

 protected:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  /// Checks all that can be checked before a job runs. `modes` are the valid modes; the first is
  /// the default.
  static Result<std::unique_ptr<Impl>> prepare(EngineOptions options,
                                               std::vector<Tensor<T>> tensors, Hooks<T> hooks,
                                               std::span<const core::Mode> modes);

 private:
  std::unique_ptr<Impl> impl_;
};

/// An engine whose tensors are owned by server shards. In central mode it supports every barrier
/// that EngineOptions::barrier admits, except those that draw with weights
/// (barrier::is_weighted()); in hybrid mode it supports asp and sampled barriers.
template <class T = float>
class ParameterEngine : public Engine<T> {
 public:
  /// Makes an engine. Returns an Error if an option cannot work, if there is no tensor, if a tensor
  /// has no key, a key that another one has, an invalid shape or the wrong number of values, or if
  /// Hooks::push is missing.
  static Result<ParameterEngine> make(EngineOptions options, std::vector<Tensor<T>> tensors,
                                      Hooks<T> hooks);

 private:
  using Engine<T>::Engine;
};

/// An engine without servers: each worker owns a part of the tensors. It supports asp and
/// sampled barriers.
template <class T = float>
class PeerEngine : public Engine<T> {
 public:
  /// Makes an engine. Returns an Error if an option cannot work, if there is no tensor, if a tensor
  /// has no key, a key that another one has, an invalid shape or the wrong number of values, or if
  /// Hooks::push is missing.
  static Result<PeerEngine> make(EngineOptions options, std::vector<Tensor<T>> tensors,
                                 Hooks<T> hooks);

 private:
  using Engine<T>::Engine;
};

extern template class Engine<float>;
extern template class Engine<double>;
extern template class ParameterEngine<float>;
extern template class ParameterEngine<double>;
extern template class PeerEngine<float>;
extern template class PeerEngine<double>;

}  // namespace starling::actor
