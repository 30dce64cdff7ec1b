/// The hooks that a user of the parameter engine or the peer engine writes, and the types of their
/// arguments. Several compute threads call hooks at once, but never for the same worker. Users
/// include engine.hpp, which includes this file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/actor/job/job.hpp"
#include "starling/base/random.hpp"
#include "starling/base/result.hpp"

namespace starling::actor {

namespace detail {
template <class T>
struct StepState;
class KeyTable;
}  // namespace detail

/// A named tensor with its initial values: dense, or row-sparse if it was made by by_rows().
template <class T>
struct Tensor {
  Tensor(std::string name, std::vector<std::size_t> extents = {}, std::vector<T> elements = {})
      : key(std::move(name)), shape(std::move(extents)), values(std::move(elements)) {}

  /// Makes a row-sparse tensor: workers may read and update single rows of it. A row is all
  /// elements with the same first index, and has at most 256 KiB.
  static Tensor by_rows(std::string name, std::vector<std::size_t> extents,
                        std::vector<T> elements = {}) {
    Tensor tensor{std::move(name), std::move(extents), std::move(elements)};
    tensor.row_sparse = true;
    return tensor;
  }

  std::string key;
  /// The extents, outermost first, each above 0. An empty shape is a scalar.
  std::vector<std::size_t> shape;
  /// The elements, row-major. Empty: all zeros.
  std::vector<T> values;
  bool row_sparse = false;
};

/// A key that a worker wants to read, or rows of a row-sparse key.
struct Selection {
  std::string key;
  /// The rows, in any order, without repetition; nullopt: the whole key.
  std::optional<std::vector<std::uint32_t>> rows = std::nullopt;
};

/// The update that a worker computed for one key.
template <class T>
struct Update {
  std::string key;
  /// The elements of the whole key or, if `rows` is set, of its rows, in the order of `rows`. NaN
  /// is refused; infinities are accepted.
  std::vector<T> values;
  /// The rows, for row-sparse keys: in any order, without repetition; nullopt: the whole key.
  std::optional<std::vector<std::uint32_t>> rows = std::nullopt;
};

/// The key and the offset of the elements that the hook `pull` gets.
struct KeySlice {
  std::string_view key;
  /// The offset of the first of these elements in the key.
  std::size_t offset;
};

/// The argument of the hooks `schedule` and `push`: a worker, its step, and what the worker has
/// read for the step. A StepContext and the spans that it returns are valid only during the call of
/// the hook.
///
/// Functions without a Result throw std::invalid_argument for mistakes such as an unknown key. The
/// job then fails with an error that names the worker, the step and the nearest valid key.
template <class T>
class StepContext {
 public:
  explicit StepContext(detail::StepState<T>& state) : state_(state) {}

  [[nodiscard]] core::MemberId worker() const;
  /// The number of steps that the worker has finished in this run.
  [[nodiscard]] core::Step step() const;
  /// The number of workers with which the job began.
  [[nodiscard]] std::uint32_t workers() const;
  /// The number of the worker's part of the job's work in this step, counted from 0, and below the
  /// number of parts, which is shares(). There is a part for each running worker: on a cluster they
  /// share the work anew when some join, leave or die, and workers that have ended get no part. In
  /// one process share() is worker(), and shares() is workers(). Under bsp all workers begin the
  /// new parts with the same step, so that no step has a part twice; a step in which a worker has
  /// left or died lacks that worker's part.
  [[nodiscard]] std::uint32_t share() const;
  [[nodiscard]] std::uint32_t shares() const;
  /// Random numbers, seeded by (seed, worker, step): if a step is tried again, it draws the same
  /// numbers.
  [[nodiscard]] Random& random();

  /// Returns the values of `key` that were read for this step, row-major. If `schedule` chose rows,
  /// these are the chosen rows in ascending order. For `push` only.
  [[nodiscard]] std::span<const T> get(std::string_view key) const;
  /// Returns one row of the values that were read. For `push` only.
  [[nodiscard]] std::span<const T> row(std::string_view key, std::uint32_t row) const;

  /// Asks the owners for the current values of a key or of rows, whether `schedule` chose them or
  /// not. Blocks this compute thread until all owners have answered, or fails after
  /// EngineOptions::fetch_timeout. The values may be newer than those of get(), and parts of them
  /// may be of different steps, even under bsp.
  [[nodiscard]] Result<std::vector<T>> fetch(const Selection& selection) const;

  /// Reports the loss of this step. Progress::loss is the mean over all steps of all workers. For
  /// `push` only.
  void report(double loss);

 private:
  detail::StepState<T>& state_;
};

/// All tensors of a running job, for the hook `stop`. Under asynchronous barriers, or with more
/// than one owner, parts of the tensors may be some steps apart.
template <class T>
class Tensors {
 public:
  Tensors(const detail::KeyTable& keys, std::span<const core::RangeState> states)
      : keys_(keys), states_(states) {}

  /// Returns all elements of a key, row-major. Throws std::invalid_argument if there is no such
  /// key: the job then fails.
  [[nodiscard]] std::vector<T> get(std::string_view key) const;

 private:
  const detail::KeyTable& keys_;
  std::span<const core::RangeState> states_;
};

/// The functions that a user gives to an engine. If `schedule` or `push` throws, the step is tried
/// again; after EngineOptions::attempts failures in a row the job fails. A hook that keeps state
/// for a worker should therefore change that state last, when nothing can throw any more.
template <class T>
struct Hooks {
  /// Returns the keys and rows that the worker reads before its step. Absent: it reads all keys.
  std::function<std::vector<Selection>(StepContext<T>& context)> schedule = {};
  /// Computes the worker's updates in its step and returns them, at most one for each key. The
  /// engine then pushes them to their owners. Required.
  std::function<std::vector<Update<T>>(StepContext<T>& context)> push = {};
  /// Merges an update that a worker has pushed into the owner's value of the key. (Workers do not
  /// call it; they read what `schedule` returns.) Both arguments have the same length: they
  /// are consecutive elements of one key, or whole rows of a row-sparse key. The update of one key
  /// may be split over several calls. Absent: value += update. Under bsp it is called for the
  /// pushes of a step in worker order. If it throws, the job fails at once, because the value may
  /// be half changed.
  std::function<void(const KeySlice& slice, std::span<T> value, std::span<const T> update)> pull =
      {};
  /// Returns true to end the job. Called each time that the workers' mean step has grown by
  /// EngineOptions::stop_every, on a compute thread, while the workers go on. A call that becomes
  /// due while one runs and another waits is left out. Absent: the hook never ends the job.
  std::function<bool(const Progress& progress, const Tensors<T>& tensors)> stop = {};
};

}  // namespace starling::actor
