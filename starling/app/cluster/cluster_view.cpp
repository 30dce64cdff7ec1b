#include "starling/app/cluster/cluster_view.hpp"

#include <algorithm>

namespace starling::app {
namespace {

using namespace std::chrono_literals;

void add(ClusterView& view, const wire::NodeStatus& status) {
  view.counts[status.self.id] = status.counts;
  for (const wire::JobStatus& told : status.jobs) {
    JobView& job = view.jobs[told.job];
    job.settings = told.settings;
    if (told.configuration &&
        (!job.configuration || told.configuration->epoch > job.configuration->epoch))
      job.configuration = told.configuration;
    for (const wire::MemberStatus& member : told.here) {
      const auto known = job.members.find(member.member);
      // Of two lives the later; the former may not know yet that it is over.
      if (known == job.members.end() || known->second.status.life < member.life)
        job.members[member.member] = {member, status.self.name};
    }
  }
}

}  // namespace

std::uint64_t JobView::updates() const {
  std::uint64_t sum = 0;
  for (const auto& [id, member] : members)
    sum += std::min<std::uint64_t>(member.status.step, member.status.losses);
  return sum;
}

std::vector<core::Step> JobView::steps() const {
  std::vector<core::Step> steps;
  for (const auto& [id, member] : members) {
    const core::Member* known = configuration ? configuration->find(id) : nullptr;
    if (known != nullptr && known->works && known->life == member.status.life)
      steps.push_back(member.status.step);
  }
  std::ranges::sort(steps);
  return steps;
}

Result<ClusterView> look_at(Access& access, bool here) {
  auto door = access.greet();
  if (!door) return std::move(door).error();
  ClusterView view;
  view.when = std::chrono::steady_clock::now();
  view.nodes.push_back(door->self);
  view.nodes.insert(view.nodes.end(), door->others.begin(), door->others.end());
  add(view, *door);
  for (const core::MemberRecord& other : door->others) {
    if (here || !core::is_live(other.state)) continue;
    const auto status =
        access.client->ask_for<wire::NodeStatus>(other.address, wire::AskStatus{}, 1s);
    if (status) add(view, *status);
  }
  return view;
}

}  // namespace starling::app
