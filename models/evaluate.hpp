/// Computes a model's metrics and predictions over a whole data set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "starling/models/model.hpp"

namespace starling::models {

/// for_each_batch() passes at most this many samples to one call. This bounds the memory that the
/// call needs.
inline constexpr std::size_t evaluation_batch_max = 4096;

/// Divides the samples of `data` into consecutive batches of at most evaluation_batch_max samples,
/// and calls `visit(batch, context)` for each. `context` is for evaluation: its `training` is
/// false, its arena is empty, and its random numbers are the same in each call.
template <class D, class Visit>
void for_each_batch(const D& data, Arena& arena, Visit visit) {
  std::vector<std::uint32_t> rows;
  const std::size_t size = data.size();
  for (std::size_t first = 0; first < size; first += evaluation_batch_max) {
    rows.resize(std::min(evaluation_batch_max, size - first));
    std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(first));
    arena.reset();
    Random random{0};
    ComputeContext context{.random = random, .arena = arena, .training = false};
    visit(Batch{rows}, context);
  }
}

/// Throws std::runtime_error unless `batch`, the metrics of a batch, have the names of `first`,
/// those of the first batch, in the same order, and each name once.
inline void check_metrics(const Metrics& first, const Metrics& batch) {
  for (const Metric& metric : batch)
    if (std::ranges::count(batch, metric.name, &Metric::name) > 1)
      throw std::runtime_error{"evaluate(): the metric '" + metric.name +
                               "' is returned twice; valid: each name once"};
  if (!std::ranges::equal(first, batch, {}, &Metric::name, &Metric::name))
    throw std::runtime_error{
        "evaluate(): the metrics of two batches have other names; valid: the same names in the "
        "same order, whatever the batch"};
}

/// Returns the model's metrics as means over all samples of `data`; no metrics if `data` has no
/// samples. Throws if the model returns other metrics for one batch than for another, or two with
/// the same name.
template <class M, class D>
requires Model<M, D>
[[nodiscard]] Metrics evaluate_all(const M& model, std::span<const typename M::Scalar> w,
                                   const D& data, Arena& arena) {
  Metrics total;
  for_each_batch(data, arena, [&](Batch rows, ComputeContext& context) {
    const Metrics chunk = model.evaluate(w, data, rows, context);
    const double share = static_cast<double>(rows.size()) / static_cast<double>(data.size());
    if (rows.front() == 0)
      for (const Metric& metric : chunk) total.push_back({metric.name, 0});
    check_metrics(total, chunk);
    for (std::size_t m = 0; m < chunk.size(); ++m) total[m].value += chunk[m].value * share;
  });
  return total;
}

/// Returns the model's prediction for each sample of `data`.
template <class M, class D>
requires PredictingModel<M, D>
[[nodiscard]] std::vector<float> predict_all(const M& model, std::span<const typename M::Scalar> w,
                                             const D& data, Arena& arena) {
  std::vector<float> out(data.size());
  for_each_batch(data, arena, [&](Batch rows, ComputeContext& context) {
    model.predict(w, data, rows, context, std::span{out}.subspan(rows.front(), rows.size()));
  });
  return out;
}

}  // namespace starling::models
