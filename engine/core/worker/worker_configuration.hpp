/// The part of a configuration that a worker uses. Plain values and pure functions; thread-safe to
/// read and call.
#pragma once

#include <memory>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/worker/sample_gate.hpp"

namespace starling::core {

struct WorkerConfiguration {
  WorkerIds workers;
  /// The former workers that are not workers any more, or only in a new incarnation; ascending.
  std::vector<MemberId> changed = {};
};

/// Returns the ids of those of `members` that are workers.
[[nodiscard]] std::vector<MemberId> workers_of(const std::vector<Member>& members);
/// Returns the ids of the members that own a range in `now`, ascending.
[[nodiscard]] std::vector<MemberId> owners_of(const Configuration& now);

/// Returns the part of `now` that a worker uses, with the changes since `former`, if there is a
/// former configuration.
[[nodiscard]] WorkerConfiguration worker_configuration(const Configuration& now,
                                                       const Configuration* former);

}  // namespace starling::core
