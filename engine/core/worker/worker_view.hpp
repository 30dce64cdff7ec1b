/// A worker's view of the other members, as a configuration gives it. Pure values and functions;
/// any thread.
#pragma once

#include <memory>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/worker/sample_gate.hpp"

namespace starling::core {

struct WorkerView {
  /// The members that work.
  Members members;
  /// The primary and the view of each range.
  std::shared_ptr<const std::vector<OwnerId>> owner_of;
  std::shared_ptr<const std::vector<Epoch>> view_of;
  /// Workers that are not members any more, or only in a new incarnation; ascending.
  std::vector<MemberId> changed = {};
};

/// Return the members that work, and the members that own ranges in `now`.
[[nodiscard]] std::vector<MemberId> workers_of(const std::vector<Member>& members);
[[nodiscard]] std::vector<MemberId> owners_of(const Configuration& now);

/// Returns a worker's view of `now`, with the changes since `former`. Requires: no range is lost.
[[nodiscard]] WorkerView view_of_worker(const Configuration& now, const Configuration* former);

}  // namespace starling::core
