/// The parameter engine and the peer engine: any iterative algorithm over keyed tensors, with the
/// actors, barriers and modes of `train`. The same hooks run on either; the engines differ in the
/// owners of the tensors: servers (parameter engine), or all workers, each of a part (peer engine).
///
///     // Four workers average their numbers, each moving "mean" towards its own.
///     using Engine = starling::actor::PeerEngine<double>;
///     auto engine = Engine::make(
///         {.workers = 4, .barrier = barrier::parse("pssp:s=4,beta=2").value(), .steps = 500},
///         {{"mean", {1}}},
///         {.push = [&](auto& turn) -> std::vector<actor::Update<double>> {
///           const double mine = numbers[turn.worker()];
///           return {{"mean", {0.01 * (mine - turn.get("mean")[0])}}};
///         }});
///     if (!engine) return complain(engine.error().message);
///     const auto outcome = engine->run();
///     std::cout << engine->get("mean").value()[0];
///
/// Source: the engines of the OCaml framework Actor (Wang, Catterall, Mortier), with the hooks
/// schedule, push, pull, barrier and stop.
#pragma once

#include <memory>

#include "starling/actor/engines/engine_hooks.hpp"

namespace starling::actor {

/// Fields that JobOptions has too mean the same there.
struct EngineOptions {
  std::size_t workers = 4;
  /// The parameter engine runs central (its default) or hybrid, the peer engine peer.
  std::optional<core::Mode> mode = std::nullopt;
  /// Built in or a predicate of one's own. nullopt: bsp in central mode, else pssp:s=4,beta=2 (with
  /// fewer than 3 workers as many others as there are).
  std::optional<barrier::Barrier> barrier = std::nullopt;
  std::optional<barrier::Recheck> recheck = std::nullopt;
  std::size_t shards = 0;
  /// Steps of each worker in one run. Without them, `time` or Hooks::stop must end it.
  core::Step steps = barrier::finished;
  std::optional<std::chrono::nanoseconds> time = std::nullopt;
  /// Asks Hooks::stop whenever the workers have made this many more steps on average; above 0.
  core::Step stop_every = 1;
  std::uint64_t seed = 1;
  Distribution delay = {};
  std::vector<StragglerRule> stragglers = {};
  std::size_t compute_threads = 0;
  int attempts = 3;
  /// How long Turn::fetch waits for the owners.
  std::chrono::nanoseconds fetch_timeout = std::chrono::seconds{1};
  std::function<bool(const Progress&)> on_progress = {};
  std::chrono::nanoseconds progress_every = std::chrono::milliseconds{200};
  std::stop_token stop = {};
  OnStart on_start = {};
};

/// The common part of both engines. T is the element type of all tensors: float or double.
///
/// Thread-safe, but for moving. During run(), get, set and run from outside are refused: the hooks
/// read through their Turn, and write by what they push.
template <class T>
class Engine {
 public:
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  /// Runs until all steps are made, the time is up, or someone stops it; blocks. May be called
  /// again: goes on from the tensors as they are, with steps counted anew. Options were checked
  /// when the engine was made, so what can fail is the job: see Outcome::end and error. After a
  /// failure the tensors are as far as they could be saved.
  [[nodiscard]] Outcome run();

  /// All of a key, row-major.
  [[nodiscard]] Result<std::vector<T>> get(std::string_view key) const;
  /// Replaces all of a key. Requires as many values as it has elements.
  Result<void> set(std::string_view key, const std::vector<T>& values);

  /// In the order in which they were given.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::size_t workers() const;

 protected:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  /// Checks everything that can be checked before a job runs. The first of `modes` is the default.
  static Result<std::unique_ptr<Impl>> prepare(EngineOptions options,
                                               std::vector<Tensor<T>> tensors, Hooks<T> hooks,
                                               std::span<const core::Mode> modes);

 private:
  std::unique_ptr<Impl> impl_;
};

/// Tensors live with server shards. Central mode has all barriers, hybrid mode asp and sampled
/// ones.
template <class T = float>
class ParameterEngine : public Engine<T> {
 public:
  /// Refuses options that cannot work, duplicate keys, wrong sizes and missing hooks.
  static Result<ParameterEngine> make(EngineOptions options, std::vector<Tensor<T>> tensors,
                                      Hooks<T> hooks);

 private:
  using Engine<T>::Engine;
};

/// Tensors are spread over the workers; no servers. Barriers: asp and sampled ones.
template <class T = float>
class PeerEngine : public Engine<T> {
 public:
  /// Refuses options that cannot work, duplicate keys, wrong sizes and missing hooks.
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
