/// The reports of the nodes of a cluster about one job, merged. All commands that ask nodes use it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "starling/actor/types.hpp"
#include "starling/actor/wire/control.hpp"

namespace starling::program {

struct MemberSnapshot {
  wire::MemberStatus status;
  /// The name of the member's node.
  std::string node;
};

/// The fields are for reading. Not thread-safe.
struct MergedJob {
  /// The latest configuration that any node has reported; null if none has.
  core::ConfigurationPtr configuration;
  /// The last status of each member: of the incarnation in `configuration` or of a later one.
  std::map<core::MemberId, MemberSnapshot> members;
  /// How many updates each worker has made, present or gone: the most that any node reports.
  std::map<core::MemberIncarnation, std::uint64_t> worker_updates;
  /// The latest configuration epoch that a node has reported since forget_reasons() was called,
  /// and the reasons that nodes in this epoch give: why the job is blocked now, and why it cannot
  /// go on at all. A reason is empty if no node in this epoch gives one.
  core::Epoch reported_epoch = 0;
  std::string blocked_reason;
  std::string give_up_reason;

  /// Forgets the reasons, before all nodes are asked again.
  void forget_reasons();
  /// Merges what the node called `node` reports. Ignores a configuration that is not valid. Makes
  /// texts printable, because another process wrote them.
  void receive(const wire::JobStatus& report, const std::string& node);

  /// True if the configuration has this incarnation of the member, or if no configuration is known.
  [[nodiscard]] bool is_member(const wire::MemberStatus& member) const;
  /// Returns why a member has failed; empty if no member of the configuration has.
  [[nodiscard]] std::string member_failure() const;
  /// Returns the members that are workers of the configuration, as they have reported.
  [[nodiscard]] std::vector<const wire::MemberStatus*> workers() const;
  /// Returns how many updates all workers have made, present or gone, as far as the nodes that have
  /// answered know.
  [[nodiscard]] std::uint64_t updates_made() const;

 private:
  void receive_reasons(const wire::JobStatus& report);
};

/// True if the member is in the state.
[[nodiscard]] bool is_in(const wire::MemberStatus& member, actor::MemberReport::State state);

}  // namespace starling::program
