#include "starling/actor/flow/sample_rows.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/engine/flow/chain/chain.hpp"
#include "starling/models/data/source/raw_table.hpp"

namespace starling::flow {
namespace {

std::string print(float number) { return print_number(static_cast<double>(number)); }

void check_finite(std::span<const float> values, std::string_view name) {
  const auto at = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (at == values.end()) return;
  throw std::invalid_argument{std::string{name} + "[" + std::to_string(at - values.begin()) +
                              "] is " + print(*at) + "; valid: a finite number"};
}

void check_label(float label, const TableOptions& options) {
  if (!std::isfinite(label))
    throw std::invalid_argument{"the label is " + print(label) + "; valid: a finite number"};
  if (!options.labelling || options.labelling->classes == 0) return;
  if (!models::find_class(label, *options.labelling))
    throw std::invalid_argument{"the label " + print(label) + " is not a class; valid: " +
                                models::print_classes(*options.labelling)};
}

/// Throws unless the columns ascend and are below `features`.
void check_columns(std::span<const std::uint32_t> columns, std::uint64_t features) {
  const auto name = [&](std::size_t i) {
    return "columns[" + std::to_string(i) + "] is " + std::to_string(columns[i]);
  };
  for (std::size_t i = 1; i < columns.size(); ++i)
    if (columns[i] <= columns[i - 1])
      throw std::invalid_argument{name(i) + " and the one before it " +
                                  std::to_string(columns[i - 1]) + "; valid: columns that ascend"};
  if (!columns.empty() && columns.back() >= features)
    throw std::invalid_argument{name(columns.size() - 1) + "; valid: 0 to " +
                                std::to_string(features - 1)};
}

/// Returns the table of the samples in `raw`, whose labels are still those of the set.
Result<models::Table> label_rows(models::RawTable raw, const TableOptions& options) {
  if (raw.labels.empty()) return Error{"the set has no samples; valid: at least one"};
  raw.source = "samples";
  raw.task = options.task;
  // The labels of classes with names are the indices of the names, not numbers that are names.
  if (options.labelling && !options.labelling->names.empty()) raw.labelling = options.labelling;
  if (options.labelling) return models::to_table(std::move(raw), *options.labelling);
  const auto labelling = models::infer_labelling(raw);
  if (!labelling) return labelling.error();
  return models::to_table(std::move(raw), *labelling);
}

template <class T>
void append(std::vector<T>& all, const std::vector<T>& values) {
  all.insert(all.end(), values.begin(), values.end());
}

/// Returns the number of samples.
template <class R>
std::size_t count_samples(const std::vector<std::shared_ptr<const R>>& parts) {
  std::size_t count = 0;
  for (const auto& part : parts) count += part->labels.size();
  return count;
}

/// Returns an Error if the rows of a part, which another node may have made, do not fit together.
Result<void> check_rows(const DenseRows& rows) {
  if (rows.features <= models::features_max &&
      rows.values.size() == rows.features * rows.labels.size())
    return {};
  return Error{"the number of values is not the number of samples times that of features"};
}
Result<void> check_rows(const SparseRows& rows) {
  const bool fits =
      rows.features <= models::features_max && rows.ends.size() == rows.labels.size() &&
      rows.columns.size() == rows.values.size() && std::ranges::is_sorted(rows.ends) &&
      (rows.ends.empty() ? 0 : rows.ends.back()) == rows.values.size() &&
      std::ranges::all_of(rows.columns,
                          [&](std::uint32_t column) { return column < rows.features; });
  if (fits) return {};
  return Error{"the columns of samples do not fit together"};
}

}  // namespace

void DenseRows::add(const Sample& sample, const TableOptions& options) {
  const std::size_t size = sample.features.size();
  if (size == 0) throw std::invalid_argument{"the sample has no features; valid: at least one"};
  const std::uint64_t expected = options.features.value_or(labels.empty() ? size : features);
  if (size != expected)
    throw std::invalid_argument{"the sample has " + print_count(size, "feature") +
                                "; valid: " + std::to_string(expected) +
                                (options.features ? "" : ", as the samples before it have")};
  check_finite(sample.features, "features");
  check_label(sample.label, options);
  features = expected;
  append(values, sample.features);
  labels.push_back(sample.label);
}

void SparseRows::add(const SparseSample& sample, const TableOptions& options) {
  if (sample.columns.size() != sample.values.size())
    throw std::invalid_argument{"the sample has " + print_count(sample.columns.size(), "column") +
                                " and " + print_count(sample.values.size(), "value") +
                                "; valid: as many of both"};
  check_columns(sample.columns, options.features.value_or(models::features_max));
  check_finite(sample.values, "values");
  check_label(sample.label, options);
  const std::uint64_t own = sample.columns.empty() ? 0 : sample.columns.back() + std::uint64_t{1};
  features = options.features.value_or(std::max(features, own));
  append(columns, sample.columns);
  append(values, sample.values);
  ends.push_back(values.size());
  labels.push_back(sample.label);
}

Result<models::Table> join_rows(std::vector<std::shared_ptr<const DenseRows>> parts,
                                const TableOptions& options) {
  models::RawTable raw;
  models::Table::Dense x;
  raw.labels.reserve(count_samples(parts));
  Part first = 0;
  for (Part part = 0; part < parts.size(); ++part) {
    const auto rows = std::exchange(parts[part], nullptr);  // frees the rows that are copied
    if (auto valid = check_rows(*rows); !valid) return std::move(valid).error().within("to_table");
    if (rows->labels.empty()) continue;
    if (raw.labels.empty()) {
      first = part;
      raw.features = rows->features;
      x.values.reserve(raw.features * raw.labels.capacity());
    }
    if (rows->features != raw.features)
      return Error{"has " + print_count(rows->features, "feature") + ", but part " +
                   std::to_string(first) + ", record 0, has " + std::to_string(raw.features) +
                   "; valid: the same number in all samples"}
          .within(location_in_part("to_table", part, 0));
    append(x.values, rows->values);
    append(raw.labels, rows->labels);
  }
  raw.x = std::move(x);
  return label_rows(std::move(raw), options);
}

Result<models::Table> join_rows(std::vector<std::shared_ptr<const SparseRows>> parts,
                                const TableOptions& options) {
  models::RawTable raw;
  models::Table::Sparse x;
  for (auto& part : parts) {
    const auto rows = std::exchange(part, nullptr);  // frees the rows that are copied
    if (auto valid = check_rows(*rows); !valid) return std::move(valid).error().within("to_table");
    raw.features = std::max<std::size_t>(raw.features, rows->features);
    const std::uint64_t stored = x.values.size();
    for (const std::uint64_t end : rows->ends) x.starts.push_back(stored + end);
    append(x.columns, rows->columns);
    append(x.values, rows->values);
    append(raw.labels, rows->labels);
  }
  if (raw.features == 0 && !raw.labels.empty())
    return Error{"no sample has a feature; valid: at least one column in a sample"};
  raw.x = std::move(x);
  return label_rows(std::move(raw), options);
}

}  // namespace starling::flow
