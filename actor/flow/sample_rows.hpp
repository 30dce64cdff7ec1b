/// Collects samples as rows of a table. Plain values; one thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "starling/actor/flow/samples.hpp"
#include "starling/models/data/source/source.hpp"
#include "starling/models/table.hpp"

namespace starling::flow {

/// The requirements on samples that become a table.
struct TableOptions {
  /// The number of features of each sample. Absent: dense samples have as many as the first sample,
  /// and sparse samples one more than the largest column of all samples.
  std::optional<std::uint64_t> features = std::nullopt;
  /// The meaning of labels. Absent: the labels of all samples decide, as those of a file do
  /// (models::load()).
  std::optional<models::Labelling> labelling = std::nullopt;
  /// Says without `labelling` whether labels are classes or real targets. Absent: the labels
  /// decide.
  std::optional<models::LabelKind> task = std::nullopt;

  /// The options for samples that a model trained on `train` is tested on.
  [[nodiscard]] static TableOptions like(const models::Table& train) {
    return {.features = train.features(), .labelling = train.labelling};
  }
};

/// Dense samples, row by row. This is a record, so that it can travel from node to node.
struct DenseRows {
  std::uint64_t features = 0;
  /// [labels.size() x features], row-major.
  std::vector<float> values;
  std::vector<float> labels;

  /// Adds a sample. Throws std::invalid_argument if the sample is not as `options` say, has another
  /// number of features than the samples before it, or has a number that is not finite.
  void add(const Sample& sample, const TableOptions& options);

  static constexpr auto fields(auto& m) { return std::tie(m.features, m.values, m.labels); }
};

/// Sparse samples, row by row. This is a record, too.
struct SparseRows {
  /// One more than the largest column, or TableOptions::features.
  std::uint64_t features = 0;
  /// The end of each row in `columns` and `values`.
  std::vector<std::uint64_t> ends;
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  std::vector<float> labels;

  /// As DenseRows::add(). Columns must ascend.
  void add(const SparseSample& sample, const TableOptions& options);

  static constexpr auto fields(auto& m) {
    return std::tie(m.features, m.ends, m.columns, m.values, m.labels);
  }
};

namespace detail {

template <class S>
struct RowsOf;
template <>
struct RowsOf<Sample> {
  using Type = DenseRows;
};
template <>
struct RowsOf<SparseSample> {
  using Type = SparseRows;
};

}  // namespace detail

template <class S>
concept SampleRecord = requires {
  typename detail::RowsOf<S>::Type;
};

/// The rows of samples of type S, which is Sample or SparseSample.
template <SampleRecord S>
using Rows = typename detail::RowsOf<S>::Type;

/// Returns the rows of all parts, in their order, as a table. Returns an Error if dense parts
/// differ in their number of features, if no sparse sample has a feature, if a label is not a
/// class, or if there are no rows.
[[nodiscard]] Result<models::Table> join_rows(std::vector<std::shared_ptr<const DenseRows>> parts,
                                              const TableOptions& options);
[[nodiscard]] Result<models::Table> join_rows(std::vector<std::shared_ptr<const SparseRows>> parts,
                                              const TableOptions& options);

}  // namespace starling::flow
