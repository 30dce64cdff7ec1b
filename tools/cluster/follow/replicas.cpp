#include "starling/tools/cluster/follow/replicas.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "starling/actor/job/job.hpp"
#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// Returns the text of a setting; nullopt if it is not set.
std::optional<std::string> find_setting(const wire::JobSettings& settings, std::string_view key) {
  const auto setting =
      std::ranges::find(settings, key, &std::pair<std::string, std::string>::first);
  if (setting == settings.end()) return std::nullopt;
  return setting->second;
}

/// Returns the last status of a member; null if its node has not answered, or has reported another
/// incarnation of the member.
const wire::MemberStatus* status_of(const JobSnapshot& job, core::MemberId id) {
  const core::Member* member = job.configuration->find(id);
  const auto reported = job.members.find(id);
  const bool is_current = member != nullptr && reported != job.members.end() &&
                          reported->second.status.incarnation == member->incarnation;
  return is_current ? &reported->second.status : nullptr;
}

}  // namespace

std::size_t replicas_wanted(const wire::JobSettings& settings) {
  if (const auto text = find_setting(settings, "copies"))
    if (const auto count = parse_count(*text)) return *count;
  return actor::JobOptions{}.replication_factor;
}

std::string exchange_of(const wire::JobSettings& settings) {
  const auto text = find_setting(settings, "exchange");
  return text && core::check_exchange(*text) ? *text : actor::JobOptions{}.exchange;
}

std::size_t fewest_live_owners(const JobSnapshot& job, const std::vector<core::NodeRecord>& nodes) {
  if (!job.configuration || job.configuration->ranges.empty()) return 0;
  std::set<core::NodeId> live;
  for (const core::NodeRecord& node : nodes)
    if (core::is_live(node.state)) live.insert(node.id);
  const auto count_live_owners = [&](const core::Ownership& range) {
    return std::ranges::count_if(range.owners, [&](const core::RangeOwner& owner) {
      const core::Member* member = job.configuration->find(owner.id);
      return member != nullptr && live.contains(member->node);
    });
  };
  const auto& ranges = job.configuration->ranges;
  return static_cast<std::size_t>(
      std::ranges::min(ranges | std::views::transform(count_live_owners)));
}

std::size_t replicas_in_transfer(const JobSnapshot& job) {
  if (!job.configuration) return 0;
  std::map<core::MemberId, std::size_t> owned_ranges;
  for (const core::Ownership& range : job.configuration->ranges)
    for (const core::RangeOwner& owner : range.owners) ++owned_ranges[owner.id];
  std::size_t incomplete = 0;
  for (const auto& [id, count] : owned_ranges) {
    const auto* const status = status_of(job, id);
    if (status == nullptr) continue;
    incomplete += count - std::min<std::size_t>(count, status->ranges_held);
  }
  return incomplete;
}

std::size_t range_count(const JobSnapshot& job) {
  const bool has_owners = job.configuration && !job.configuration->ranges.empty();
  return has_owners ? job.configuration->ranges.size() : job.ranges;
}

std::size_t whole_copies(const JobSnapshot& job) {
  const std::size_t ranges = range_count(job);
  return static_cast<std::size_t>(std::ranges::count_if(job.workers(), [&](const auto* worker) {
    return ranges > 0 && worker->ranges_held == ranges;
  }));
}

std::optional<bool> have_equal_copies(const std::vector<core::CopyHash>& copies) {
  // 0: the worker's node knows no hash of its copy.
  const auto is_comparable = [&](const core::CopyHash& copy) {
    return copy.hash != 0 && copy.round == copies.front().round;
  };
  if (copies.empty() || !std::ranges::all_of(copies, is_comparable)) return std::nullopt;
  return std::ranges::count(copies, copies.front()) == std::ssize(copies);
}

std::string ReplicaMonitor::describe_change(const core::Configuration& latest, std::size_t wanted) {
  if (latest.ranges.empty()) return {};  // the exchange has no owners
  const std::size_t fewest = latest.fewest_replicas();
  const std::size_t missing = wanted - std::min(fewest, wanted);
  if (missing == std::exchange(missing_, missing)) return {};
  if (missing == 0)
    return "every range of the model is on " + print_count(wanted, "node") +
           " again, once the new copies are complete";
  std::set<std::uint64_t> nodes;
  for (const core::Member& member : latest.members) nodes.insert(member.node);
  return "ranges of the model have only " + std::to_string(fewest) + " of the " +
         std::to_string(wanted) + " wanted copies; the job has " +
         print_count(nodes.size(), "node");
}

}  // namespace starling::program
