/// The templates that gradients.hpp declares. Include gradients.hpp instead.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/work/gradients.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::core {

template <class M, class D>
requires models::Model<M, D>
auto Gradients<M, D>::plan(MemberId worker, Step step, const WorkShare& share) const
    -> std::vector<RangeRows> {
  std::vector<RangeRows> plan;
  if constexpr (models::RowSparseModel<M, D>) {
    std::vector<std::uint32_t> batch;
    batch_of(worker, step, share, batch);
    // A step without samples touches no rows.
    std::vector<models::TouchedRows> touched;
    if (!batch.empty()) {
      touched = model_.touched(data_, batch);
      check_touched(touched);
    } else {
      for (std::size_t p = 0; p < layout_->parameters.size(); ++p)
        if (layout_->parameters[p].row_sparse) touched.push_back({p, {}});
    }
    for (std::size_t p = 0; p < layout_->parameters.size(); ++p) {
      const auto rows = std::ranges::find(touched, p, &models::TouchedRows::parameter);
      const auto [from, to] = layout_->ranges_of(p);
      for (RangeId r = from; r < to; ++r) {
        const Range& range = layout_->ranges[r];
        // The step reads dense parameters as a whole, and those whose rows touched() does not list.
        const bool reads_whole_range = rows == touched.end() || range.row_size == 0;
        if (reads_whole_range) {
          // A range may hold several dense parameters, and is planned once.
          if (plan.empty() || plan.back().range != r) plan.push_back({r, nullptr});
          continue;
        }
        // The range holds the parameter's rows from `first` to before `last`. The plan counts rows
        // from the beginning of the range.
        const auto first =
            static_cast<std::uint32_t>((range.offset - layout_->offsets[p]) / range.row_size);
        const auto last = first + static_cast<std::uint32_t>(range.count / range.row_size);
        const auto begin = std::ranges::lower_bound(rows->rows, first);
        const auto end = std::lower_bound(begin, rows->rows.end(), last);
        if (begin == end) continue;
        auto inside = std::make_shared<std::vector<std::uint32_t>>(begin, end);
        for (std::uint32_t& row : *inside) row -= first;
        plan.push_back({r, std::move(inside)});
      }
    }
  }
  return plan;
}

template <class M, class D>
requires models::Model<M, D>
void Gradients<M, D>::batch_of(MemberId worker, Step step, const WorkShare& share,
                               std::vector<std::uint32_t>& out) const {
  if (share.taken) return share.order->batch_after(share.index, *share.taken, out);
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
    if (p >= layout_->parameters.size())
      refuse("the model has no such parameter; valid: 0 to " +
             std::to_string(layout_->parameters.size() - 1));
    if (std::ranges::count(touched, p, &models::TouchedRows::parameter) > 1)
      refuse("is listed twice; valid: one list of all its rows");
    const auto& shape = layout_->parameters[p].shape;
    if (!layout_->parameters[p].row_sparse)
      refuse("is not row-sparse; valid: a parameter with row_sparse set");
    const auto unordered = std::ranges::adjacent_find(rows, std::greater_equal<>{});
    if (unordered != rows.end())
      refuse("row " + std::to_string(unordered[1]) + " follows row " +
             std::to_string(unordered[0]) + "; valid: ascending rows, each once");
    if (!rows.empty() && rows.back() >= shape[0])
      refuse("has no row " + std::to_string(rows.back()) + "; valid: rows 0 to " +
             std::to_string(shape[0] - 1));
  }
}

template <class M, class D>
requires models::Model<M, D>
void Gradients<M, D>::prefetch(MemberId worker, Step step, Scratch& scratch,
                               const WorkShare& share) const {
  // Otherwise a prefetch() that is not const would silently never be called.
  static_assert(
      models::PrefetchableData<D> ||
          !requires(D data, models::Batch batch) { data.prefetch(batch); },
      "prefetch() of a data set must be a const function");
  if constexpr (models::PrefetchableData<D>) {
    batch_of(worker, step, share, scratch.batch);
    if (!scratch.batch.empty()) data_.prefetch(scratch.batch);
  }
}

/// Returns the parameter vector, in memory of `scratch`. Elements that are not in `values` are
/// undefined.
template <class M, class D>
requires models::Model<M, D>
auto Gradients<M, D>::assemble(std::span<const Value> values, Scratch& scratch) const
    -> std::span<const T> {
  scratch.parameters.reset();
  const auto w = scratch.parameters.allocate<T>(layout_->size);
  for (const auto& [r, at, slice, samples] : values) {
    const Range& range = layout_->ranges[r];
    const auto from = slice.template as<T>();
    const auto to = w.subspan(range.offset, range.count);
    if (!slice.rows) {
      std::ranges::copy(from, to.begin());
      continue;
    }
    std::size_t i = 0;
    for (const std::uint32_t row : *slice.rows)
      std::ranges::copy(from.subspan(i++ * range.row_size, range.row_size),
                        to.begin() + static_cast<std::ptrdiff_t>(row * range.row_size));
  }
  return w;
}

