/// The flows on tables and numbers, compared with sequential code.
#include <cmath>
#include <set>

#include "tests/tools/run/flow_runner.hpp"

namespace starling::program {
namespace {

/// Rows KEY VALUE with skewed keys.
std::vector<std::pair<std::string, std::string>> generated_pairs(std::uint64_t seed,
                                                                 std::size_t rows,
                                                                 std::uint64_t keys) {
  Random random{seed};
  std::vector<std::pair<std::string, std::string>> pairs(rows);
  for (std::size_t i = 0; i < rows; ++i)
    pairs[i] = {"ключ" + std::to_string(skewed(random, keys)), "v" + std::to_string(i)};
  return pairs;
}

std::string text_of_pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text;
  for (const auto& [key, value] : pairs) text += key + "\t" + value + "\n";
  return text;
}

TEST(JoinFlow, EqualsNestedLoops) {
  const Folder folder;
  const auto left = generated_pairs(1, 1500, 900);
  const auto right = generated_pairs(2, 600, 900);
  const std::string left_file = put_file(folder, "left.tsv", text_of_pairs(left));
  const std::string right_file = put_gzip(folder, "right.tsv.gz", text_of_pairs(right));
  Lines inner;
  Lines only_left;
  Lines only_right;
  std::set<std::string> left_keys;
  for (const auto& [key, value] : left) left_keys.insert(key);
  for (const auto& [key, value] : left) {
    bool has_partner = false;
    for (const auto& [other_key, other] : right) {
      if (key != other_key) continue;
      has_partner = true;
      inner.push_back(key + "\t" + value + "\t" + other);
    }
    if (!has_partner) only_left.push_back(key + "\t" + value + "\t");
  }
  for (const auto& [key, value] : right)
    if (!left_keys.contains(key)) only_right.push_back(key + "\t\t" + value);
  ASSERT_FALSE(only_right.empty());
  Lines all_left = inner;
  all_left.insert(all_left.end(), only_left.begin(), only_left.end());
  Lines full = all_left;
  full.insert(full.end(), only_right.begin(), only_right.end());
  for_each_setup([&](const FlowSetup& setup) {
    const auto join = [&](const std::string& kind) {
      const FlowOutcome ran =
          run_flow_on("join", {{"with", right_file}, {"kind", kind}}, {left_file}, setup);
      EXPECT_EQ(ran.error, "");
      return sorted_lines(ran.lines);
    };
    EXPECT_EQ(join("inner"), sorted_lines(inner));
    EXPECT_EQ(join("left"), sorted_lines(all_left));
    EXPECT_EQ(join("full"), sorted_lines(full));
  });
}

TEST(JoinFlow, JoinsTablesOfEachFormat) {
  const Folder folder;
  const std::string people =
      put_file(folder, "people.csv", "id,name\r\n1,\"Ada, countess\"\r\n2,Alan\r\n\r\n3,Grace");
  const std::string years = put_file(folder, "years.csv", "year,id\n1815,1\n1906,3\n1900,9\n");
  const std::string empty = put_file(folder, "empty.csv", "");
  const auto join = [&](const std::string& left, const std::string& right,
                        const std::string& kind) {
    const FlowOutcome ran = run_flow_on(
        "join",
        {{"with", right}, {"kind", kind}, {"column", "1"}, {"with-column", "2"}, {"", "header"}},
        {left});
    EXPECT_EQ(ran.error, "");
    return sorted_lines(ran.lines);
  };
  EXPECT_EQ(join(people, years, "inner"), (Lines{"1,\"Ada, countess\",1815", "3,Grace,1906"}));
  EXPECT_EQ(join(people, years, "full"),
            (Lines{"1,\"Ada, countess\",1815", "2,Alan,", "3,Grace,1906", "9,,1900"}));
  EXPECT_EQ(join(people, empty, "inner"), Lines{});
  EXPECT_EQ(join(people, empty, "left"), (Lines{"1,\"Ada, countess\"", "2,Alan", "3,Grace"}));
  EXPECT_EQ(run_flow_on("join", {{"with", years}, {"column", "id"}, {"", "header"}}, {people})
                .lines.size(),
            2U);
}

TEST(JoinFlow, RefusesBadTables) {
  const Folder folder;
  const std::string left = put_file(folder, "left", "a 1\nb 2\nc\n");
  const std::string right = put_file(folder, "right", "a 1\n");
  const auto error = [&](const Options& options) {
    return run_flow_on("join", options, {left}).error;
  };
  EXPECT_EQ(error({{"with", right}}),
            left +
                ":3: the line has 1 column, and the first line has 2; valid: the same number of "
                "columns in each line");
  EXPECT_EQ(error({}), "join: the right table is missing; valid: --with FILE");
  EXPECT_EQ(error({{"with", "/nowhere"}}), "/nowhere: no such file");
  EXPECT_EQ(error({{"with", right}, {"kind", "outer"}}),
            "join: kind=outer is unknown; valid: inner, left, full");
  EXPECT_EQ(error({{"with", right}, {"column", "3"}}),
            "--column: " + left + " has 2 columns; valid: 1 to 2");
  const std::string whole = put_file(folder, "whole", "k 1\n");
  const std::string quoted = put_file(folder, "quoted.csv", "\"a\tb\",2\nk,3\n");
  EXPECT_EQ(run_flow_on("join", {{"with", quoted}, {"kind", "full"}}, {whole}).error,
            quoted +
                ":1: the column 'a\\x09b' has a tab, which divides the columns of the result; "
                "valid: a CSV file on the left");
}

using Point = std::vector<double>;

/// Lloyd's algorithm, one point after the other. Returns the lines of the result.
Lines sequential_clusters(const std::vector<Point>& points, std::vector<Point> centres) {
  for (;;) {
    std::vector<Point> sums(centres.size(), Point(centres[0].size()));
    std::vector<int> counts(centres.size());
    for (const Point& point : points) {
      std::size_t best = 0;
      double best_distance = INFINITY;
      for (std::size_t c = 0; c < centres.size(); ++c) {
        double distance = 0;
        for (std::size_t i = 0; i < point.size(); ++i)
          distance += (point[i] - centres[c][i]) * (point[i] - centres[c][i]);
        if (distance < best_distance) best = c, best_distance = distance;
      }
      ++counts[best];
      for (std::size_t i = 0; i < point.size(); ++i) sums[best][i] += point[i];
    }
    const std::vector<Point> before = centres;
    for (std::size_t c = 0; c < centres.size(); ++c)
      for (std::size_t i = 0; i < centres[c].size() && counts[c] > 0; ++i)
        centres[c][i] = sums[c][i] / counts[c];
    if (centres != before) continue;
    Lines lines;
    for (std::size_t c = 0; c < centres.size(); ++c) {
      lines.push_back(std::to_string(c) + "\t" + std::to_string(counts[c]));
      for (const double x : centres[c]) lines.back() += "\t" + print_number(x);
    }
    return lines;
  }
}

/// Points with whole coordinates, whose sums are exact in any order.
std::vector<Point> generated_points(std::size_t count) {
  Random random{6};
  std::vector<Point> points(count);
  for (Point& point : points) {
    const double centre = static_cast<double>(100 * skewed(random, 6));
    point = {centre + static_cast<double>(random.below(40)),
             -centre + static_cast<double>(random.below(60)), static_cast<double>(random.below(9))};
  }
  return points;
}

std::string text_of_points(const std::vector<Point>& points) {
  std::string text;
  for (const Point& point : points)
    for (std::size_t i = 0; i < point.size(); ++i)
      text += print_number(point[i]) + (i + 1 < point.size() ? "," : "\r\n");
  return text;
}

TEST(KMeansFlow, EqualsSequentialCode) {
  const Folder folder;
  const std::vector<Point> points = generated_points(30'000);
  // The last centre is so far away that it has no point.
  const std::vector<Point> centres{points[0], points[1], points[2], points[3], {1e6, 1e6, 1e6}};
  const std::string file = put_file(folder, "points.csv", text_of_points(points));
  const std::string centre_file = put_file(folder, "centres.csv", text_of_points(centres));
  const Lines expected = sequential_clusters(points, centres);
  std::uint64_t spilled = 0;
  for_each_setup([&](const FlowSetup& setup) {
    const FlowOutcome ran = run_flow_on("kmeans", {{"centres", centre_file}}, {file}, setup);
    ASSERT_EQ(ran.error, "");
    EXPECT_EQ(ran.lines, expected);
    spilled += ran.spilled_bytes;
  });
  EXPECT_GT(spilled, 0U);
}

TEST(KMeansFlow, DrawsTheSameCentresWithAnyWorkers) {
  const Folder folder;
  const std::vector<Point> points = generated_points(2000);
  const std::string file = put_file(folder, "points.csv", text_of_points(points));
  const Options options{{"k", "4"}, {"seed", "3"}};
  const FlowOutcome first = run_flow_on("kmeans", options, {file}, {.workers = 1});
  ASSERT_EQ(first.lines.size(), 4U);
  // The result is a fixed point: from its centres, sequential code comes to the same centres.
  std::vector<Point> centres;
  for (const std::string& line : first.lines) {
    const auto columns = split_columns(line, Separator::tab);
    centres.push_back({std::stod(columns[2]), std::stod(columns[3]), std::stod(columns[4])});
  }
  EXPECT_EQ(sequential_clusters(points, centres), first.lines);
  for (std::size_t workers = 2; workers <= 8; ++workers)
    EXPECT_EQ(run_flow_on("kmeans", options, {file}, {.workers = workers}).lines, first.lines);
  Options assigned = options;
  assigned.emplace_back("", "assign");
  const FlowOutcome assignment = run_flow_on("kmeans", assigned, {file});
  EXPECT_EQ(assignment.lines.size(), points.size());
  for (std::size_t c = 0; c < 4; ++c)
    EXPECT_EQ(std::ranges::count_if(
                  assignment.lines,
                  [&](const auto& line) { return line.starts_with(std::to_string(c) + "\t"); }),
              std::stoi(split_columns(first.lines[c], Separator::tab)[1]));
}

TEST(KMeansFlow, RefusesWhatHasNoClusters) {
  const Folder folder;
  const std::string file = put_file(folder, "points", "1 2\n1 2\n3 4");
  const auto error = [&](const Options& options) {
    return run_flow_on("kmeans", options, {file}).error;
  };
  EXPECT_EQ(error({{"k", "0"}}), "kmeans: k=0 must be a whole number >= 1 and <= 10000");
  EXPECT_EQ(error({{"k", "3"}}),
            "--k: 3 is too many: the input has 2 different points; valid: 1 to 2");
  EXPECT_EQ(error({{"k", "2"}}), "");
  EXPECT_EQ(error({{"k", "2"}, {"centres", file}}),
            "kmeans: centres cannot be combined with k or seed; valid: centres, or k and seed");
  EXPECT_EQ(error({{"centres", put_file(folder, "flat", "1\n")}}),
            path_of(folder, "flat") +
                ":1: the line has 1 column, and the first line has 2; valid: the same number of "
                "columns in each line");
  EXPECT_EQ(run_flow_on("kmeans", {}, {put_file(folder, "empty", "\n")}).error,
            path_of(folder, "empty") + ": has no points; valid: lines of numbers");
  EXPECT_EQ(run_flow_on("kmeans", {{"", "header"}}, {put_file(folder, "head", "x y\n")}).error,
            path_of(folder, "head") + ": has no points; valid: lines of numbers");
  EXPECT_EQ(run_flow_on("kmeans", {{"k", "1"}}, {put_file(folder, "nan", "1\nnan\n")}).error,
            path_of(folder, "nan") +
                ":2: column 1: 'nan' is not a finite number; valid: numbers such as 17, -0.5 or "
                "1e6");
}

/// Counts by comparing each number with each pair of edges.
Lines sequential_histogram(const std::vector<double>& numbers, double from, double to, int bins) {
  Lines lines;
  for (int bin = 0; bin < bins; ++bin) {
    const double low = std::lerp(from, to, bin / static_cast<double>(bins));
    const double high = std::lerp(from, to, (bin + 1) / static_cast<double>(bins));
    int count = 0;
    for (const double x : numbers)
      count += (x >= low && (x < high || (bin + 1 == bins && x == high))) ? 1 : 0;
    lines.push_back(print_number(low) + "\t" + print_number(high) + "\t" + std::to_string(count));
  }
  return lines;
}

TEST(HistogramFlow, EqualsSequentialCode) {
  const Folder folder;
  Random random{8};
  std::vector<double> numbers;
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    numbers.push_back(random.below(10) == 0 ? 2.5 : random.normal());
    text += "x " + print_number(numbers.back()) + (i % 2 == 0 ? "\n" : "\r\n");
  }
  const std::string file = put_file(folder, "numbers", text);
  const auto [least, most] = std::ranges::minmax_element(numbers);
  const Lines all = sequential_histogram(numbers, *least, *most, 13);
  const Lines inside = sequential_histogram(numbers, -1, 2.5, 7);
  const auto below = std::ranges::count_if(numbers, [](double x) { return x < -1; });
  for_each_setup([&](const FlowSetup& setup) {
    EXPECT_EQ(run_flow_on("histogram", {{"column", "2"}, {"bins", "13"}}, {file}, setup).lines,
              all);
    const FlowOutcome ran =
        run_flow_on("histogram", {{"column", "2"}, {"bins", "7"}, {"low", "-1"}, {"high", "2.5"}},
                    {file}, setup);
    EXPECT_EQ(ran.lines, inside);
    EXPECT_EQ(ran.figures.at("below"), static_cast<double>(below));
    EXPECT_EQ(ran.figures.at("above"), static_cast<double>(std::ranges::count_if(
                                           numbers, [](double x) { return x > 2.5; })));
  });
}

TEST(HistogramFlow, HandMadeNumbers) {
  const Folder folder;
  const auto count = [&](const std::string& text, const Options& options = {}) {
    return run_flow_on("histogram", options, {put_file(folder, "n", text)});
  };
  EXPECT_EQ(count("").lines, Lines{});
  EXPECT_EQ(count("\n \n").lines, Lines{});
  EXPECT_EQ(count("7\n7").lines, Lines{"7\t7\t2"});
  EXPECT_EQ(count("0\n1\n2", {{"bins", "2"}}).lines, (Lines{"0\t1\t1", "1\t2\t2"}));
  EXPECT_EQ(count("", {{"bins", "2"}, {"low", "0"}, {"high", "2"}}).lines,
            (Lines{"0\t1\t0", "1\t2\t0"}));
  EXPECT_EQ(count("-1.7e308\n1.7e308", {{"bins", "2"}}).lines,
            (Lines{"-1.7e+308\t0\t1", "0\t1.7e+308\t1"}));
  EXPECT_EQ(count("1", {{"bins", "0"}}).error,
            "histogram: bins=0 must be a whole number >= 1 and <= 100000");
  EXPECT_EQ(count("1", {{"low", "nan"}}).error, "histogram: low=nan must be a finite number");
  EXPECT_EQ(count("1", {{"low", "2"}, {"high", "2"}}).error,
            "histogram: low=2 is not below high=2; valid: a smaller low");
  EXPECT_EQ(count("1\ninf\n").error,
            path_of(folder, "n") +
                ":2: column 1: 'inf' is not a finite number; valid: numbers such as 17, -0.5 or "
                "1e6");
}

}  // namespace
}  // namespace starling::program
