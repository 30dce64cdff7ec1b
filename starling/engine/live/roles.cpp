#include "starling/engine/live/roles.hpp"

#include <algorithm>

#include "starling/base/check.hpp"

namespace starling::live {

using core::Member;
using core::WorkerId;

std::vector<Member> founders(core::Mode mode, std::size_t workers, std::size_t shards,
                             std::span<const std::uint64_t> nodes) {
  STARLING_CHECK(workers > 0 && shards > 0 && !nodes.empty());
  std::vector<Member> all;
  const bool peers = !core::has_servers(mode);
  const auto add = [&](bool works, bool owns, std::size_t node) {
    all.push_back({static_cast<WorkerId>(all.size()), 1, works, owns, nodes[node % nodes.size()]});
  };
  for (std::size_t i = 0; i < workers; ++i) add(true, peers && i < nodes.size(), i);
  if (peers) return all;
  const std::size_t servers =
      std::clamp(shards, std::min<std::size_t>(2, nodes.size()), nodes.size());
  // From the last node on: the first has the coordinator.
  for (std::size_t i = 0; i < servers; ++i) add(false, true, nodes.size() - 1 - i);
  if (core::keeps_steps_centrally(mode)) add(false, false, 0);
  return all;
}

WorkerId coordinator_of(const std::vector<Member>& founders) { return founders.back().id; }

std::vector<Member> newcomers(core::Mode mode, const core::Configuration& now, std::uint64_t node,
                              core::Incarnation life) {
  const WorkerId next = now.members.empty() ? 0 : now.members.back().id + 1;
  if (!core::has_servers(mode)) return {{next, life, true, true, node}};
  return {{next, life, true, false, node}, {next + 1, life, false, true, node}};
}

}  // namespace starling::live
