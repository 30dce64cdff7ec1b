/// The templates of train.hpp; include that.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>

#include "starling/base/text.hpp"
#include "starling/engine/live/train.hpp"

namespace starling::live {

template <class M, class D>
requires models::Model<M, D> std::vector<core::RangeRows> TrainTask<M, D>::plan(
    core::WorkerId worker, core::Step step) {
  std::vector<core::RangeRows> wanted;
  if constexpr (models::RowSparseModel<M, D>) {
    std::vector<std::uint32_t> batch;
    order_.batch(worker, step, batch);
    const auto touched = model_.touched(train_, batch);
    check_touched(touched);
    for (std::size_t p = 0; p < layout_.parameters.size(); ++p) {
      const auto rows = std::ranges::find(touched, p, &models::TouchedRows::parameter);
      const auto [from, to] = layout_.ranges_of(p);
      for (core::RangeId r = from; r < to; ++r) {
        const core::Range& range = layout_.ranges[r];
        const bool whole = rows == touched.end() || range.row_size == 0;
        if (whole) {
          if (wanted.empty() || wanted.back().range != r) wanted.push_back({r, nullptr});
          continue;
        }
        const auto first =
            static_cast<std::uint32_t>((range.offset - layout_.offsets[p]) / range.row_size);
        const auto last = first + static_cast<std::uint32_t>(range.count / range.row_size);
        auto inside = std::make_shared<std::vector<std::uint32_t>>();
        for (const std::uint32_t row : rows->rows)
          if (row >= first && row < last) inside->push_back(row - first);
        if (!inside->empty()) wanted.push_back({r, std::move(inside)});
      }
    }
  }
  return wanted;
}

/// Throws where the model touches what its parameters do not have.
template <class M, class D>
requires models::Model<M, D>
void TrainTask<M, D>::check_touched(const std::vector<models::TouchedRows>& touched) const {
  for (const auto& [p, rows] : touched) {
    const auto refuse = [p = p](const std::string& why) {
      throw std::runtime_error{"touched(): parameter " + std::to_string(p) + ": " + why};
    };
    if (p >= layout_.parameters.size()) refuse("the model has no such parameter");
    const auto& shape = layout_.parameters[p].shape;
    if (!layout_.parameters[p].row_sparse) refuse("is not row-sparse");
    if (std::ranges::adjacent_find(rows, std::greater_equal<>{}) != rows.end())
      refuse("rows must ascend, each once");
    if (!rows.empty() && rows.back() >= shape[0])
      refuse("row " + std::to_string(rows.back()) + " of " + std::to_string(shape[0]));
  }
}

/// The parameter vector as far as it was read; what was not is left undefined.
template <class M, class D>
requires models::Model<M, D> std::span<const typename M::Scalar> TrainTask<M, D>::assemble(
    std::span<const core::Value> values, Scratch& scratch)
const {
  scratch.parameters.reset();
  const auto w = scratch.parameters.take<T>(layout_.size);
  for (const core::Value& value : values) {
    const core::Range& range = layout_.ranges[value.range];
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
requires models::Model<M, D> StepResult TrainTask<M, D>::compute(const StepInput& input,
                                                                 Scratch& scratch) {
  const auto w = assemble(input.values, scratch);
  thread_local std::vector<std::uint32_t> batch;
  order_.batch(input.worker, input.step, batch);
  StepResult result;
  result.update.samples = static_cast<std::uint32_t>(batch.size());

  const auto buffer = core::Buffer::make<T>(by_rows_ ? 0 : layout_.size);
  const std::span<T> g =
      by_rows_ ? scratch.parameters.take<T>(layout_.size) : buffer->template as<T>();
  clear(input.values, g);

  if (!batch.empty()) {
    scratch.work.reset();
    Random random = Random::stream(seed_, input.worker, input.step);
    models::Pass pass{.random = random, .arena = scratch.work, .training = true};
    result.loss = static_cast<double>(model_.gradient(w, train_, batch, g, pass));
  }
  if (!std::isfinite(result.loss)) {
    result.fault = "the loss is " + print_number(result.loss);
    return result;
  }
  double norm = 0;
  if (by_rows_) {
    result.update.parts = sparse_update(input.values, g, norm);
  } else {
    norm = clipped_norm(g);
    result.update.parts = dense_update(buffer);
  }
  if (!std::isfinite(norm)) result.fault = "the gradient is not finite";
  return result;
}

/// Clips `g` and says its norm as it was, so that a gradient that is none is noticed.
template <class M, class D>
requires models::Model<M, D>
double TrainTask<M, D>::clipped_norm(std::span<T> g) const {
  if (clip_.kind == models::Clip::Kind::none) return models::squared_norm<T>(g);
  return models::apply<T>(clip_, g);
}

/// Zeroes `g` where this step may write it.
template <class M, class D>
requires models::Model<M, D>
void TrainTask<M, D>::clear(std::span<const core::Value> values, std::span<T> g) const {
  for (const core::Value& value : values) {
    const core::Range& range = layout_.ranges[value.range];
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
requires models::Model<M, D> std::vector<core::Update::Part> TrainTask<M, D>::dense_update(
    const std::shared_ptr<core::Buffer>& gradient)
const {
  std::vector<core::Update::Part> parts;
  for (std::size_t r = 0; r < layout_.ranges.size(); ++r)
    parts.push_back({static_cast<core::RangeId>(r),
                     {gradient, layout_.ranges[r].offset, layout_.ranges[r].count, nullptr}});
  return parts;
}

/// Gathers the rows of `g` that this step touched, clips them as one vector, and says their norm.
template <class M, class D>
requires models::Model<M, D> std::vector<core::Update::Part> TrainTask<M, D>::sparse_update(
    std::span<const core::Value> values, std::span<const T> g, double& norm)
const {
  std::size_t total = 0;
  for (const core::Value& value : values) total += value.value.count;
  auto buffer = core::Buffer::make<T>(total);
  const auto gathered = buffer->template as<T>();
  std::vector<core::Update::Part> parts;
  std::size_t at = 0;
  for (const core::Value& value : values) {
    const core::Range& range = layout_.ranges[value.range];
    const auto part = g.subspan(range.offset, range.count);
    auto to = gathered.begin() + static_cast<std::ptrdiff_t>(at);
    if (!value.value.rows) {
      std::ranges::copy(part, to);
    } else {
      for (const std::uint32_t row : *value.value.rows)
        to = std::ranges::copy(part.subspan(row * range.row_size, range.row_size), to).out;
    }
    parts.push_back({value.range, {buffer, at, value.value.count, value.value.rows}});
    at += value.value.count;
  }
  norm = clipped_norm(gathered);
  return parts;
}

template <class M, class D>
requires models::Model<M, D> models::Metrics TrainTask<M, D>::evaluate(
    std::span<const core::RangeState> model, bool on_training_data, Scratch& scratch) {
  const D* data = on_training_data ? &train_ : test_;
  if (data == nullptr) return {};
  const auto w = to_vector<T>(layout_, model);
  return models::evaluate_all(model_, std::span<const T>{w}, *data, scratch.work);
}

template <class M, class D>
requires models::Model<M, D> Result<Outcome> train(const M& model, const D& data,
                                                   std::type_identity_t<const D*> test,
                                                   const TrainOptions& options) {
  using T = typename M::Scalar;
  if (options.batch == 0) return Error{"batch=0: a batch holds at least 1 sample"};
  if (options.job.workers == 0) return Error{"workers=0: a job needs at least 1 worker"};
  if (data.size() == 0) return Error{"the training data has no samples"};
  const auto parameters = model.parameters();
  if (parameters.empty()) return Error{"the model has no parameters: there is nothing to train"};
  if (auto valid = models::check(parameters); !valid) return std::move(valid).error();
  if constexpr (models::CheckedModel<M, D>)
    if (auto accepted = model.accepts(data); !accepted) return std::move(accepted).error();
  JobOptions job = options.job;
  if (options.epochs) {
    if (!(std::isfinite(*options.epochs) && *options.epochs >= 0))
      return Error{"epochs must be a finite number >= 0"};
    job.steps = steps_in(*options.epochs, options, data.size());
  }
  auto task = std::make_shared<TrainTask<M, D>>(model, data, test, options);
  auto start = options.resume;
  if (start.empty()) {
    std::vector<T> w(task->layout().size);
    Random random = Random::stream(options.job.seed, initial_stream);
    if (auto fault = fault_of([&] { model.initialise(std::span<T>{w}, random); }))
      return Error{"initialise: " + *std::move(fault)};
    start = to_ranges<T>(task->layout(), w);
  }
  const core::Descend descend{.optimizer = options.optimizer,
                              .schedule = options.schedule,
                              .l2 = options.l2,
                              .batch = task->batch_size()};
  return run_job<T>(job, std::move(task), core::Applier<T>{descend}, std::move(start));
}

}  // namespace starling::live
