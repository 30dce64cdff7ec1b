#include "starling/tools/run/flows/page_rank.hpp"

#include <array>
#include <cmath>
#include <tuple>

#include "starling/tools/run/flows/top.hpp"

namespace starling::program {
namespace {

using Name = std::string;
/// A link from a node to another.
using Link = std::pair<Name, Name>;
/// The targets of a node's links.
using Targets = std::vector<Name>;

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
  const auto nodes =
      links.flat_map([](const Link& link) {
             return std::array{link.first, link.second};
           })
          .distinct()
          .map([](const Name& node) {
            return std::pair{node, true};
          });
  return nodes.left_join(links.group_by_key()).map([](const auto& joined) {
    const auto& targets = joined.second.second;
    return std::pair{joined.first, targets ? *targets : Targets{}};
  });
}

Result<double> sum_of(const Ranks& ranks, double (*value)(const NodeState&)) {
  const auto add = [value](double sum, const auto& node) { return sum + value(node.second); };
  return ranks.fold(0.0, add, std::plus<>{});
}

/// Describes one iteration.
Ranks next_ranks(const Graph& graph, const Ranks& ranks, double damping, double nodes,
                 double dangling) {
  const auto shares = ranks.flat_map([](const auto& node) {
    const NodeState& state = node.second;
    // The node itself gets a share of 0, so that each node is in the sums.
    std::vector<std::pair<Name, double>> sent{{node.first, 0.0}};
    for (const Name& target : state.targets)
      sent.push_back({target, state.rank / static_cast<double>(state.targets.size())});
    return sent;
  });
  const auto old_ranks = ranks.map([](const auto& node) {
    return std::pair{node.first, node.second.rank};
  });
  return graph.join(shares.reduce_by_key(std::plus<>{}).join(old_ranks))
      .map([=](const auto& joined) {
        const auto& [targets, sums] = joined.second;
        const auto& [received, old_rank] = sums;
        const double rank = (1 - damping) / nodes + damping * (received + dangling / nodes);
        return std::pair{joined.first, NodeState{targets, rank, std::abs(rank - old_rank)}};
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
  double change = 0;
  while (done_iterations < iterations) {
    const auto dangling = sum_of(
        ranks, [](const NodeState& state) { return state.targets.empty() ? state.rank : 0; });
    if (!dangling) return dangling.error();
    auto next = ranks.iterate(1, [&](const Ranks& before, std::uint32_t) {
      return next_ranks(graph, before, damping, nodes, *dangling);
    });
    if (!next) return std::move(next).error();
    ranks = *std::move(next);
    ++done_iterations;
    const auto changed = sum_of(ranks, [](const NodeState& state) { return state.change; });
    if (!changed) return changed.error();
    change = *changed;
    if (change < tolerance) break;
  }
  context.add_figure("nodes", nodes);
  context.add_figure("iterations", static_cast<double>(done_iterations));
  context.add_figure("change", change);
  const auto named = ranks.map([](const auto& node) {
    return std::pair{node.first, node.second.rank};
  });
  const auto order = [](const auto& node) { return std::pair{-node.second, node.first}; };
  return top_lines(context.engine(), named, order, top);
}

}  // namespace starling::program