template <class M, class D>
requires models::Model<M, D>
class Gradients<M, D>::EarlyGiver {
 public:
  EarlyGiver(const Gradients& gradients, const PartsSink& sink, std::shared_ptr<Buffer> gradient,
             std::uint32_t samples)
      : gradients_(gradients), sink_(sink), gradient_(std::move(gradient)), samples_(samples) {}

  /// Called when the elements from `first` on are final: gives the parts of the buckets that are
  /// final now. Gives nothing more after an element that is not finite: compute() will refuse the
  /// gradient.
  void on_final(std::size_t first) {
    const auto& ranges = gradients_.layout_->ranges;
    std::size_t given = next_;
    while (given + 1 < sink_.buckets.size() && ranges[sink_.buckets[given].first].offset >= first)
      ++given;
    if (given == next_ || !is_finite_) return;
    const RangeId range = sink_.buckets[given - 1].first;
    const std::size_t end =
        next_ == 0 ? gradients_.layout_->size : ranges[sink_.buckets[next_ - 1].first].offset;
    const std::size_t begin = ranges[range].offset;
    is_finite_ = std::isfinite(models::squared_norm<T>(
        std::as_const(*gradient_).template as<T>().subspan(begin, end - begin)));
    next_ = given;
    if (is_finite_)
      sink_.take(
          {range, Update{.parts = gradients_.dense_update(gradient_, range), .samples = samples_}});
  }

 private:
  const Gradients& gradients_;
  const PartsSink& sink_;
  std::shared_ptr<Buffer> gradient_;
  std::uint32_t samples_;
  /// The number of buckets whose elements were final at the last call.
  std::size_t next_ = 0;
  bool is_finite_ = true;
};

template <class M, class D>
requires models::Model<M, D>
auto Gradients<M, D>::compute(MemberId worker, Step step, std::span<const Value> values,
                              Random& random, Scratch& scratch, const WorkShare& share,
                              const Cut& cut, const PartsSink* sink) const -> Gradient {
  STARLING_CHECK(sink == nullptr || (has_early_parts() && !share.taken));
  const auto w = assemble(values, scratch);
  auto& batch = scratch.batch;
  batch_of(worker, step, share, batch);
  if (share.taken && batch.size() > cut.samples_max) batch.resize(cut.samples_max);
  Gradient result;

  const auto buffer = Buffer::make<T>(by_rows_ ? 0 : layout_->size);
  const std::span<T> g =
      by_rows_ ? scratch.parameters.allocate<T>(layout_->size) : buffer->template as<T>();
  clear_gradient(values, g);

  double loss = 0;
  if (!batch.empty()) {
    scratch.work.reset();
    models::ComputeContext context{.random = random, .arena = scratch.work, .training = true};
    std::optional<EarlyGiver> giver;
    const std::function<void(std::size_t)> on_final = [&](std::size_t first) {
      giver->on_final(first);
    };
    if (sink != nullptr) {
      giver.emplace(*this, *sink, buffer, static_cast<std::uint32_t>(batch.size()));
      context.on_final = &on_final;
    }
    loss = share.taken && cut.hand_in != nullptr
               ? gradient_of_micro_batches(w, values, g, context, scratch, cut)
               : static_cast<double>(model_.gradient(w, data_, batch, g, context));
  }
  result.update.samples = static_cast<std::uint32_t>(batch.size());
  if (!batch.empty()) result.update.loss = loss;
  if (!std::isfinite(loss)) {
    result.fault = "the loss is " + print_number(loss);
    return result;
  }
  bool is_finite = false;
  if (by_rows_) {
    result.update.parts = sparse_update(values, g, is_finite);
  } else {
    result.update.parts = dense_update(buffer);
    is_finite = clip(g, result.update.parts);
  }
  if (!is_finite) result.fault = "the gradient is not finite";
  return result;
}

