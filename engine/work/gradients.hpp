/// Computes a worker's training step: assembles the parameter vector from the values that the
/// worker has pulled, computes the gradient of one batch, and returns it range by range. Live and
/// simulated jobs use the same code.
#pragma once

#include <algorithm>
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

/// Memory for computing steps, reused from step to step. One thread at a time.
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

/// A step's gradient.
struct Gradient {
  Update update;
  /// The mean loss over the step's samples; 0 if there are none.
  double loss = 0;
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
  /// worker, step), computing a step again gives the same gradient.
  [[nodiscard]] Gradient compute(MemberId worker, Step step, std::span<const Value> values,
                                 Random& random, Scratch& scratch,
                                 const WorkShare& share = {}) const;

 private:
  /// Replaces `out` by the samples of the step after `step`.
  void batch_of(MemberId worker, Step step, const WorkShare& share,
                std::vector<std::uint32_t>& out) const;
  void check_touched(const std::vector<models::TouchedRows>& touched) const;
  std::span<const T> assemble(std::span<const Value> values, Scratch& scratch) const;
  double clip(std::span<T> g, const std::vector<Update::Part>& parts) const;
  void clear_gradient(std::span<const Value> values, std::span<T> g) const;
  std::vector<Update::Part> dense_update(const std::shared_ptr<Buffer>& gradient) const;
  std::vector<Update::Part> sparse_update(std::span<const Value> values, std::span<const T> g,
                                          double& norm) const;

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

template <class M, class D>
requires models::Model<M, D> std::vector<RangeRows> Gradients<M, D>::plan(MemberId worker,
                                                                          Step step,
                                                                          const WorkShare& share)
const {
  std::vector<RangeRows> wanted;
  if constexpr (models::RowSparseModel<M, D>) {
    std::vector<std::uint32_t> batch;
    batch_of(worker, step, share, batch);
    const auto touched = model_.touched(data_, batch);
    check_touched(touched);
    for (std::size_t p = 0; p < layout_->parameters.size(); ++p) {
      const auto rows = std::ranges::find(touched, p, &models::TouchedRows::parameter);
      const auto [from, to] = layout_->ranges_of(p);
      for (RangeId r = from; r < to; ++r) {
        const Range& range = layout_->ranges[r];
        const bool reads_whole_range = rows == touched.end() || range.row_size == 0;
        if (reads_whole_range) {
          if (wanted.empty() || wanted.back().range != r) wanted.push_back({r, nullptr});
          continue;
        }
        const auto first =
            static_cast<std::uint32_t>((range.offset - layout_->offsets[p]) / range.row_size);
        const auto last = first + static_cast<std::uint32_t>(range.count / range.row_size);
        const auto begin = std::ranges::lower_bound(rows->rows, first);
        const auto end = std::lower_bound(begin, rows->rows.end(), last);
        if (begin == end) continue;
        auto inside = std::make_shared<std::vector<std::uint32_t>>(begin, end);
        for (std::uint32_t& row : *inside) row -= first;
        wanted.push_back({r, std::move(inside)});
      }
    }
  }
  return wanted;
}

template <class M, class D>
requires models::Model<M, D>
void Gradients<M, D>::batch_of(MemberId worker, Step step, const WorkShare& share,
                               std::vector<std::uint32_t>& out) const {
  if (share.order) return share.order->batch(share.index, step - share.first_step, out);
  out.clear();
  if (step >= order_.first_step()) order_.batch(worker % workers_, step - order_.first_step(), out);
}

/// Throws if the model names rows that its row-sparse parameters do not have.
template <class M, class D>
requires models::Model<M, D>
void Gradients<M, D>::check_touched(const std::vector<models::TouchedRows>& touched) const {
  for (const auto& [p, rows] : touched) {
    const auto refuse = [p = p](const std::string& why) {
      throw std::runtime_error{"touched(): parameter " + std::to_string(p) + ": " + why};
    };
    if (p >= layout_->parameters.size()) refuse("the model has no such parameter");
    const auto& shape = layout_->parameters[p].shape;
    if (!layout_->parameters[p].row_sparse) refuse("is not row-sparse");
    if (std::ranges::adjacent_find(rows, std::greater_equal<>{}) != rows.end())
      refuse("rows must ascend, each once");
    if (!rows.empty() && rows.back() >= shape[0])
      refuse("row " + std::to_string(rows.back()) + " of " + std::to_string(shape[0]));
  }
}

template <class M, class D>
requires models::Model<M, D>
void Gradients<M, D>::prefetch(MemberId worker, Step step, Scratch& scratch,
                               const WorkShare& share) const {
  static_assert(
      models::PrefetchableData<D> ||
          !requires(D data, models::Batch batch) { data.prefetch(batch); },
      "prefetch() of data must be const");
  if constexpr (models::PrefetchableData<D>) {
    batch_of(worker, step, share, scratch.batch);
    data_.prefetch(scratch.batch);
  }
}

/// Returns the parameter vector, in memory of `scratch`. Elements that are not in `values` are
/// undefined.
template <class M, class D>
requires models::Model<M, D> std::span<const typename M::Scalar> Gradients<M, D>::assemble(
    std::span<const Value> values, Scratch& scratch)
const {
  scratch.parameters.reset();
  const auto w = scratch.parameters.allocate<T>(layout_->size);
  for (const Value& value : values) {
    const Range& range = layout_->ranges[value.range];
    const auto from = value.value.as<T>();
    const auto to = w.subspan(range.offset, range.count);
    if (!value.value.rows) {
      std::ranges::copy(from, to.begin());
      continue;
    }
    std::size_t i = 0;
    for (const std::uint32_t row : *value.value.rows)
      std::ranges::copy(from.subspan(i++ * range.row_size, range.row_size),
                        to.begin() + static_cast<std::ptrdiff_t>(row * range.row_size));
  }
  return w;
}

template <class M, class D>
requires models::Model<M, D> Gradient Gradients<M, D>::compute(MemberId worker, Step step,
                                                               std::span<const Value> values,
                                                               Random& random, Scratch& scratch,
                                                               const WorkShare& share)
const {
  const auto w = assemble(values, scratch);
  auto& batch = scratch.batch;
  batch_of(worker, step, share, batch);
  Gradient result;
  result.update.samples = static_cast<std::uint32_t>(batch.size());

  const auto buffer = Buffer::make<T>(by_rows_ ? 0 : layout_->size);
  const std::span<T> g =
      by_rows_ ? scratch.parameters.allocate<T>(layout_->size) : buffer->template as<T>();
  clear_gradient(values, g);

  if (!batch.empty()) {
    scratch.work.reset();
    models::Pass pass{.random = random, .arena = scratch.work, .training = true};
    result.loss = static_cast<double>(model_.gradient(w, data_, batch, g, pass));
  }
  if (!std::isfinite(result.loss)) {
    result.fault = "the loss is " + print_number(result.loss);
    return result;
  }
  double norm = 0;
  if (by_rows_) {
    result.update.parts = sparse_update(values, g, norm);
  } else {
    result.update.parts = dense_update(buffer);
    norm = clip(g, result.update.parts);
  }
  if (!std::isfinite(norm)) result.fault = "the gradient is not finite";
  return result;
}

/// Clips the trained elements of `g`, which holds the values of `parts`, as one vector. Returns a
/// number that is not finite if an element of `g` was NaN or infinite.
template <class M, class D>
requires models::Model<M, D>
double Gradients<M, D>::clip(std::span<T> g, const std::vector<Update::Part>& parts) const {
  if (std::holds_alternative<models::NoClip>(clip_)) return models::squared_norm<T>(g);
  std::vector<std::span<T>> trained;
  double untrained_norm = 0;
  const auto add = [&](std::span<T> piece, std::size_t parameter) {
    if (!layout_->parameters[parameter].trained)
      untrained_norm += models::squared_norm<T>(piece);
    else if (!trained.empty() && trained.back().data() + trained.back().size() == piece.data())
      trained.back() = {trained.back().data(), trained.back().size() + piece.size()};
    else
      trained.push_back(piece);
  };
  for (const Update::Part& part : parts) {
    const auto piece = g.subspan(part.values.offset, part.values.count);
    const auto& segments = layout_->ranges[part.range].segments;
    if (part.values.rows)
      add(piece, segments.front().parameter);
    else
      for (const Segment& segment : segments)
        add(piece.subspan(segment.offset, segment.count), segment.parameter);
  }
  return models::apply<T>(clip_, trained) + untrained_norm;
}

/// Sets those elements of `g` to 0 that belong to `values`: a step writes no others.
template <class M, class D>
requires models::Model<M, D>
void Gradients<M, D>::clear_gradient(std::span<const Value> values, std::span<T> g) const {
  for (const Value& value : values) {
    const Range& range = layout_->ranges[value.range];
    const auto part = g.subspan(range.offset, range.count);
    if (!value.value.rows) {
      std::ranges::fill(part, T{0});
      continue;
    }
    for (const std::uint32_t row : *value.value.rows)
      std::ranges::fill(part.subspan(row * range.row_size, range.row_size), T{0});
  }
}

template <class M, class D>
requires models::Model<M, D> std::vector<Update::Part> Gradients<M, D>::dense_update(
    const std::shared_ptr<Buffer>& gradient)
const {
  std::vector<Update::Part> parts;
  for (std::size_t r = 0; r < layout_->ranges.size(); ++r)
    parts.push_back({static_cast<RangeId>(r),
                     {gradient, layout_->ranges[r].offset, layout_->ranges[r].count, nullptr}});
  return parts;
}

/// Gathers the ranges and rows of `g` that are in `values`, clips them as one vector, and stores
/// the result of clip() in `norm`.
template <class M, class D>
requires models::Model<M, D> std::vector<Update::Part> Gradients<M, D>::sparse_update(
    std::span<const Value> values, std::span<const T> g, double& norm)
const {
  std::size_t total = 0;
  for (const Value& value : values) total += value.value.count;
  auto buffer = Buffer::make<T>(total);
  const auto gathered = buffer->template as<T>();
  std::vector<Update::Part> parts;
  std::size_t offset = 0;
  for (const Value& value : values) {
    const Range& range = layout_->ranges[value.range];
    const auto part = g.subspan(range.offset, range.count);
    auto to = gathered.begin() + static_cast<std::ptrdiff_t>(offset);
    if (!value.value.rows) {
      std::ranges::copy(part, to);
    } else {
      for (const std::uint32_t row : *value.value.rows)
        to = std::ranges::copy(part.subspan(row * range.row_size, range.row_size), to).out;
    }
    parts.push_back({value.range, {buffer, offset, value.value.count, value.value.rows}});
    offset += value.value.count;
  }
  norm = clip(gathered, parts);
  return parts;
}

}  // namespace starling::core
