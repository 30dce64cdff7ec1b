/// Loads tables from the sources that users name. Blocking; safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/data/source/source.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Reads or generates all rows of `source`. Only generators use `seed`: the same seed gives the
/// same table on every machine, and a row does not depend on the number of rows.
///
/// Labels that are numbers are classes if the values that occur are exactly 0..k-1 or 1..k, with k
/// from 2 to 100, or -1 and +1; else they are real targets. task=class or task=value overrides
/// this. Labels that are text are classes. The table numbers the classes 0..k-1. A missing number
/// becomes NaN in the table; filled() in missing.hpp replaces it.
Result<Table> load(const Source& source, std::uint64_t seed);

/// Loads test data for a model that was trained on load(..., seed). `labelling`, if given, is the
/// training table's and decides what the labels mean. A generator uses the true parameters of the
/// training data, but draws other samples.
Result<Table> load_test(const Source& source, std::uint64_t seed,
                        const std::optional<Labelling>& labelling);

/// Returns an Error if `test` and `train`, the Table::image of two tables, are known and differ.
Result<void> check_image(const std::vector<std::size_t>& test,
                         const std::vector<std::size_t>& train);

/// Fills in the options that the user left out for `test` and that `train`, the source of the
/// training data, has: the columns of labels and ids of CSV files, and the size of images.
void inherit_options(const Source& train, Source& test);

/// A training table and a test table for the same model.
struct TablePair {
  Table train;
  Table test;
};

/// Loads a training table and a test table for the same model. If both are sparse, both get the
/// larger of their two numbers of features. The labelling of `train` decides what the labels of
/// `test` mean; a test label that is not one of its classes is an error. A generator uses the same
/// true parameters for both tables, but draws other samples. Errors begin with `data:` or `test:`.
Result<TablePair> load_pair(const Source& train, const Source& test, std::uint64_t seed);

}  // namespace starling::models
