/// Collects from the nodes of a job what their workers have done, and when.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "starling/actor/cluster/cluster_client.hpp"
#include "starling/tools/cluster/follow/node_traces.hpp"

namespace starling::program {

/// Blocking; not thread-safe. Nodes keep the latest intervals of their workers
/// (actor::TraceBuffer); this object fetches them while the job runs, so a node that dies loses
/// only those since the last request. A request is for at most actor::TraceBuffer::read_max
/// intervals of one node. Once the traces are full, no node is asked any more.
class TraceCollector {
 public:
  using Addresses = std::map<wire::NodeId, std::string>;

  /// Requires: `client` outlives the object.
  TraceCollector(actor::ClusterClient& client, wire::JobId job) : client_(client), job_(job) {}

  /// Asks the nodes for new intervals, unless they were asked less than `interval_min` ago. Nodes
  /// that do not answer delay this by at most a second.
  void collect(const Addresses& nodes);
  /// Asks the nodes until they have no more intervals, for at most about 6 s. If workers still run,
  /// nodes may have new intervals as soon as this function returns.
  void collect_rest(const Addresses& nodes);

  /// Forgets the intervals that were collected. Later requests ask for the following ones.
  void discard() { traces_.discard(); }

  [[nodiscard]] const NodeTraces& traces() const noexcept { return traces_; }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds interval_min{200};
  static constexpr std::chrono::milliseconds reply_timeout{1'000};
  /// How long a request waits for other nodes once one has answered.
  static constexpr std::chrono::milliseconds grace{250};
  static constexpr std::chrono::seconds rest_timeout{5};

  /// Asks the nodes once. Returns true if a node may have more.
  bool fetch_once(const Addresses& nodes);

  actor::ClusterClient& client_;
  wire::JobId job_;
  Clock::time_point asked_at_{};
  NodeTraces traces_;
};

}  // namespace starling::program
