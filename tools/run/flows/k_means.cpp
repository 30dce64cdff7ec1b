#include "starling/tools/run/flows/k_means.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "starling/base/random.hpp"
#include "starling/base/text.hpp"

namespace starling::program {
namespace {

using Point = std::vector<double>;
using Points = flow::Set<Point>;
using Centres = std::vector<Point>;

/// The sum of a cluster's points, and their number.
struct ClusterSum {
  Point sum;
  std::uint64_t points = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.sum, m.points); }
};
/// The sums that one iteration needs: for each cluster, the sum of its points; and the sum of the
/// squared distances of all points from their centres.
struct IterationSums {
  std::vector<ClusterSum> clusters;
  double squared_distances = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.clusters, m.squared_distances); }
};

/// About the largest number of points from which k-means++ draws the first centres.
constexpr double sample_points = 20'000;

double squared_distance(const Point& a, const Point& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/// Returns the index of the nearest centre, the first of equally near ones, and the squared
/// distance from it.
std::pair<std::size_t, double> nearest_centre(const Point& point, const Centres& centres) {
  std::pair<std::size_t, double> best{0, std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < centres.size(); ++i)
    if (const double distance = squared_distance(point, centres[i]); distance < best.second)
      best = {i, distance};
  return best;
}

/// Returns the point of a line. Throws std::invalid_argument unless the line has `dimensions`
/// numbers.
Point point_of(const std::string& line, Separator separator, std::size_t dimensions) {
  const auto columns = split_columns(line, separator);
  if (columns.size() != dimensions)
    throw std::invalid_argument{"the line has " + print_count(columns.size(), "column") +
                                ", and the first line has " + std::to_string(dimensions) +
                                "; valid: the same number of columns in each line"};
  Point point(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) point[i] = number_at(columns, i);
  return point;
}

/// Draws `k` centres by k-means++. Stops early if the sample has fewer different points.
Centres draw_centres(const std::vector<Point>& sample, std::uint64_t k, std::uint64_t seed) {
  Centres centres;
  Random random{seed};
  std::vector<double> weights(sample.size(), 1.0);
  while (centres.size() < k) {
    double total = 0;
    for (const double weight : weights) total += weight;
    if (!(total > 0)) break;
    double left = random.real() * total;
    std::size_t drawn = sample.size();
    for (std::size_t i = 0; i < sample.size() && (drawn == sample.size() || left >= 0); ++i) {
      if (weights[i] > 0) drawn = i;
      left -= weights[i];
    }
    centres.push_back(sample[drawn]);
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const double distance = squared_distance(sample[i], centres.back());
      weights[i] = centres.size() == 1 ? distance : std::min(weights[i], distance);
    }
  }
  return centres;
}

Result<IterationSums> sum_iteration(const Points& points, const Centres& centres) {
  IterationSums zero{.clusters = std::vector<ClusterSum>(
                         centres.size(), ClusterSum{Point(centres.front().size()), 0})};
  const auto add = [&centres](IterationSums&& sums, const Point& point) {
    const auto [index, distance] = nearest_centre(point, centres);
    ClusterSum& cluster = sums.clusters[index];
    for (std::size_t i = 0; i < point.size(); ++i) cluster.sum[i] += point[i];
    ++cluster.points;
    sums.squared_distances += distance;
    return std::move(sums);
  };
  const auto merge = [](const IterationSums& a, const IterationSums& b) {
    // Another node may have made `b`.
    const auto differs = [](const ClusterSum& x, const ClusterSum& y) {
      return x.sum.size() != y.sum.size();
    };
    if (a.clusters.size() != b.clusters.size() ||
        !std::ranges::equal(a.clusters, b.clusters, std::not_fn(differs)))
      throw std::runtime_error{
          "the sums of two parts differ in their number of clusters or of coordinates"};
    IterationSums both = a;
    for (std::size_t c = 0; c < both.clusters.size(); ++c) {
      for (std::size_t i = 0; i < both.clusters[c].sum.size(); ++i)
        both.clusters[c].sum[i] += b.clusters[c].sum[i];
      both.clusters[c].points += b.clusters[c].points;
    }
    both.squared_distances += b.squared_distances;
    return both;
  };
  return points.fold(zero, add, merge);
}

/// Moves each centre to the mean of its points; a centre without points stays. Returns true if one
/// has moved.
bool move_centres(Centres& centres, const IterationSums& sums) {
  bool has_moved = false;
  for (std::size_t c = 0; c < centres.size(); ++c) {
    if (sums.clusters[c].points == 0) continue;
    Point mean = sums.clusters[c].sum;
    for (double& x : mean) x /= static_cast<double>(sums.clusters[c].points);
    has_moved |= mean != centres[c];
    centres[c] = std::move(mean);
  }
  return has_moved;
}

