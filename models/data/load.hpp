/// From a Source to a Table. Blocking; safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "starling/base/result.hpp"
#include "starling/models/data/source/source.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Reads or generates `source`, all of it or an error. `seed` matters to generators only: the same
/// seed gives the same table on every machine, and the first rows do not depend on n.
///
/// Labels of CSV and LIBSVM are classes where they are written 0..k-1, 1..k, or -1 and +1 with 2 to
/// 100 different values and none left out, else real targets; task=class or task=value overrides
/// that. Labels of text are classes. Classes become 0..k-1 in the table. A number that is missing
/// is NaN, see missing.hpp.
Result<Table> load(const Source& source, std::uint64_t seed);

/// The same for a model that was trained on a table of the same seed: labels are read by that
/// table's `rule` where it is given, and a generator gives samples of the same truth that are in no
/// training data.
Result<Table> load_test(const Source& source, std::uint64_t seed,
                        const std::optional<Labelling>& rule);

/// A training table, and a test table that fits it.
struct TablePair {
  Table train;
  Table test;
};

/// Reads both so that they fit: sparse tables get the larger number of features of the two; the
/// labels of `test` are read by the rule found for `train` and must be among its classes. A
/// generator gives its test the same truth as its training data, but no sample of it. Errors are
/// led by `data:` or `test:`.
Result<TablePair> load_pair(const Source& train, const Source& test, std::uint64_t seed);

}  // namespace starling::models
