#include "starling/engine/core/council/configuration.hpp"

#include <algorithm>
#include <iterator>

#include "starling/base/check.hpp"

namespace starling::core {

std::string name_of(const Member& member) {
  const std::string id = std::to_string(member.id);
  if (member.works) return "worker " + id;
  return member.owns ? "server (member " + id + ")" : "member " + id;
}

const RangeOwner* Ownership::find(MemberId id) const {
  const auto at = std::ranges::find(owners, id, &RangeOwner::id);
  return at == owners.end() ? nullptr : &*at;
}

const Member* Configuration::find(MemberId id) const {
  if (id < members.size() && members[id].id == id) return &members[id];  // no id was skipped
  const auto at = std::ranges::lower_bound(members, id, {}, &Member::id);
  return at == members.end() || at->id != id ? nullptr : &*at;
}

bool Configuration::contains(MemberId id, Incarnation incarnation) const {
  const Member* member = find(id);
  return member != nullptr && member->incarnation == incarnation;
}

bool Configuration::is_or_was_member(MemberId id, Incarnation incarnation) const {
  if (const Member* member = find(id)) return member->incarnation >= incarnation;
  const auto at = std::ranges::lower_bound(departed, id, {}, &MemberIncarnation::id);
  return at != departed.end() && at->id == id && at->incarnation >= incarnation;
}

bool Configuration::in_council(MemberId id) const {
  return std::ranges::binary_search(council, id);
}

std::vector<Member> Configuration::members_not_in(const Configuration& other) const {
  std::vector<Member> missing;
  std::ranges::copy_if(members, std::back_inserter(missing), [&](const Member& member) {
    return !other.contains(member.id, member.incarnation);
  });
  return missing;
}

bool Configuration::has_same_coordinator_as(const Configuration& former) const {
  const Member* member = coordinator ? find(*coordinator) : nullptr;
  return former.coordinator == coordinator &&
         (member == nullptr || former.contains(member->id, member->incarnation));
}

bool Configuration::has_lost_range() const {
  return std::ranges::any_of(ranges, [](const Ownership& range) { return range.owners.empty(); });
}

std::size_t Configuration::fewest_replicas() const {
  if (ranges.empty()) return 0;
  return std::ranges::min(ranges, {}, [](const Ownership& range) { return range.owners.size(); })
      .owners.size();
}

bool is_quorum(std::span<const MemberId> council, std::span<const MemberId> voters) {
  const auto votes = static_cast<std::size_t>(
      std::ranges::count_if(council, [&](MemberId id) { return is_among(voters, id); }));
  if (2 * votes != council.size()) return 2 * votes > council.size();
  return !council.empty() && is_among(voters, council.front());
}

Configuration one_process_configuration(Mode mode, std::size_t workers, std::size_t owners,
                                        std::span<const OwnerId> owner_of) {
  Configuration only;
  only.epoch = 1;
  const auto add = [&](bool works, bool owns) {
    only.members.push_back({static_cast<MemberId>(only.members.size()), 0, works, owns});
  };
  for (std::size_t i = 0; i < workers; ++i) add(true, !has_servers(mode));
  if (has_servers(mode))
    for (std::size_t i = 0; i < owners; ++i) add(false, true);
  if (keeps_steps_centrally(mode)) {
    only.coordinator = static_cast<MemberId>(only.members.size());
    add(false, false);
  }
  const auto first_owner = static_cast<MemberId>(has_servers(mode) ? workers : 0);
  for (const OwnerId owner : owner_of) only.ranges.push_back({1, {{first_owner + owner, 1}}});
  return only;
}

}  // namespace starling::core