Result<Centres> read_centres(const FlowContext& context, const KMeans& options,
                             std::size_t dimensions) {
  const auto lines = context.engine().text({options.centres}, options.columns.has_header);
  if (!lines) return lines.error();
  const auto separator = options.columns.format_of(options.centres).separator;
  auto centres = lines->filter([](const std::string& line) { return !is_blank(line); })
                     .map([separator, dimensions](const std::string& line) {
                       return point_of(line, separator, dimensions);
                     })
                     .collect();
  if (centres && centres->empty())
    return Error{options.centres + ": has no centre; valid: one line for each centre"};
  return centres;
}

/// Returns the first centres.
Result<Centres> first_centres(const FlowContext& context, const KMeans& options,
                              const Points& points, std::size_t dimensions) {
  if (!options.centres.empty()) return read_centres(context, options, dimensions);
  const auto count = points.count();
  if (!count) return count.error();
  if (*count == 0)
    return Error{context.inputs().front() + ": has no points; valid: lines of numbers"};
  const double all = static_cast<double>(*count);
  const auto sample = all <= sample_points
                          ? points.collect()
                          : points.sample(sample_points / all, options.seed).collect();
  if (!sample) return sample.error();
  Centres centres = draw_centres(*sample, options.k, options.seed);
  if (centres.size() < options.k)
    return Error{"--k: " + std::to_string(options.k) +
                 " is too many: " + (all > sample_points ? "a sample of the input" : "the input") +
                 " has " + print_count(centres.size(), "different point") + "; valid: 1 to " +
                 std::to_string(centres.size())};
  return centres;
}

flow::Set<std::string> centre_lines(const FlowContext& context, const Centres& centres,
                                    const IterationSums& sums) {
  std::vector<std::string> lines;
  for (std::size_t c = 0; c < centres.size(); ++c) {
    std::string line = std::to_string(c) + '\t' + std::to_string(sums.clusters[c].points);
    for (const double x : centres[c]) line += '\t' + print_number(x);
    lines.push_back(std::move(line));
  }
  return context.engine().collection(std::move(lines));
}

}  // namespace

std::vector<FlowOption> KMeans::flow_options() {
  std::vector<FlowOption> all{
      {"k", "K", "the number of clusters, to 10000 [8]"},
      {"iterations", "N", "the most iterations; they end when no centre moves [100]"},
      {"seed", "N", "the seed of the first centres [1]"},
      {"centres", "FILE", "the first centres, instead of --k and --seed"},
      {"assign", "", "write each line with its cluster, not the centres"}};
  for (auto& option : ColumnFormat::flow_options()) all.push_back(std::move(option));
  return all;
}

KMeans KMeans::parse(SpecReader& options) {
  const bool has_drawn_centres = options.has("k") || options.has("seed");
  KMeans k_means{.k = options.count("k", 8, 1, 10'000),
                 .iterations = options.count("iterations", 100, 1, 100'000),
                 .seed = options.count("seed", 1),
                 .centres = options.text("centres", ""),
                 .assigns = options.flag("assign"),
                 .columns = ColumnFlags::parse(options)};
  if (!k_means.centres.empty() && has_drawn_centres)
    options.refuse("centres cannot be combined with k or seed; valid: centres, or k and seed");
  return k_means;
}

Result<flow::Set<std::string>> KMeans::run(FlowContext& context) const {
  const auto lines = context.text(columns.has_header);
  if (!lines) return lines.error();
  const auto table = columns.open(context.inputs(), context.engine().options().skip_unreadable);
  if (!table) return table.error();
  std::size_t dimensions = 0;
  for (const std::string& file : table->files) {
    const auto first = first_columns(file, table->format);
    if (!first) return first.error();
    if ((dimensions = first->size()) > 0) break;
  }
  if (dimensions == 0)
    return Error{table->files.front() + ": has no points; valid: lines of numbers"};
  const Separator separator = table->format.separator;
  const auto rows = lines->filter([](const std::string& line) { return !is_blank(line); });
  const Points points = Points{rows.map([separator, dimensions](const std::string& line) {
                          return point_of(line, separator, dimensions);
                        })}.cache();
  auto centres = first_centres(context, *this, points, dimensions);
  if (!centres) return std::move(centres).error();
  auto sums = sum_iteration(points, *centres);
  std::uint64_t done_iterations = 0;
  while (sums && done_iterations < iterations && move_centres(*centres, *sums)) {
    ++done_iterations;
    sums = sum_iteration(points, *centres);
  }
  if (!sums) return std::move(sums).error();
  context.add_figure("iterations", static_cast<double>(done_iterations));
  context.add_figure("sum of squared distances", sums->squared_distances);
  if (!assigns) return centre_lines(context, *centres, *sums);
  const auto last_centres = std::make_shared<const Centres>(*std::move(centres));
  return flow::Set<std::string>{
      rows.map([last_centres, separator, dimensions](const std::string& line) {
        const auto point = point_of(line, separator, dimensions);
        return std::to_string(nearest_centre(point, *last_centres).first) + '\t' + line;
      })};
}

}  // namespace starling::program
