/// The flow `pagerank`, compared with sequential code.
#include <algorithm>
#include <cmath>

#include "starling/engine/flow/values/hash.hpp"
#include "tests/tools/run/flow_runner.hpp"

namespace starling::program {
namespace {

using Ranks = std::map<std::string, double>;

/// Computes PageRank one iteration after the other.
Ranks sequential_ranks(const std::vector<std::pair<std::string, std::string>>& links,
                       double damping, int iterations) {
  std::map<std::string, std::vector<std::string>> targets;
  for (const auto& [from, to] : links) {
    targets[from].push_back(to);
    targets.try_emplace(to);
  }
  const double n = static_cast<double>(targets.size());
  Ranks ranks;
  for (const auto& [node, links_of_node] : targets) ranks[node] = 1 / n;
  for (int i = 0; i < iterations; ++i) {
    double dangling = 0;
    Ranks sums;
    for (const auto& [node, links_of_node] : targets) {
      if (links_of_node.empty()) dangling += ranks[node];
      for (const auto& target : links_of_node)
        sums[target] += ranks[node] / static_cast<double>(links_of_node.size());
    }
    for (auto& [node, rank] : ranks)
      rank = (1 - damping) / n + damping * (sums[node] + dangling / n);
  }
  return ranks;
}

TEST(PageRankFlow, EqualsSequentialCode) {
  const Folder folder;
  Random random{4};
  std::vector<std::pair<std::string, std::string>> links;
  std::string text = "# a comment\n\n";
  for (int i = 0; i < 3000; ++i) {
    links.emplace_back("n" + std::to_string(random.below(400)),
                       "узел" + std::to_string(skewed(random, 300)));
    if (i % 3 == 0) links.back().second = "n" + std::to_string(random.below(400));
    text += links.back().first + " \t" + links.back().second + "\r\n";
  }
  const std::string file = put_file(folder, "links", text);
  const Ranks expected = sequential_ranks(links, 0.85, 12);
  for_each_setup([&](const FlowSetup& setup) {
    const FlowOutcome ran = run_flow_on("pagerank", {{"iterations", "12"}}, {file}, setup);
    ASSERT_EQ(ran.error, "");
    ASSERT_EQ(ran.lines.size(), expected.size());
    double sum = 0;
    double last = 1;
    for (const std::string& line : ran.lines) {
      const auto tab = line.find('\t');
      const double rank = std::stod(line.substr(tab + 1));
      EXPECT_NEAR(rank, expected.at(line.substr(0, tab)), 1e-13) << line;
      EXPECT_LE(rank, last);
      last = rank;
      sum += rank;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(ran.figures.at("nodes"), static_cast<double>(expected.size()));
    EXPECT_EQ(ran.figures.at("iterations"), 12);
  });
}

TEST(PageRankFlow, HandMadeGraphs) {
  const Folder folder;
  const auto rank = [&](const std::string& text, const Options& options = {}) {
    return run_flow_on("pagerank", options, {put_file(folder, "links", text)});
  };
  EXPECT_EQ(rank("").lines, Lines{});
  EXPECT_EQ(rank("a b\nb a").lines, (Lines{"a\t0.5", "b\t0.5"}));
  EXPECT_EQ(rank("a b\nb a", {{"tolerance", "0.1"}}).figures.at("iterations"), 1);
  EXPECT_EQ(rank("a a").lines, Lines{"a\t1"});
  EXPECT_EQ(rank("a b\nc b", {{"damping", "0"}, {"top", "1"}}).lines.size(), 1U);
  EXPECT_EQ(rank("a b\nc\n").error,
            path_of(folder, "links") +
                ":2: column 2 is missing: the line has 1 column; valid: lines with that column");
  EXPECT_EQ(rank("a b", {{"damping", "1.5"}}).error,
            "pagerank: damping=1.5 must be a number from 0 to 1");
}

/// Makes two names with the same hash, from the way in which hash_bytes() adds words of 8 bytes.
std::pair<std::string, std::string> names_with_one_hash() {
  const std::string name = "starling-murmurs";
  const auto hash_of_word = [&](const std::string& word) {
    return mix(((name.size() + 1) * 0x9e3779b97f4a7c15U) ^ flow::first_bytes(word));
  };
  const std::uint64_t sum = hash_of_word(name.substr(0, 8)) ^ flow::first_bytes(name.substr(8));
  for (int i = 10'000'000;; ++i) {
    std::string other = std::to_string(i);
    const std::uint64_t word = sum ^ hash_of_word(other);
    other.append(reinterpret_cast<const char*>(&word), sizeof word);
    const auto is_in_name = [](char c) { return c > ' ' || c < 0; };
    if (std::ranges::all_of(other, is_in_name)) return {name, other};
  }
}

TEST(PageRankFlow, TellsApartNamesWithOneHash) {
  const auto [a, b] = names_with_one_hash();
  ASSERT_NE(a, b);
  ASSERT_EQ(flow::hash_bytes(a), flow::hash_bytes(b));
  const Folder folder;
  const std::string text = a + " x\n" + b + " x\nx " + a + "\nx y\n";
  const Ranks expected = sequential_ranks({{a, "x"}, {b, "x"}, {"x", a}, {"x", "y"}}, 0.85, 9);
  const FlowOutcome ran =
      run_flow_on("pagerank", {{"iterations", "9"}}, {put_file(folder, "links", text)});
  ASSERT_EQ(ran.lines.size(), 4U) << ran.error;
  for (const std::string& line : ran.lines) {
    const auto tab = line.find('\t');
    EXPECT_NEAR(std::stod(line.substr(tab + 1)), expected.at(line.substr(0, tab)), 1e-13) << line;
  }
}

}  // namespace
}  // namespace starling::program
