/// Draws workers to ask, uniformly among the workers of all live members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/membership/membership_message.hpp"

namespace starling::core {

/// A worker of the cluster: a member, and the number of one of the workers that it offers, from 0.
struct WorkerAt {
  NodeId member = 0;
  std::uint32_t index = 0;
  auto operator<=>(const WorkerAt&) const = default;
};

/// Keeps the workers of all live members in one list, and draws from it by a partial Fisher-Yates
/// shuffle: a draw takes O(its size), whatever the number of workers; a member that comes or goes
/// takes O(its workers). Suspects stay in until they are declared dead. One call at a time; not
/// thread-safe.
class PeerSampler {
 public:
  /// Draws fall on at most this many workers; further offers are ignored.
  explicit PeerSampler(std::size_t workers_max = std::size_t{1} << 24U)
      : workers_max_(workers_max) {}

  /// Updates a member's workers by its `record`. Call it for every change, also of this node
  /// itself.
  void set(const NodeRecord& record);

  /// Fills `drawn` with `beta` different workers, `self` not among them, every subset equally
  /// likely; with all others where there are fewer.
  void draw(WorkerAt self, std::size_t beta, Random& random, std::vector<WorkerAt>& drawn);

  [[nodiscard]] std::size_t workers() const noexcept { return list_.size(); }

 private:
  void swap(std::size_t a, std::size_t b);

  std::size_t workers_max_;
  std::vector<WorkerAt> list_;
  /// Where the workers of a member stand in the list.
  std::unordered_map<NodeId, std::vector<std::uint32_t>> places_;
};

}  // namespace starling::core
