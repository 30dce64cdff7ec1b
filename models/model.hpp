/// The functions that a type must have so that Starling can train it. A model is a plain value: it
/// has no actor, no thread, and no state that computing a gradient changes. Many threads call its
/// functions at once.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/models/kernels/arena.hpp"
#include "starling/models/parameter.hpp"

namespace starling::models {

/// Indices of samples in a data set.
using Batch = std::span<const std::uint32_t>;

/// The arguments of gradient and evaluate besides parameters and data.
struct ComputeContext {
  /// For a gradient: seeded by (job seed, worker, step), so that a step repeats exactly, dropout
  /// included. For an evaluation: the same numbers in each call.
  Random& random;
  /// Scratch memory, which is emptied before every call.
  Arena& arena;
  /// True if a gradient is computed, false in an evaluation.
  bool training = true;
  /// If it is set, a model with early parts (EarlyPartsModel) calls it while it computes a
  /// gradient: the elements of `g` from `first` on are final. `first` never grows.
  const std::function<void(std::size_t first)>* on_final = nullptr;
};

/// A metric of a batch, as a mean over its samples.
struct Metric {
  std::string name;
  double value = 0;
  bool operator==(const Metric&) const = default;
};
/// By convention the first metric is "loss".
using Metrics = std::vector<Metric>;

/// The rows of one row-sparse parameter that a batch reads and changes.
struct TouchedRows {
  /// The parameter's index in parameters().
  std::size_t parameter = 0;
  /// Ascending, without repetition.
  std::vector<std::uint32_t> rows;
};

/// A set of samples addressed by index, immutable while a job runs.
template <class D>
concept DataSet = requires(const D data) {
  { data.size() } -> std::convertible_to<std::size_t>;
};

/// Data with a function prefetch(batch), which begins to load the samples that a later step will
/// read, from a disk into memory or from memory into a cache, and does not wait for them. The call
/// is only a hint: the later step may never run, and must read the same data without the call. Many
/// threads call prefetch at once; `batch` is valid during the call.
template <class D>
concept PrefetchableData = DataSet<D> && requires(const D data, Batch batch) {
  data.prefetch(batch);
};

/// A model over data of type D. `w` is the whole parameter vector in the order of parameters(), `g`
/// its gradient in the same order. `batch` has at least one sample.
///
/// - initialise: sets all elements of its first argument to the initial parameters.
/// - gradient: adds the gradient of the mean loss over `batch` to `g`, which is zero on entry, and
///   returns that mean loss. It does not apply weight decay.
/// - evaluate: returns metrics as means over `batch`, the loss first.
template <class M, class D>
concept Model = DataSet<D> &&
    requires(const M model, const D data, Batch batch, std::span<typename M::Scalar> g,
             std::span<const typename M::Scalar> w, Random random, ComputeContext context) {
  requires std::floating_point<typename M::Scalar>;
  { model.parameters() } -> std::convertible_to<std::vector<Parameter>>;
  {model.initialise(g, random)};
  { model.gradient(w, data, batch, g, context) } -> std::convertible_to<double>;
  { model.evaluate(w, data, batch, context) } -> std::convertible_to<Metrics>;
};

/// A model that can list the rows of its row-sparse parameters that a batch touches. gradient and
/// evaluate may then read and write only those rows of these parameters.
template <class M, class D>
concept RowSparseModel = Model<M, D> && requires(const M model, const D data, Batch batch) {
  { model.touched(data, batch) } -> std::convertible_to<std::vector<TouchedRows>>;
};

/// A model that computes the last elements of its gradient first, and says when they are final
/// (ComputeContext::on_final).
template <class M>
concept EarlyPartsModel = requires {
  requires M::has_early_parts;
};

/// A model that can predict one number for each sample of `batch`, a class or a value, which it
/// writes to `out`.
template <class M, class D>
concept PredictingModel = Model<M, D> &&
    requires(const M model, std::span<const typename M::Scalar> w, const D data, Batch batch,
             ComputeContext context, std::span<float> out) {
  model.predict(w, data, batch, context, out);
};

/// A model that can refuse data from which it cannot learn; the Error gives the reason.
template <class M, class D>
concept CheckedModel = Model<M, D> && requires(const M model, const D data) {
  { model.accepts(data) } -> std::same_as<Result<void>>;
};

}  // namespace starling::models
