/// Computes a worker's training step: assembles the parameter vector from the values that the
/// worker has pulled, computes the gradient of one batch, and returns it range by range. Live and
/// simulated jobs use the same code.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/engine/core/worker/worker.hpp"
#include "starling/engine/exchange/buckets.hpp"
#include "starling/engine/exchange/layout.hpp"
#include "starling/models/kernels/kernels.hpp"
#include "starling/models/model.hpp"
#include "starling/models/optimizer/clip.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::core {

/// The number of the random stream from which a job draws the parameters of a new model.
inline constexpr std::uint64_t initial_stream = 0x1217;

/// Returns the states of all ranges with the values of the parameter vector `vector`. They have no
/// slots, and all counts are 0.
template <class T>
[[nodiscard]] std::vector<RangeState> to_ranges(const Layout& layout, std::span<const T> vector) {
  const auto buffer = Buffer::copy_of<T>(vector);
  std::vector<RangeState> states(layout.ranges.size());
  for (std::size_t r = 0; r < states.size(); ++r) {
    states[r].range = static_cast<RangeId>(r);
    states[r].value = {buffer, layout.ranges[r].offset, layout.ranges[r].count, nullptr};
  }
  return states;
}

/// Returns the parameter vector with the values of all ranges. Requires: one state for each range.
template <class T>
[[nodiscard]] std::vector<T> to_vector(const Layout& layout, std::span<const RangeState> states) {
  std::vector<T> vector(layout.size);
  for (const auto& state : states)
    std::ranges::copy(state.value.as<T>(), vector.begin() + static_cast<std::ptrdiff_t>(
                                                                layout.ranges[state.range].offset));
  return vector;
}

/// Memory for computing steps, reused from step to step. Not thread-safe.
struct Scratch {
  /// Holds the parameter vector, and the gradient of row-sparse steps.
  models::Arena parameters;
  /// The model's memory; emptied before each gradient.
  models::Arena work;
  /// Holds the indices of a step's samples.
  std::vector<std::uint32_t> batch;
};

struct GradientOptions {
  std::size_t workers = 1;
  /// The number of samples in a worker's step. If the worker's share of the data is smaller, a step
  /// uses all of the share. If `dynamic`, the number of samples in a step of all workers.
  std::size_t batch = 64;
  bool dynamic = false;
  /// Applied to each gradient, except to parameters that are not trained.
  models::Clip clip = {};
  std::uint64_t seed = 1;
  /// How the samples were dealt before; see models::SampleOrder.
  std::vector<models::FormerDeal> former_deals = {};
};

/// How much of its batch a worker computes if workers hand in early.
struct Cut {
  /// The worker computes no more than the first `samples_max` samples.
  std::uint64_t samples_max = UINT64_MAX;
  /// If this is not null, the worker stops once the flag is true, after one micro-batch
  /// (micro_batch_of()) at least. If it is null, the worker computes without micro-batches.
  const std::atomic<bool>* hand_in = nullptr;
};

/// Takes parts of a gradient while the others are computed.
struct PartsSink {
  /// In the order in which they are final: that of make_buckets().
  std::span<const Bucket> buckets;
  /// Called on the thread that computes, when the parts of a bucket are final, with these parts and
  /// those of all buckets before it. Not called for the last bucket, whose parts come with the
  /// whole gradient. The elements of the parts are those of the gradient, and do not change any
  /// more.
  const std::function<void(EarlyParts parts)>& take;
};

/// A step's gradient.
struct Gradient {
  Update update;
  /// Present if the loss or the gradient is NaN or infinite: says which one. The caller must not
  /// use `update` then.
  std::optional<std::string> fault;
};

/// Computes the gradients of a job. `data` must outlive this object. Several threads may use it,
/// each with a Scratch of its own. plan() and compute() throw what the model throws.
template <class M, class D>
requires models::Model<M, D>
class Gradients {
 public:
  using T = typename M::Scalar;

