#include "starling/tools/run/flows/page_rank.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "starling/tools/run/flows/top.hpp"

namespace starling::program {
namespace {

using Name = std::string;
/// A link from a node to another.
using Link = std::pair<Name, Name>;
/// The targets of a node's links, each with an LF behind it. One text is copied faster than many.
using Targets = std::string;

struct NodeState {
  Targets targets;
  double rank = 0;
  /// By how much the last iteration has changed the rank.
  double change = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.targets, m.rank, m.change); }
};
using Graph = flow::Set<std::pair<Name, Targets>>;
using Ranks = flow::Set<std::pair<Name, NodeState>>;

/// Returns each node with its links.
Graph graph_of(const flow::Set<Link>& links) {
  const auto targets = links.map([](const Link& link) {
                              return std::pair{link.second, true};
                            })
                           .reduce_by_key(std::logical_or<>{});
  return links.cogroup(targets).map([](const auto& node) {
    Targets all;
    for (const Name& target : node.second.first) all += target + '\n';
    return std::pair{node.first, all};
  });
}

/// The sums over all nodes of the ranks without links, and of the changes of ranks.
using Sums = std::pair<double, double>;

Result<Sums> sums_of(const Ranks& ranks) {
  const auto add = [](const Sums& sums, const auto& node) {
    const NodeState& state = node.second;
    return Sums{sums.first + (state.targets.empty() ? state.rank : 0), sums.second + state.change};
  };
  return ranks.fold(Sums{}, add, [](const Sums& a, const Sums& b) {
    return Sums{a.first + b.first, a.second + b.second};
  });
}

/// Describes one iteration.
Ranks next_ranks(const Ranks& ranks, double damping, double nodes, double dangling) {
  const auto shares = ranks.flat_map([](const auto& node) {
    const NodeState& state = node.second;
    const auto links = static_cast<std::size_t>(std::ranges::count(state.targets, '\n'));
    std::vector<std::pair<Name, double>> sent;
    sent.reserve(links);
    for (std::size_t begin = 0; begin < state.targets.size();) {
      const std::size_t end = state.targets.find('\n', begin);
      sent.emplace_back(state.targets.substr(begin, end - begin),
                        state.rank / static_cast<double>(links));
      begin = end + 1;
    }
    return sent;
  });
  return ranks.left_join(shares.reduce_by_key(std::plus<>{})).map([=](const auto& joined) {
    const auto& [old, received] = joined.second;
    const double rank = (1 - damping) / nodes + damping * (received.value_or(0) + dangling / nodes);
    return std::pair{joined.first, NodeState{old.targets, rank, std::abs(rank - old.rank)}};
  });
}

}  // namespace

std::vector<FlowOption> PageRank::flow_options() {
  std::vector<FlowOption> all{
      {"damping", "D", "the probability of following a link, from 0 to 1 [0.85]"},
      {"iterations", "N", "the most iterations [20]"},
      {"tolerance", "X", "end once the sum of all changes of ranks is below this [0: never]"},
      {"top", "N", "only the N highest ranks [all]"}};
  for (auto& option : ColumnFormat::flow_options()) all.push_back(std::move(option));
  return all;
}

PageRank PageRank::parse(SpecReader& options) {
  return {.damping = options.number("damping", 0.85, 0, 1),
          .iterations = options.count("iterations", 20, 1, 10'000),
          .tolerance = options.number("tolerance", 0, 0, 1),
          .top = options.count("top", 0, 1, top_max),
          .format = ColumnFlags::parse(options)};
}

Result<flow::Set<std::string>> PageRank::run(FlowContext& context) const {
  const auto lines = context.text(format.has_header);
  if (!lines) return lines.error();
  const auto separator = format.format_of(context.inputs().front()).separator;
  const flow::Set<Link> links =
      lines->filter([](const std::string& line) { return !is_blank(line) && line[0] != '#'; })
          .map([separator](const std::string& line) {
            const auto columns = split_columns(line, separator);
            return Link{column_at(columns, 0), column_at(columns, 1)};
          });
  const Graph graph = graph_of(links).cache();
  const auto count = graph.count();
  if (!count) return count.error();
  const double nodes = static_cast<double>(*count);
  Ranks ranks = graph.map([nodes](const auto& node) {
    return std::pair{node.first, NodeState{node.second, 1 / nodes, 0}};
  });
  std::uint64_t done_iterations = 0;
  auto sums = sums_of(ranks);
  if (!sums) return sums.error();
  while (done_iterations < iterations) {
    auto next = ranks.iterate(1, [&](const Ranks& before, std::uint32_t) {
      return next_ranks(before, damping, nodes, sums->first);
    });
    if (!next) return std::move(next).error();
    ranks = *std::move(next);
    ++done_iterations;
    sums = sums_of(ranks);
    if (!sums) return sums.error();
    if (sums->second < tolerance) break;
  }
  context.add_figure("nodes", nodes);
  context.add_figure("iterations", static_cast<double>(done_iterations));
  context.add_figure("change", sums->second);
  const auto named = ranks.map([](const auto& node) {
    return std::pair{node.first, node.second.rank};
  });
  const auto order = [](const auto& node) { return std::pair{-node.second, node.first}; };
  return top_lines(context.engine(), named, order, top);
}

}  // namespace starling::program
