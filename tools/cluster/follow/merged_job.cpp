#include "starling/tools/cluster/follow/merged_job.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/actor/cluster/local_job.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/member/message_validator.hpp"

namespace starling::program {

bool is_in(const wire::MemberStatus& member, actor::MemberReport::State state) {
  return member.state == static_cast<std::uint8_t>(state);
}

void MergedJob::forget_reasons() {
  reported_epoch = 0;
  blocked_reason.clear();
  give_up_reason.clear();
}

void MergedJob::receive(const wire::JobStatus& report, const std::string& node) {
  const core::MemberId members_max = actor::LocalJobOptions::members_max;
  if (report.configuration && core::is_valid(report.configuration, members_max) &&
      (!configuration || report.configuration->epoch > configuration->epoch))
    configuration = report.configuration;
  receive_reasons(report);
  const auto note_updates = [&](const core::MemberIncarnation& worker, std::uint64_t updates) {
    worker_updates[worker] = std::max(worker_updates[worker], updates);
  };
  for (const auto& other : report.counts.other_workers) note_updates(other.worker, other.updates);
  for (wire::MemberStatus member : report.local_members) {
    note_updates({member.member, member.incarnation}, member.updates);
    member.why = printable(member.why);
    if (!std::isfinite(member.deal.data_epoch.value_or(0))) member.deal.data_epoch.reset();
    // The latest incarnation counts; an earlier one may not know yet that it has ended.
    const auto known = members.find(member.member);
    if (known == members.end() || known->second.status.incarnation <= member.incarnation ||
        (configuration && configuration->contains(member.member, member.incarnation)))
      members[member.member] = {std::move(member), node};
  }
}

/// Keeps only the reasons of the latest configuration epoch: nodes in an older one may wait, or
/// give up, while the others go on.
void MergedJob::receive_reasons(const wire::JobStatus& report) {
  const core::Epoch epoch = report.configuration ? report.configuration->epoch : 0;
  if (epoch < reported_epoch) return;
  if (epoch > reported_epoch || blocked_reason.empty())
    blocked_reason = printable(report.blocked_reason);
  if (epoch > reported_epoch || give_up_reason.empty())
    give_up_reason = printable(report.give_up_reason);
  reported_epoch = epoch;
}

bool MergedJob::is_member(const wire::MemberStatus& member) const {
  return !configuration || configuration->contains(member.member, member.incarnation);
}

std::string MergedJob::member_failure() const {
  for (const auto& [id, member] : members)
    if (is_in(member.status, actor::MemberReport::State::failed) && is_member(member.status))
      return member.status.why.empty() ? "a member has failed" : member.status.why;
  return {};
}

std::vector<const wire::MemberStatus*> MergedJob::workers() const {
  std::vector<const wire::MemberStatus*> workers;
  for (const auto& [id, member] : members) {
    const core::Member* known = configuration ? configuration->find(id) : nullptr;
    if (known != nullptr && known->works && known->incarnation == member.status.incarnation)
      workers.push_back(&member.status);
  }
  return workers;
}

std::uint64_t MergedJob::updates_made() const {
  std::uint64_t sum = 0;
  for (const auto& [worker, updates] : worker_updates) sum += updates;
  return sum;
}

}  // namespace starling::program
