#include "starling/actor/cluster/member_placement.hpp"

#include <algorithm>

#include "starling/base/check.hpp"

namespace starling::actor {

using core::Member;
using core::MemberId;

namespace {

/// A new incarnation exceeds the last one of its id by at most this much, because an incarnation is
/// at most UINT32_MAX. The difference is drawn at random: two members that join at the same time
/// may choose the same id, and then need different incarnations.
constexpr core::Incarnation incarnation_step_max = core::Incarnation{1} << 20U;

}  // namespace

std::vector<Member> initial_members(core::Mode mode, std::size_t workers, std::size_t owners,
                                    std::span<const std::uint64_t> nodes) {
  STARLING_CHECK(workers > 0 && owners > 0 && !nodes.empty());
  std::vector<Member> all;
  const bool is_peer_mode = !core::has_servers(mode);
  const auto add = [&](bool works, bool owns, std::size_t node) {
    all.push_back({static_cast<MemberId>(all.size()), 1, works, owns, nodes[node % nodes.size()]});
  };
  for (std::size_t i = 0; i < workers; ++i) add(true, is_peer_mode && i < nodes.size(), i);
  // Servers are placed from the last node backwards, because other members are on the first nodes:
  // the coordinator on the first one, workers on the first `workers` nodes, and in peer mode the
  // peers among them.
  const std::size_t owning_peers = is_peer_mode ? std::min(workers, nodes.size()) : 0;
  const std::size_t servers =
      std::min(owners, nodes.size()) - std::min({owners, nodes.size(), owning_peers});
  for (std::size_t i = 0; i < servers; ++i) add(false, true, nodes.size() - 1 - i);
  // The nodes between those of the workers and those of the servers have no member yet. Each gets a
  // member that neither works nor owns.
  for (std::size_t i = workers; i + servers < nodes.size(); ++i) add(false, false, i);
  if (core::keeps_steps_centrally(mode)) add(false, false, 0);
  return all;
}

std::vector<Member> members_of_joining_node(core::Mode mode, std::uint64_t node,
                                            std::size_t workers) {
  STARLING_CHECK(workers > 0);
  std::vector<Member> all(workers, Member{0, 0, true, false, node});
  if (core::has_servers(mode))
    all.push_back({0, 0, false, true, node});
  else
    all.front().owns = true;
  return all;
}

std::vector<Member> assign_member_ids(std::vector<Member> members,
                                      const core::Configuration& configuration,
                                      std::span<const MemberId> taken, MemberId members_max,
                                      Random& random) {
  std::vector<core::MemberIncarnation> never_used;
  std::vector<core::MemberIncarnation> departed;
  for (MemberId id = 0; id < members_max; ++id) {
    if (configuration.find(id) != nullptr || core::is_among(taken, id)) continue;
    const auto former = std::ranges::find(configuration.departed, id, &core::MemberIncarnation::id);
    if (former == configuration.departed.end())
      never_used.push_back({id, 0});
    else if (former->incarnation < UINT32_MAX)
      departed.push_back(*former);
  }
  std::vector<Member> all;
  for (Member& member : members) {
    auto& free = never_used.empty() ? departed : never_used;
    if (free.empty()) break;
    std::swap(free[random.below(free.size())], free.back());
    const core::MemberIncarnation last = free.back();
    free.pop_back();
    member.id = last.id;
    member.incarnation = last.incarnation + 1 +
                         static_cast<core::Incarnation>(random.below(
                             std::min(UINT32_MAX - last.incarnation, incarnation_step_max)));
    all.push_back(member);
  }
  return all;
}

}  // namespace starling::actor
