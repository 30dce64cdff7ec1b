#include "starling/engine/exchange/collective/operation.hpp"

#include <algorithm>
#include <string>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"

namespace starling::collective {
namespace {

/// A chunk of an operation, and the chunk of the all-reduce whose route it takes.
struct Routed {
  Chunk chunk;
  ChunkId route;
};

/// Returns the chunks of the all-reduce that carry a member's part.
std::vector<ChunkId> routes_of(const Schedule& all_reduce, Rank member) {
  const std::size_t chunks = all_reduce.chunks.size();
  const std::size_t n = all_reduce.members;
  std::vector<ChunkId> routes;
  if (chunks % n != 0) return {static_cast<ChunkId>(member % chunks)};
  for (std::size_t c = member; c < chunks; c += n) routes.push_back(static_cast<ChunkId>(c));
  return routes;
}

/// Returns the chunks of an operation in which each member has a part of its own.
std::vector<Routed> parts(const Schedule& all_reduce, Operation operation, Rank root) {
  const auto n = static_cast<Rank>(all_reduce.members);
  std::vector<Routed> routed;
  const auto add = [&](std::optional<Rank> from, std::optional<Rank> to, Rank member,
                       double share) {
    const auto routes = routes_of(all_reduce, member);
    for (const ChunkId route : routes)
      routed.push_back({{share / static_cast<double>(routes.size()), from, to}, route});
  };
  const double part = 1.0 / n;
  for (Rank i = 0; i < n; ++i) {
    if (operation == Operation::gather) add(i, root, i, part);
    if (operation == Operation::scatter) add(root, i, i, part);
    if (operation == Operation::reduce_scatter) add(std::nullopt, i, i, part);
    if (operation == Operation::all_gather) add(i, std::nullopt, i, part);
    if (operation == Operation::all_to_all)
      for (Rank j = 0; j < n; ++j) add(i, j, j, part / n);
  }
  return routed;
}

std::vector<Routed> chunks_of(const Schedule& all_reduce, Operation operation, Rank root) {
  std::vector<Routed> routed = parts(all_reduce, operation, root);
  if (!routed.empty()) return routed;
  for (ChunkId c = 0; c < all_reduce.chunks.size(); ++c) {
    Chunk chunk{.share = all_reduce.chunks[c].share};
    if (operation == Operation::broadcast) chunk.source = root;
    if (operation == Operation::reduce) chunk.destination = root;
    routed.push_back({chunk, c});
  }
  return routed;
}

/// Drops the moves that carry nothing, or that carry the result to a member that has it, and turns
/// an addition to nothing into a copy.
void drop_empty(std::vector<ScheduledMove>& route, const Chunk& chunk, std::size_t members) {
  std::vector<std::size_t> held(members, chunk.source ? 0 : 1);  // the number of contributions
  if (chunk.source) held[*chunk.source] = 1;
  const std::size_t all = chunk.source ? 1 : members;
  std::vector<ScheduledMove> kept;
  for (auto begin = route.begin(); begin != route.end();) {
    const std::size_t round = begin->round;
    const auto end = std::find_if(begin, route.end(), [&](auto& s) { return s.round != round; });
    const std::vector<std::size_t> before = held;
    for (auto scheduled = begin; scheduled != end; ++scheduled) {
      Move move = scheduled->move;
      const std::size_t carried = before[move.from];
      if (carried == 0 || held[move.to] == all) continue;
      if (held[move.to] == 0) move.action = ReceiveAction::copy;
      held[move.to] = move.action == ReceiveAction::add ? held[move.to] + carried : carried;
      kept.push_back({round, move});
    }
    begin = end;
  }
  route = std::move(kept);
}

/// Drops the moves that write values which neither a later move nor the destination reads.
void drop_needless(std::vector<ScheduledMove>& route, const Chunk& chunk, std::size_t members) {
  if (!chunk.destination) return;
  std::vector<bool> is_needed(members, false);
  is_needed[*chunk.destination] = true;
  std::vector<ScheduledMove> kept;
  for (auto end = route.rbegin(); end != route.rend();) {
    const auto begin = end;
    const std::vector<bool> is_needed_after = is_needed;
    for (; end != route.rend() && end->round == begin->round; ++end) {
      if (!is_needed_after[end->move.to]) continue;
      if (end->move.action == ReceiveAction::copy) is_needed[end->move.to] = false;
      kept.push_back(*end);
    }
    for (auto scheduled = begin; scheduled != end; ++scheduled)
      if (is_needed_after[scheduled->move.to]) is_needed[scheduled->move.from] = true;
  }
  route.assign(kept.rbegin(), kept.rend());
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all{Operation::all_reduce, Operation::reduce,
                                          Operation::broadcast,  Operation::gather,
                                          Operation::scatter,    Operation::reduce_scatter,
                                          Operation::all_gather, Operation::all_to_all};
  return all;
}

std::string_view name(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return "all-reduce";
    case Operation::reduce:
      return "reduce";
    case Operation::broadcast:
      return "broadcast";
    case Operation::gather:
      return "gather";
    case Operation::scatter:
      return "scatter";
    case Operation::reduce_scatter:
      return "reduce-scatter";
    case Operation::all_gather:
      return "all-gather";
    case Operation::all_to_all:
      return "all-to-all";
  }
  return {};
}

Result<Operation> parse_operation(std::string_view text) {
  std::vector<std::string> names;
  for (const Operation operation : operations()) {
    if (name(operation) == text) return operation;
    names.emplace_back(name(operation));
  }
  return Error{"unknown operation " + quote(text) + "; " + suggest(text, names)};
}

bool has_root(Operation operation) {
  return operation == Operation::reduce || operation == Operation::broadcast ||
         operation == Operation::gather || operation == Operation::scatter;
}

Schedule specialised(const Schedule& all_reduce, Operation operation, Rank root) {
  STARLING_CHECK(root < all_reduce.members);
  if (operation == Operation::all_reduce) return all_reduce;
  const auto routes = moves_by_chunk(all_reduce);
  Schedule result{all_reduce.members, all_reduce.ports, {}, {}};
  result.rounds.resize(all_reduce.rounds.size());
  for (const auto& [chunk, route_id] : chunks_of(all_reduce, operation, root)) {
    std::vector<ScheduledMove> route = routes[route_id];
    drop_empty(route, chunk, result.members);
    drop_needless(route, chunk, result.members);
    for (ScheduledMove& scheduled : route) {
      scheduled.move.chunk = static_cast<ChunkId>(result.chunks.size());
      result.rounds[scheduled.round].push_back(scheduled.move);
    }
    result.chunks.push_back(chunk);
  }
  std::erase_if(result.rounds, [](const Round& round) { return round.empty(); });
  return result;
}

}  // namespace starling::collective
