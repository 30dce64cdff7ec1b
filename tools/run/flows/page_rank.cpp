#include "starling/tools/run/flows/page_rank.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <tuple>

#include "starling/engine/flow/values/hash.hpp"
#include "starling/tools/run/flows/top.hpp"

namespace starling::program {
namespace {

using Name = std::string;
/// A number that stands for a node's name, so that iterations move no texts.
using Id = std::uint64_t;

/// The name of a node. In a hash collision, several names have one number: `name` is one of them,
/// and `has_collision` is true.
struct Label {
  Name name;
  bool has_collision = false;

  static constexpr auto fields(auto& m) { return std::tie(m.name, m.has_collision); }
};

struct NodeState {
  std::vector<Id> targets;
  double rank = 0;
  /// By how much the last iteration has changed the rank.
  double change = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.targets, m.rank, m.change); }
};
using Labels = flow::Set<std::pair<Id, Label>>;
using Graph = flow::Set<std::pair<Id, std::vector<Id>>>;
using Ranks = flow::Set<std::pair<Id, NodeState>>;

/// Returns the number of a name, a hash. Names that collide under one salt hardly ever collide
/// under another salt too.
Id id_of(const Name& name, std::uint64_t salt) {
  if (salt == 0) return flow::hash_bytes(name);
  return flow::hash_bytes(std::to_string(salt) + ' ' + name);
}

Label merge(const Label& a, const Label& b) {
  return {a.name, a.has_collision || b.has_collision || a.name != b.name};
}

/// The names of all nodes, and how many nodes there are.
struct Nodes {
  Labels labels;
  std::uint64_t count = 0;
  std::uint64_t salt = 0;
};

/// Finds a salt without hash collisions between the names of nodes.
template <class Links>
Result<Nodes> nodes_of(const Links& links) {
  for (std::uint64_t salt = 0;; ++salt) {
    const auto both_ends = [salt](const std::pair<Name, Name>& link) {
      return std::array{std::pair{id_of(link.first, salt), Label{link.first}},
                        std::pair{id_of(link.second, salt), Label{link.second}}};
    };
    const Labels labels = links.flat_map(both_ends).reduce_by_key(merge).cache();
    using Counts = std::pair<std::uint64_t, std::uint64_t>;
    const auto add = [](const Counts& counts, const std::pair<Id, Label>& node) {
      return Counts{counts.first + 1, counts.second + (node.second.has_collision ? 1 : 0)};
    };
    const auto sum = [](const Counts& a, const Counts& b) {
      return Counts{a.first + b.first, a.second + b.second};
    };
    const auto counts = labels.fold(Counts{}, add, sum);
    if (!counts) return counts.error();
    if (counts->second == 0) return Nodes{labels, counts->first, salt};
  }
}

/// Returns each node with the targets of its links. The cogroup with the labels adds the dangling
/// nodes, which have no links.
template <class Links>
Graph graph_of(const Links& links, const Nodes& nodes) {
  const auto by_id = links.map([salt = nodes.salt](const std::pair<Name, Name>& link) {
    return std::pair{id_of(link.first, salt), id_of(link.second, salt)};
  });
  return by_id.cogroup(nodes.labels).map([](const auto& node) {
    return std::pair{node.first, node.second.first};
  });
}

/// The sum of the ranks of dangling nodes, and the sum of the changes of all ranks.
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

/// Returns the set of the ranks after one more iteration. Nothing is computed before an action.
Ranks next_ranks(const Ranks& ranks, double damping, double nodes, double dangling) {
  const auto shares = ranks.flat_map([](const auto& node) {
    const NodeState& state = node.second;
    const double share = state.rank / static_cast<double>(state.targets.size());
    std::vector<std::pair<Id, double>> sent;
    sent.reserve(state.targets.size());
    for (const Id target : state.targets) sent.emplace_back(target, share);
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
      {"tolerance", "X",
       "end before --iterations, once the sum of all changes of ranks is below this [0: never]"},
      {"top", "N", "only the N highest ranks [all]"}};
  for (auto& option : ColumnFormat::flow_options()) all.push_back(std::move(option));
  return all;
}

PageRank PageRank::parse(SpecReader& options) {
  return {.damping = options.number("damping", 0.85, 0, 1),
          .iterations = options.count("iterations", 20, 1, 10'000),
          .tolerance = options.number("tolerance", 0, 0, 1),
          .top = options.count("top", 0, 1, top_max),
          .columns = ColumnFlags::parse(options)};
}

Result<flow::Set<std::string>> PageRank::run(FlowContext& context) const {
  const auto lines = context.text(columns.has_header);
  if (!lines) return lines.error();
  const auto table = columns.open(context.inputs(), context.engine().options().skip_unreadable);
  if (!table) return table.error();
  const auto links =
      lines->filter([](const std::string& line) { return !is_blank(line) && line[0] != '#'; })
          .map([separator = table->format.separator](const std::string& line) {
            const auto columns = split_columns(line, separator);
            return std::pair<Name, Name>{column_at(columns, 0), column_at(columns, 1)};
          });
  const auto found = nodes_of(links);
  if (!found) return found.error();
  const double nodes = static_cast<double>(found->count);
  Ranks ranks = graph_of(links, *found)
                    .map([nodes](const auto& node) {
                      return std::pair{node.first, NodeState{node.second, 1 / nodes, 0}};
                    })
                    .cache();
  std::uint64_t done_iterations = 0;
  auto sums = sums_of(ranks);
  if (!sums) return sums.error();
  auto last = ranks.iterate(
      static_cast<std::uint32_t>(iterations),
      [&](const Ranks& before, std::uint32_t) {
        return next_ranks(before, damping, nodes, sums->first);
      },
      [&](const Ranks& now) -> Result<bool> {
        ++done_iterations;
        sums = sums_of(now);
        if (!sums) return sums.error();
        return sums->second >= tolerance;
      });
  if (!last) return std::move(last).error();
  ranks = *std::move(last);
  context.add_figure("nodes", nodes);
  context.add_figure("iterations", static_cast<double>(done_iterations));
  context.add_figure("change", sums->second);
  const auto ranks_by_id = ranks.map([](const auto& node) {
    return std::pair{node.first, node.second.rank};
  });
  const auto named = found->labels.join(ranks_by_id).map([](const auto& node) {
    return std::pair{node.second.first.name, node.second.second};
  });
  const auto order = [](const auto& node) { return std::pair{-node.second, node.first}; };
  return top_lines(context.engine(), named, order, top);
}

}  // namespace starling::program
