#include "starling/tools/run/flows/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

using Numbers = flow::Set<double>;
using Range = std::pair<double, double>;

/// Counts by bin. The first element counts the numbers below all bins, and is reported as `below`;
/// the last one counts the numbers above all bins, and is reported as `above`.
using Counts = std::vector<std::uint64_t>;

Result<Numbers> numbers_of(const Histogram& options, const FlowContext& context) {
  const auto lines = context.text(options.columns.has_header);
  if (!lines) return lines.error();
  const auto table =
      options.columns.open(context.inputs(), context.engine().options().skip_unreadable);
  if (!table) return table.error();
  const auto index = find_column("column", options.column, table->files.front(), table->format);
  if (!index) return index.error();
  return Numbers{
      lines->filter([](const std::string& line) { return !is_blank(line); })
          .map([index = *index, separator = table->format.separator](const std::string& line) {
            return number_at(split_columns(line, separator), index);
          })};
}

/// Returns the smallest and the largest number; nothing if there is none.
Result<std::optional<Range>> range_of(const Numbers& numbers) {
  return numbers.map([](double number) {
                  return Range{number, number};
                })
      .reduce([](const Range& a, const Range& b) {
        return Range{std::min(a.first, b.first), std::max(a.second, b.second)};
      });
}

/// Returns the edges of the bins; one bin if the range is a point.
std::vector<double> edges_of(const Range& range, std::uint64_t bins) {
  if (range.first == range.second) return {range.first, range.second};
  std::vector<double> edges;
  for (std::uint64_t i = 0; i <= bins; ++i)
    edges.push_back(
        std::lerp(range.first, range.second, static_cast<double>(i) / static_cast<double>(bins)));
  return edges;
}

/// Returns the index in Counts of the count to which `number` belongs.
std::size_t bin_of(double number, const std::vector<double>& edges) {
  if (number == edges.back()) return edges.size() - 1;
  return static_cast<std::size_t>(std::ranges::upper_bound(edges, number) - edges.begin());
}

Result<Counts> count_bins(const Numbers& numbers, const std::vector<double>& edges) {
  const auto add = [&edges](Counts&& counts, double number) {
    ++counts[bin_of(number, edges)];
    return std::move(counts);
  };
  const auto merge = [](const Counts& a, const Counts& b) {
    if (a.size() != b.size())
      throw std::runtime_error{"the counts of two parts differ in their number of bins: " +
                               std::to_string(a.size()) + " and " + std::to_string(b.size())};
    Counts sum = a;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
    return sum;
  };
  return numbers.fold(Counts(edges.size() + 1), add, merge);
}

}  // namespace

std::vector<FlowOption> Histogram::flow_options() {
  std::vector<FlowOption> all{
      {"bins", "N", "the number of bins, to 100000 [20]"},
      {"low", "X", "the lower edge of the first bin [the smallest number]"},
      {"high", "X", "the upper edge of the last bin [the largest number]"},
      {"column", "COLUMN", "the column: its number from 1, or with --header its name [1]"}};
  for (auto& option : ColumnFormat::flow_options()) all.push_back(std::move(option));
  return all;
}

Histogram Histogram::parse(SpecReader& options) {
  Histogram histogram{.bins = options.count("bins", 20, 1, 100'000),
                      .low = options.text("low", ""),
                      .high = options.text("high", ""),
                      .column = options.text("column", "1"),
                      .columns = ColumnFlags::parse(options)};
  std::vector<double> given;
  for (const auto& [key, text] : {std::pair{"low", histogram.low}, {"high", histogram.high}}) {
    if (text.empty()) continue;
    if (const auto number = parse_number(text))
      given.push_back(*number);
    else
      options.refuse(std::string{key} + "=" + text + " must be a finite number");
  }
  if (given.size() == 2 && given[0] >= given[1])
    options.refuse("low=" + histogram.low + " is not below high=" + histogram.high +
                   "; valid: a smaller low");
  return histogram;
}

Result<flow::Set<std::string>> Histogram::run(FlowContext& context) const {
  const auto numbers = numbers_of(*this, context);
  if (!numbers) return numbers.error();
  std::optional<Range> range;
  if (low.empty() || high.empty()) {
    auto found = range_of(*numbers);
    if (!found) return std::move(found).error();
    range = *found;
  } else {
    range = Range{};
  }
  std::vector<std::string> lines;
  if (range) {
    const Range found = *range;
    if (!low.empty()) range->first = parse_number(low).value();
    if (!high.empty()) range->second = parse_number(high).value();
    if (range->first > range->second)
      return high.empty() ? Error{"--low: " + low + " is above all numbers; valid: up to " +
                                  print_number(found.second)}
                          : Error{"--high: " + high + " is below all numbers; valid: from " +
                                  print_number(found.first)};
    const std::vector<double> edges = edges_of(*range, bins);
    const auto counts = count_bins(*numbers, edges);
    if (!counts) return counts.error();
    for (std::size_t i = 1; i + 1 < counts->size(); ++i)
      lines.push_back(flow::line_of(std::tuple{edges[i - 1], edges[i], (*counts)[i]}));
    context.add_figure("below", static_cast<double>(counts->front()));
    context.add_figure("above", static_cast<double>(counts->back()));
  }
  return flow::Set<std::string>{context.engine().collection(std::move(lines))};
}

}  // namespace starling::program