/// Adds the gradient of the mean loss over the samples of `scratch.batch` to `g`, a micro-batch at
/// a time, and returns that loss. Stops when the worker is to hand in, and shortens the batch to
/// the samples that were computed.
template <class M, class D>
requires models::Model<M, D>
double Gradients<M, D>::gradient_of_micro_batches(std::span<const T> w,
                                                  std::span<const Value> values, std::span<T> g,
                                                  models::ComputeContext& context, Scratch& scratch,
                                                  const Cut& cut) const {
  const std::size_t micro_batch = micro_batch_of(scratch.batch.size());
  const auto micro_gradient = scratch.parameters.allocate<T>(layout_->size);
  double loss = 0;
  std::size_t done = 0;
  while (done < scratch.batch.size() && (done == 0 || !cut.hand_in->load())) {
    const auto samples =
        std::span{scratch.batch}.subspan(done, std::min(micro_batch, scratch.batch.size() - done));
    clear_gradient(values, micro_gradient);
    scratch.work.reset();
    const auto count = static_cast<double>(samples.size());
    loss +=
        count * static_cast<double>(model_.gradient(w, data_, samples, micro_gradient, context));
    for_each_piece(values, [&](std::size_t offset, std::size_t size) {
      for (std::size_t i = offset; i < offset + size; ++i)
        g[i] += static_cast<T>(count) * micro_gradient[i];
    });
    done += samples.size();
  }
  scratch.batch.resize(done);
  const auto count = static_cast<T>(done);
  for_each_piece(values, [&](std::size_t offset, std::size_t size) {
    for (std::size_t i = offset; i < offset + size; ++i) g[i] /= count;
  });
  return loss / static_cast<double>(done);
}

/// Clips the trained elements of `g`, which holds the values of `parts`, as one vector: the norm of
/// a clip is that of all trained elements together. Returns false if an element of `g`, trained or
/// not, was NaN or infinite.
template <class M, class D>
requires models::Model<M, D>
bool Gradients<M, D>::clip(std::span<T> g, const std::vector<Update::Part>& parts) const {
  // A sum of squares is finite only if each element is.
  if (std::holds_alternative<models::NoClip>(clip_))
    return std::isfinite(models::squared_norm<T>(g));
  std::vector<std::span<T>> trained;
  double untrained_norm = 0;
  const auto add = [&](std::span<T> piece, std::size_t parameter) {
    if (!layout_->parameters[parameter].trained) untrained_norm += models::squared_norm<T>(piece);
    // Joins spans that adjoin, so that the clip is given few long ones.
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
  return std::isfinite(models::apply<T>(clip_, trained) + untrained_norm);
}

/// Sets those elements of `g` to 0 that belong to `values`: a step writes no others.
template <class M, class D>
requires models::Model<M, D>
void Gradients<M, D>::clear_gradient(std::span<const Value> values, std::span<T> g) const {
  for_each_piece(values, [&](std::size_t offset, std::size_t count) {
    std::ranges::fill(g.subspan(offset, count), T{0});
  });
}

/// Calls `f(offset, count)` for each run of elements of the parameter vector that `values` have.
template <class M, class D>
requires models::Model<M, D>
template <class F>
void Gradients<M, D>::for_each_piece(std::span<const Value> values, F f) const {
  for (const auto& [r, at, slice, samples] : values) {
    const Range& range = layout_->ranges[r];
    if (!slice.rows) {
      f(range.offset, range.count);
      continue;
    }
    for (const std::uint32_t row : *slice.rows)
      f(range.offset + row * range.row_size, range.row_size);
  }
}

template <class M, class D>
requires models::Model<M, D>
auto Gradients<M, D>::dense_update(const std::shared_ptr<Buffer>& gradient, RangeId first) const
    -> std::vector<Update::Part> {
  std::vector<Update::Part> parts;
  for (std::size_t r = first; r < layout_->ranges.size(); ++r)
    parts.push_back({static_cast<RangeId>(r),
                     {gradient, layout_->ranges[r].offset, layout_->ranges[r].count, nullptr}});
  return parts;
}

/// Gathers the ranges and rows of `g` that are in `values`, clips them as one vector, and stores
/// the result of clip() in `is_finite`.
template <class M, class D>
requires models::Model<M, D>
auto Gradients<M, D>::sparse_update(std::span<const Value> values, std::span<const T> g,
                                    bool& is_finite) const -> std::vector<Update::Part> {
  std::size_t total = 0;
  for (const auto& [r, at, slice, samples] : values) total += slice.count;
  auto buffer = Buffer::make<T>(total);
  const auto gathered = buffer->template as<T>();
  std::vector<Update::Part> parts;
  std::size_t offset = 0;
  for (const auto& [r, at, slice, samples] : values) {
    const Range& range = layout_->ranges[r];
    const auto from = g.subspan(range.offset, range.count);
    auto to = gathered.begin() + static_cast<std::ptrdiff_t>(offset);
    if (!slice.rows) {
      std::ranges::copy(from, to);
    } else {
      for (const std::uint32_t row : *slice.rows)
        to = std::ranges::copy(from.subspan(row * range.row_size, range.row_size), to).out;
    }
    parts.push_back({r, {buffer, offset, slice.count, slice.rows}});
    offset += slice.count;
  }
  is_finite = clip(gathered, parts);
  return parts;
}

}  // namespace starling::core
