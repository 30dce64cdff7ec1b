#include "starling/models/data/scaling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"

namespace starling::models {
namespace {

constexpr std::array<std::pair<Scale, const char*>, 3> names{
    {{Scale::none, "none"}, {Scale::standard, "standard"}, {Scale::minmax, "minmax"}}};

/// Statistics of one column, or of the labels.
struct ColumnStatistics {
  double sum = 0;
  /// The sum of the squared differences from the mean.
  double squared_differences = 0;
  float smallest = INFINITY;
  float largest = -INFINITY;
};

struct ShiftAndDivisor {
  float shift = 0;
  float divisor = 1;
};

/// A standard deviation of at most this share of the mean is a rounding error: the column is
/// constant.
constexpr double rounding_share = 1e-7;

/// The shift of a sparse column is 0. The divisor of a constant column is 1, except for `minmax` of
/// a sparse column.
ShiftAndDivisor fit_column(Scale method, const ColumnStatistics& column, std::size_t rows,
                           bool is_sparse) {
  const double n = static_cast<double>(rows);
  const double mean = column.sum / n;
  if (method == Scale::none || rows == 0) return {};
  if (method == Scale::standard) {
    const double deviation = std::sqrt(column.squared_differences / n);
    const bool varies =
        deviation > rounding_share * std::abs(mean) && static_cast<float>(deviation) > 0;
    return {is_sparse ? 0 : static_cast<float>(mean), varies ? static_cast<float>(deviation) : 1};
  }
  if (is_sparse) {
    const float largest_absolute = std::max(std::abs(column.smallest), std::abs(column.largest));
    return {0, largest_absolute > 0 ? largest_absolute : 1};
  }
  const float range = column.largest - column.smallest;
  return {column.smallest, range > 0 && std::isfinite(range) ? range : 1};
}

/// Calls visit(column, value) for each stored entry, row by row.
template <class Visit>
void for_each_entry(const Table& table, Visit visit) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table.is_sparse()) {
      const auto [columns, values] = table.sparse_row(row);
      for (std::size_t i = 0; i < columns.size(); ++i) visit(columns[i], values[i]);
    } else {
      const auto values = table.dense_row(row);
      for (std::size_t i = 0; i < values.size(); ++i) visit(i, values[i]);
    }
  }
}

/// An entry that a sparse table does not store counts as 0.
std::vector<ColumnStatistics> compute_column_statistics(const Table& table) {
  std::vector<ColumnStatistics> statistics(table.features());
  std::vector<std::uint64_t> stored_counts(table.features());
  for_each_entry(table, [&](std::size_t i, float value) {
    statistics[i].sum += static_cast<double>(value);
    statistics[i].smallest = std::min(statistics[i].smallest, value);
    statistics[i].largest = std::max(statistics[i].largest, value);
    ++stored_counts[i];
  });
  const double n = static_cast<double>(table.size());
  for_each_entry(table, [&](std::size_t i, float value) {
    statistics[i].squared_differences +=
        std::pow(static_cast<double>(value) - statistics[i].sum / n, 2);
  });
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    const std::uint64_t zeros = table.size() - stored_counts[i];
    if (zeros == 0) continue;
    statistics[i].squared_differences +=
        static_cast<double>(zeros) * std::pow(statistics[i].sum / n, 2);
    statistics[i].smallest = std::min(statistics[i].smallest, 0.0F);
    statistics[i].largest = std::max(statistics[i].largest, 0.0F);
  }
  return statistics;
}

float scale(float value, float shift, float divisor) {
  const float difference = value - shift;
  if (std::isfinite(difference)) return difference / divisor;
  return static_cast<float>((static_cast<double>(value) - static_cast<double>(shift)) /
                            static_cast<double>(divisor));
}

}  // namespace

Result<Scale> parse_scale(const std::string& text) {
  const auto at = std::ranges::find(names, text, &std::pair<Scale, const char*>::second);
  if (at != names.end()) return at->first;
  return Error{"'" + text + "' is not a scaling method; valid: none, standard, minmax"};
}

std::string print(Scale scale) {
  return std::ranges::find(names, scale, &std::pair<Scale, const char*>::first)->second;
}

Scaling fit(Scale method, const Table& train) {
  Scaling scaling;
  if (method == Scale::none) return scaling;
  const auto columns = compute_column_statistics(train);
  for (const ColumnStatistics& column : columns) {
    const auto [shift, divisor] = fit_column(method, column, train.size(), train.is_sparse());
    scaling.shift.push_back(shift);
    scaling.divisor.push_back(divisor);
  }
  return scaling;
}

Labelling fit_targets(Scale method, const Table& train) {
  Labelling labelling = train.labelling;
  if (train.classes() > 0) return labelling;
  ColumnStatistics labels;
  for (std::size_t row = 0; row < train.size(); ++row) {
    labels.sum += static_cast<double>(train.label(row));
    labels.smallest = std::min(labels.smallest, train.label(row));
    labels.largest = std::max(labels.largest, train.label(row));
  }
  const double mean = labels.sum / static_cast<double>(train.size());
  for (std::size_t row = 0; row < train.size(); ++row)
    labels.squared_differences += std::pow(static_cast<double>(train.label(row)) - mean, 2);
  const auto fitted = fit_column(method, labels, train.size(), false);
  labelling.shift = fitted.shift;
  labelling.divisor = fitted.divisor;
  return labelling;
}

Table scaled(const Table& table, const Scaling& scaling, const Labelling& labelling) {
  STARLING_CHECK(table.scaling.shift.empty());
  STARLING_CHECK(scaling.shift.empty() || scaling.shift.size() >= table.features());
  std::vector<float> labels(table.size());
  for (std::size_t row = 0; row < labels.size(); ++row)
    labels[row] = table.classes() > 0 ? table.label(row)
                                      : scale(table.label(row), labelling.shift, labelling.divisor);
  const auto scale_feature = [&](std::size_t i, float value) {
    return scaling.shift.empty() ? value : scale(value, scaling.shift[i], scaling.divisor[i]);
  };
  Table result;
  if (table.is_sparse()) {
    Table::Sparse x;
    x.columns.reserve(table.entries());
    x.values.reserve(table.entries());
    x.starts.reserve(table.size() + 1);
    for (std::size_t row = 0; row < table.size(); ++row) {
      const auto [columns, values] = table.sparse_row(row);
      x.columns.insert(x.columns.end(), columns.begin(), columns.end());
      for (std::size_t i = 0; i < columns.size(); ++i)
        x.values.push_back(scale_feature(columns[i], values[i]));
      x.starts.push_back(x.columns.size());
    }
    result = table.with(std::move(x), std::move(labels));
  } else {
    Table::Dense x;
    x.values.reserve(table.entries());
    for_each_entry(
        table, [&](std::size_t i, float value) { x.values.push_back(scale_feature(i, value)); });
    result = table.with(std::move(x), std::move(labels));
  }
  for (std::size_t i = 0; i < result.true_weights.size() && i < scaling.divisor.size(); ++i)
    result.true_weights[i] *= scaling.divisor[i] / labelling.divisor;
  result.labelling = labelling;
  result.scaling = scaling;
  return result;
}

}  // namespace starling::models
