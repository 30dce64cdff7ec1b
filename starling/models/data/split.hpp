/// What is trained on and what is tested on: `--data`, `--test`, `--split` and `--holdout`.
#pragma once

#include <cstdint>
#include <optional>

#include "starling/base/result.hpp"
#include "starling/models/data/load.hpp"
#include "starling/models/data/source.hpp"

namespace starling::models {

/// A training table and a test table of the same features and classes.
using Split = TablePair;

/// At most one of test, split and holdout; with none, holdout_default applies.
struct SplitOptions {
  static constexpr double holdout_default = 0.2;

  Source data;
  /// A source of its own for testing.
  std::optional<Source> test = std::nullopt;
  /// The first rows train, the rest test.
  std::optional<std::uint64_t> split = std::nullopt;
  /// The share of rows, in (0, 1), drawn by seed for testing.
  std::optional<double> holdout = std::nullopt;
  /// Draws the held out rows, and what generators make.
  std::uint64_t seed = 1;
};

/// Loads and divides as asked.
Result<Split> load_split(const SplitOptions& options);

/// The first `rows` rows train, the rest test. Refuses to leave either without a row.
Result<Split> split_first(const Table& table, std::uint64_t rows);

/// round(share * size) rows drawn by `seed` test, the others train; both keep their order. Refuses
/// to leave either without a row.
Result<Split> hold_out(const Table& table, double share, std::uint64_t seed);

}  // namespace starling::models
