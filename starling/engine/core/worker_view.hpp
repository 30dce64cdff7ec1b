/// What a worker knows of the others, as a configuration says it. Pure values and functions; any
/// thread.
#pragma once

#include <memory>
#include <vector>

#include "starling/engine/core/configuration.hpp"
#include "starling/engine/core/sample_gate.hpp"

namespace starling::core {

struct WorkerView {
  /// Those that work.
  Members members;
  /// By range, the primary.
  std::shared_ptr<const std::vector<OwnerId>> owner_of;
  std::shared_ptr<const std::vector<Epoch>> view_of;
  /// Workers that are no members any more, or in a new incarnation only; ascending.
  std::vector<MemberId> changed = {};
};

/// Those of some members that work, and those that own ranges in `now`.
[[nodiscard]] std::vector<MemberId> workers_of(const std::vector<Member>& members);
[[nodiscard]] std::vector<MemberId> owners_of(const Configuration& now);

/// Requires: no range is lost.
[[nodiscard]] WorkerView view_of_worker(const Configuration& now, const Configuration* former);

}  // namespace starling::core
