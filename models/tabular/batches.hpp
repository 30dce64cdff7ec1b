/// Functions that the source files of several models share: they split a batch, compute metrics and
/// check data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/result.hpp"
#include "starling/models/loss.hpp"
#include "starling/models/model.hpp"
#include "starling/models/table.hpp"
#include "starling/models/tabular/affine.hpp"

namespace starling::models {

/// Calls `visit` with successive micro-batches of at most rows_at_once rows.
template <class Visit>
void for_each_micro_batch(Batch batch, Visit visit) {
  for (std::size_t start = 0; start < batch.size(); start += rows_at_once)
    visit(batch.subspan(start, std::min(rows_at_once, batch.size() - start)));
}

/// Returns the index in `batch` at which `micro_batch` starts. Requires: it is a part of `batch`.
[[nodiscard]] inline std::size_t offset(Batch batch, Batch micro_batch) {
  return static_cast<std::size_t>(micro_batch.data() - batch.data());
}

/// Returns `numbers` in ascending order, each number once.
[[nodiscard]] std::vector<std::uint32_t> sort_unique(std::vector<std::uint32_t> numbers);

/// Returns the factor that turns a squared error of scaled targets of `data` into a squared error
/// of the targets as they were written in the data's source; 1 for classes.
[[nodiscard]] inline double squared_error_factor(const Table& data) {
  const double divisor = static_cast<double>(data.labelling.divisor);
  return divisor * divisor;
}

/// Turns the sums of loss and metric over `rows` rows of `data` into means, in the unit of the
/// targets as they were written in the data's source; zeros if there are no rows.
template <class Loss>
[[nodiscard]] Metrics mean_metrics(const Accumulator& sums, std::size_t rows, const Table& data) {
  const double divisor = rows == 0 ? 1 : static_cast<double>(rows);
  const double unit = std::is_same_v<Loss, SquaredLoss> ? squared_error_factor(data) : 1;
  return {{"loss", unit * sums.loss / divisor},
          {std::string{Loss::metric}, unit * sums.metric_value / divisor}};
}

/// Sets out_i to the prediction from row i of scores [out.size() x outputs].
template <class Loss, class T>
void decide_rows(std::span<const T> scores, std::span<float> out) {
  if (out.empty()) return;
  STARLING_CHECK(scores.size() % out.size() == 0);
  const std::size_t outputs = scores.size() / out.size();
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = Loss::template decide<T>(scores.subspan(i * outputs, outputs));
}

/// The shape of the data that a model was built for.
struct DataShape {
  std::size_t features = 0;
  /// 0 for real targets.
  std::size_t classes = 0;
  bool is_sparse = false;
};

/// Returns "10 classes", "1 class" or "real targets".
[[nodiscard]] std::string describe_labels(std::size_t classes);

/// Refuses data of another shape than that for which the model `name` was built. A sparse table may
/// have fewer features, and any table fewer classes, because a test set need not contain all of
/// them. Refuses labels that are not classes too.
[[nodiscard]] Result<void> check_data_shape(std::string_view name, const DataShape& built,
                                            const Table& data);

}  // namespace starling::models
