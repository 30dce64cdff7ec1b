#include "starling/engine/exchange/allreduce/optimizer_shards.hpp"

#include <algorithm>
#include <map>

namespace starling::core {
namespace {

using collective::Rank;
using collective::ReceiveAction;

}  // namespace

/// The i-th worker of a node has its backup at the i-th worker of the next node that has workers;
/// the first node follows the last one, and a node with fewer workers begins again with its first.
/// So the state survives the death of a node. If a node has as many workers as the node before it,
/// each of them is the backup of exactly one worker. Workers that share no node, and those of a job
/// on a single node, have their backups at the next worker.
OptimizerShards::OptimizerShards(const Configuration& configuration) {
  std::map<NodeId, std::vector<Rank>> workers_of_node;
  std::vector<const Member*> workers;
  for (const Member& member : configuration.members)
    if (member.works) workers.push_back(&member);
  for (Rank rank = 0; rank < workers.size(); ++rank)
    workers_of_node[workers[rank]->node].push_back(rank);
  const auto count = static_cast<Rank>(workers.size());
  for (Rank rank = 0; rank < count; ++rank) {
    const NodeId node = workers[rank]->node;
    auto next = workers_of_node.upper_bound(node);
    if (next == workers_of_node.end()) next = workers_of_node.begin();
    if (node == 0 || next->first == node) {
      backups_.push_back((rank + 1) % count);
      continue;
    }
    const auto& own = workers_of_node.at(node);
    const auto place = static_cast<std::size_t>(std::ranges::find(own, rank) - own.begin());
    backups_.push_back(next->second[place % next->second.size()]);
  }
}

std::optional<MemberId> primary_of(const Configuration& configuration, RangeId range) {
  std::vector<MemberId> workers;
  for (const Member& member : configuration.members)
    if (member.works) workers.push_back(member.id);
  if (workers.empty()) return std::nullopt;
  return workers[range % workers.size()];
}

collective::Schedule sharded_schedule(std::span<const Rank> backups) {
  const auto n = static_cast<Rank>(backups.size());
  collective::Schedule schedule{
      .members = n, .ports = 1, .chunks = collective::equal_chunks(n), .rounds = {}};
  if (n == 1) return schedule;
  schedule.rounds.resize(3);
  for (collective::ChunkId chunk = 0; chunk < n; ++chunk) {
    const Rank backup = backups[chunk];
    // The order differs from chunk to chunk, so that not all workers send to the same one first.
    for (Rank k = 1; k < n; ++k) {
      schedule.rounds[gradients_round].push_back(
          {(chunk + k) % n, chunk, chunk, ReceiveAction::add});
      schedule.rounds[values_round].push_back(
          {backup, (backup + k) % n, chunk, ReceiveAction::copy});
    }
    schedule.rounds[sum_round].push_back({chunk, backup, chunk, ReceiveAction::copy});
  }
  return schedule;
}

}  // namespace starling::core
