/// Loads tables from the sources that users name. Blocking; safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "starling/base/result.hpp"
#include "starling/models/data/source/source.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Reads or generates all of `source`. Only generators use `seed`: the same seed gives the same
/// table on every machine, and the first rows do not depend on n.
///
/// Labels that are numbers are classes if they are all of 0..k-1, all of 1..k, or -1 and +1, with 2
/// to 100 different values; else they are real targets. task=class or task=value overrides that.
/// Labels of text are classes. Classes become 0..k-1 in the table. A missing number becomes NaN,
/// see missing.hpp.
Result<Table> load(const Source& source, std::uint64_t seed);

/// Loads test data for a model that was trained on load(..., seed). `labelling`, if given, is that
/// of the training table and decides what the labels mean. A generator draws samples of the same
/// true parameters that are not in the training data.
Result<Table> load_test(const Source& source, std::uint64_t seed,
                        const std::optional<Labelling>& labelling);

/// A training table and a test table for the same model.
struct TablePair {
  Table train;
  Table test;
};

/// Loads a training table and a test table for the same model. Sparse tables both get the larger of
/// their numbers of features. The labelling of `train` decides what the labels of `test` mean,
/// which must be among its classes. A generator draws the test data from the same true parameters
/// as the training data, but other samples. Errors begin with `data:` or `test:`.
Result<TablePair> load_pair(const Source& train, const Source& test, std::uint64_t seed);

}  // namespace starling::models
