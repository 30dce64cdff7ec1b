/// The hooks over keyed tensors that a user of the parameter engine or the peer engine writes.
/// Hooks are called from several compute threads at once, but for one worker never twice at a time.
/// Reached through engine.hpp.
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
struct TurnState;
class KeyTable;
}  // namespace detail

/// A named tensor as an engine starts with it: dense, or row-sparse where made by_rows.
template <class T>
struct Tensor {
  Tensor(std::string name, std::vector<std::size_t> extents = {}, std::vector<T> elements = {})
      : key(std::move(name)), shape(std::move(extents)), values(std::move(elements)) {}

  /// Read and updated by rows of the first dimension, of 256 KiB at most each.
  static Tensor by_rows(std::string name, std::vector<std::size_t> extents,
                        std::vector<T> elements = {}) {
    Tensor tensor{std::move(name), std::move(extents), std::move(elements)};
    tensor.row_sparse = true;
    return tensor;
  }

  std::string key;
  /// Extents, outermost first, each above 0; an empty shape is a scalar.
  std::vector<std::size_t> shape;
  /// Row-major; empty: zeros.
  std::vector<T> values;
  bool row_sparse = false;
};

/// A key that a worker wants to read, or rows of a row-sparse key.
struct Selection {
  std::string key;
  /// In any order, without repetition; nullopt: all of it.
  std::optional<std::vector<std::uint32_t>> rows = std::nullopt;
};

/// The update that a worker computed for one key.
template <class T>
struct Update {
  std::string key;
  /// As many as the key has elements, or row after row as in `rows`. No NaN; infinities may be.
  std::vector<T> values;
  /// For row-sparse keys: which rows, in any order, without repetition; nullopt: all of them.
  std::optional<std::vector<std::uint32_t>> rows = std::nullopt;
};

/// Where the elements handed to `pull` belong.
struct Site {
  std::string_view key;
  /// First element, counted from the key's first.
  std::size_t offset;
};

/// The context that the hooks `schedule` and `push` are called with: one worker's step. It and its
/// spans are valid during the call.
///
/// Functions without a Result throw std::invalid_argument where no caller could go on (an unknown
/// key, say): the job then fails, naming worker, step and the nearest valid key.
template <class T>
class Turn {
 public:
  explicit Turn(detail::TurnState<T>& state) : state_(state) {}

  [[nodiscard]] core::MemberId worker() const;
  /// Steps the worker has finished, counted from 0 in each run.
  [[nodiscard]] core::Step step() const;
  [[nodiscard]] std::uint32_t workers() const;
  /// Seeded by (seed, worker, step): a step that is tried again draws the same numbers.
  [[nodiscard]] Random& random();

  /// Returns the values of `key` that were read as scheduled, row-major; of chosen rows, row after
  /// row, ascending. For `push` only.
  [[nodiscard]] std::span<const T> get(std::string_view key) const;
  /// Returns one row of the values that were read.
  [[nodiscard]] std::span<const T> row(std::string_view key, std::uint32_t row) const;

  /// Asks the owners for what they hold now, scheduled or not. Blocks this compute thread until
  /// they have answered, or fails after EngineOptions::fetch_timeout. Under bsp too it may be newer
  /// than what get() says, and of different rounds in different parts.
  [[nodiscard]] Result<std::vector<T>> fetch(const Selection& selection) const;

  /// A figure of this step; the mean over all steps of all workers is Progress::loss. Push only.
  void report(double loss);

 private:
  detail::TurnState<T>& state_;
};

/// All tensors of a running job as `stop` sees them. Under asynchronous barriers, and over more
/// than one owner, the parts of it may be some steps apart.
template <class T>
class Tensors {
 public:
  Tensors(const detail::KeyTable& keys, std::span<const core::RangeState> states)
      : keys_(keys), states_(states) {}

  /// All of a key, row-major. Throws std::invalid_argument where there is no such key: the job then
  /// fails.
  [[nodiscard]] std::vector<T> get(std::string_view key) const;

 private:
  const detail::KeyTable& keys_;
  std::span<const core::RangeState> states_;
};

/// A hook that throws has its step tried again; EngineOptions::attempts failures in a row end the
/// job. Hooks that keep state of a worker change it last.
template <class T>
struct Hooks {
  /// Returns the keys and rows that the worker reads before its step; absent: everything.
  std::function<std::vector<Selection>(Turn<T>& turn)> schedule = {};
  /// Returns the updates that the worker computes from them. Required. No key may occur twice in
  /// one answer.
  std::function<std::vector<Update<T>>(Turn<T>& turn)> push = {};
  /// At the owner: makes `value` the value merged with `update`, which are equally long:
  /// consecutive elements of one key, whole rows of a row-sparse one. A key may come in several
  /// pieces. Absent: value += update. Under bsp called for the pushes of a step in worker order. If
  /// it throws, the job fails at once: the value is half changed.
  std::function<void(const Site& site, std::span<T> value, std::span<const T> update)> pull = {};
  /// True where the job is done. Asked about every EngineOptions::stop_every steps, at most each
  /// 20 ms; workers go on meanwhile. Absent: never.
  std::function<bool(const Progress& progress, const Tensors<T>& tensors)> stop = {};
};

}  // namespace starling::actor