  Gradients(const M& model, const D& data, const GradientOptions& options, Layout layout)
      : model_(model),
        data_(data),
        clip_(options.clip),
        workers_(options.workers),
        batch_size_(options.dynamic ? std::min(options.batch, data.size()) : 0),
        order_(models::first_order(data.size(), options.workers, options.batch, options.dynamic,
                                   options.seed, options.former_deals)),
        layout_(std::make_shared<const Layout>(std::move(layout))) {
    if constexpr (models::RowSparseModel<M, D>)
      by_rows_ = std::ranges::any_of(layout_->parameters, &models::Parameter::row_sparse);
  }

  [[nodiscard]] const M& model() const noexcept { return model_; }
  [[nodiscard]] const std::shared_ptr<const Layout>& layout() const noexcept { return layout_; }
  /// True if some parameter is row-sparse: steps then read and push only some of its rows, see
  /// plan().
  [[nodiscard]] bool by_rows() const noexcept { return by_rows_; }
  /// True if compute() gives parts of the gradient early: if the model can do so, no parameter is
  /// row-sparse, and the gradient is not clipped. Depends on the model and the options alone, so it
  /// is the same on all workers.
  [[nodiscard]] bool has_early_parts() const noexcept {
    return models::EarlyPartsModel<M> && !by_rows_ && std::holds_alternative<models::NoClip>(clip_);
  }
  /// Returns the number of samples in a full batch of one worker or, if batches are dynamic, of all
  /// workers.
  [[nodiscard]] std::size_t batch_size() const {
    return batch_size_ > 0 ? batch_size_ : order_.batch_size();
  }

  /// Returns the ranges, or rows of them, that the step after `step` reads. Throws if the model
  /// names rows that its parameters do not have. Requires: by_rows().
  [[nodiscard]] std::vector<RangeRows> plan(MemberId worker, Step step,
                                            const WorkShare& share = {}) const;

  /// If the data can prefetch, makes it prefetch the samples that the step after `step` will read.
  void prefetch(MemberId worker, Step step, Scratch& scratch, const WorkShare& share = {}) const;

  /// Returns the gradient of the step after `step`. `values` has one value for each range that
  /// plan() returned, or for each range if by_rows() is false. If `random` is Random::stream(seed,
  /// worker, step), computing a step again gives the same gradient. `cut` counts only if workers
  /// hand in early. If it is not null, `sink` takes early parts. Requires: sink == nullptr, or
  /// has_early_parts() and workers do not hand in early.
  [[nodiscard]] Gradient compute(MemberId worker, Step step, std::span<const Value> values,
                                 Random& random, Scratch& scratch, const WorkShare& share = {},
                                 const Cut& cut = {}, const PartsSink* sink = nullptr) const;

 private:
  /// Replaces `out` by the samples of the step after `step`.
  void batch_of(MemberId worker, Step step, const WorkShare& share,
                std::vector<std::uint32_t>& out) const;
  void check_touched(const std::vector<models::TouchedRows>& touched) const;
  std::span<const T> assemble(std::span<const Value> values, Scratch& scratch) const;
  double gradient_of_micro_batches(std::span<const T> w, std::span<const Value> values,
                                   std::span<T> g, models::ComputeContext& context,
                                   Scratch& scratch, const Cut& cut) const;
  [[nodiscard]] bool clip(std::span<T> g, const std::vector<Update::Part>& parts) const;
  void clear_gradient(std::span<const Value> values, std::span<T> g) const;
  template <class F>
  void for_each_piece(std::span<const Value> values, F f) const;
  /// Gives the parts of finished buckets to a PartsSink.
  class EarlyGiver;
  std::vector<Update::Part> dense_update(const std::shared_ptr<Buffer>& gradient,
                                         RangeId first = 0) const;
  std::vector<Update::Part> sparse_update(std::span<const Value> values, std::span<const T> g,
                                          bool& is_finite) const;

  M model_;
  const D& data_;
  models::Clip clip_;
  /// The number of workers of the job's first deal. Worker w takes the part w modulo this number.
  std::size_t workers_;
  /// The number of samples in a full batch of all workers; 0 unless batches are dynamic.
  std::size_t batch_size_;
  models::SampleOrder order_;
  std::shared_ptr<const Layout> layout_;
  bool by_rows_ = false;
};

}  // namespace starling::core

#include "starling/engine/work/gradients_impl.hpp"
