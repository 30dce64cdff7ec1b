/// The samples of models: records with features and a label. Here are their types, and data sets of
/// samples from every source that `starling train --data` reads; sample_table.hpp makes a set of
/// samples the training data of a model, and predictor.hpp applies a trained model to them.
///
///     auto samples = starling::flow::samples(engine, "csv:people.csv,label=income").value();
///
/// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "starling/actor/flow/map_reduce.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/flow/set.hpp"
#include "starling/models/table.hpp"

namespace starling::flow {

/// A sample with a value for each feature.
struct Sample {
  std::vector<float> features;
  /// The class or the real target, as its source writes it: the index of the class if classes have
  /// names. 0 if it is not known.
  float label = 0;

  bool operator==(const Sample&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.features, m.label); }
};

/// A sample of which only some features are not 0.
struct SparseSample {
  /// The indices of these features, from 0, ascending.
  std::vector<std::uint32_t> columns;
  /// The value of each of these features.
  std::vector<float> values;
  /// As Sample::label.
  float label = 0;

  bool operator==(const SparseSample&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.columns, m.values, m.label); }
};

/// Returns a sparse sample as a line of a LIBSVM file, whose indices begin with 1. Other records,
/// and dense samples, become lines with tabs (line_of() in save_text.hpp).
[[nodiscard]] std::string print(const SparseSample& sample);

/// Returns the rows of a table, in their order; each part is a range of rows. A missing number of a
/// file that was read with missing=mean is replaced by the mean of its column. The set holds the
/// table. Plans and errors call it `name`. An Error says that the table is sparse, or that a column
/// has no number.
[[nodiscard]] Result<Set<Sample>> samples(const MapReduce& engine, models::Table table,
                                          const std::string& name = "table");
/// The same for a sparse table. An Error says that the table is dense.
[[nodiscard]] Result<Set<SparseSample>> sparse_samples(const MapReduce& engine, models::Table table,
                                                       const std::string& name = "table");

/// Returns the samples of a source such as "csv:FILE,label=NAME"; models/data/source/source.hpp
/// lists all. The whole source is loaded into memory, once, by this call, whatever the number of
/// parts. A generator draws the samples of `seed`. An Error says why the source cannot be loaded,
/// or that it is sparse.
[[nodiscard]] Result<Set<Sample>> samples(const MapReduce& engine, const std::string& source,
                                          std::uint64_t seed = 1);
/// The same for a sparse source, such as "libsvm:FILE".
[[nodiscard]] Result<Set<SparseSample>> sparse_samples(const MapReduce& engine,
                                                       const std::string& source,
                                                       std::uint64_t seed = 1);

}  // namespace starling::flow
