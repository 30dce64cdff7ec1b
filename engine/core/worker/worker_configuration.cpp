#include "starling/engine/core/worker/worker_configuration.hpp"

#include <algorithm>

namespace starling::core {

std::vector<MemberId> workers_of(const std::vector<Member>& members) {
  std::vector<MemberId> workers;
  for (const Member& member : members)
    if (member.works) workers.push_back(member.id);
  return workers;
}

std::vector<MemberId> owners_of(const Configuration& now) {
  std::vector<MemberId> owners;
  for (const Ownership& range : now.ranges)
    for (const RangeOwner& owner : range.owners) owners.push_back(owner.id);
  std::ranges::sort(owners);
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  return owners;
}

WorkerConfiguration worker_configuration(const Configuration& now, const Configuration* former) {
  WorkerConfiguration result{
      std::make_shared<const std::vector<MemberId>>(workers_of(now.members))};
  if (former != nullptr) result.changed = workers_of(former->members_not_in(now));
  return result;
}

}  // namespace starling::core
