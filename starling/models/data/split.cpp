#include "starling/models/data/split.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "starling/base/permutation.hpp"
#include "starling/base/random.hpp"
#include "starling/base/text.hpp"

namespace starling::models {
namespace {

/// Keeps the draw apart from all else that the seed decides.
constexpr std::uint64_t holdout_stream = 0x686f6c64;

Result<void> check_options(const SplitOptions& options) {
  std::vector<std::string> given;
  if (options.test) given.emplace_back("--test");
  if (options.split) given.emplace_back("--split");
  if (options.holdout) given.emplace_back("--holdout");
  if (given.size() < 2) return {};
  std::string text = given[0];
  for (std::size_t i = 1; i < given.size(); ++i)
    text += (i + 1 == given.size() ? " and " : ", ") + given[i];
  return Error{text + " exclude each other; valid: one of --test, --split and --holdout"};
}

/// Rows where `chosen` is `value`.
std::vector<std::uint32_t> rows_where(const std::vector<bool>& chosen, bool value) {
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i] == value) rows.push_back(static_cast<std::uint32_t>(i));
  return rows;
}

Split divide(const Table& table, const std::vector<bool>& tests) {
  return {table.select(rows_where(tests, false)), table.select(rows_where(tests, true))};
}

}  // namespace

Result<Split> split_first(const Table& table, std::uint64_t rows) {
  if (rows == 0 || rows >= table.size())
    return Error{
        "--split " + std::to_string(rows) + " of " + std::to_string(table.size()) +
        " rows leaves nothing to " + (rows == 0 ? "train" : "test") + " on; valid: " +
        (table.size() < 2 ? "no split of one row" : "1 to " + std::to_string(table.size() - 1))};
  std::vector<bool> tests(table.size(), false);
  for (std::size_t i = rows; i < tests.size(); ++i) tests[i] = true;
  return divide(table, tests);
}

Result<Split> hold_out(const Table& table, double share, std::uint64_t seed) {
  if (!(share > 0 && share < 1))
    return Error{"--holdout " + print_number(share) +
                 " is not a share; valid: numbers between 0 and 1, both excluded"};
  const auto size = static_cast<double>(table.size());
  const auto count = static_cast<std::uint64_t>(std::llround(share * size));
  if (count == 0 || count >= table.size())
    return Error{"--holdout " + print_number(share) + " of " + std::to_string(table.size()) +
                 " rows leaves nothing to " + (count == 0 ? "test" : "train") + " on"};
  const Permutation order{table.size(), Random::stream(seed, holdout_stream)()};
  std::vector<bool> tests(table.size(), false);
  for (std::uint64_t i = 0; i < count; ++i) tests[order(i)] = true;
  return divide(table, tests);
}

Result<Split> load_split(const SplitOptions& options) {
  if (auto checked = check_options(options); !checked) return std::move(checked).error();
  if (options.test) return load_pair(options.data, *options.test, options.seed);
  const auto table = load(options.data, options.seed);
  if (!table) return table.error();
  if (options.split) return split_first(*table, *options.split);
  return hold_out(*table, options.holdout.value_or(SplitOptions::holdout_default), options.seed);
}

}  // namespace starling::models
