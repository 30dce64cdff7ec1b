/// A simulated cluster: its nodes run core::Membership over a simulated network in virtual time.
/// The caller starts, crashes and freezes nodes. Not thread-safe. The same options, seed and calls
/// give the same run.
///
/// A node has at most one process at a time, and keeps its number and address when its process is
/// restarted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/engine/core/membership/membership.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/queue.hpp"

namespace starling::sim {

struct ClusterOptions {
  /// The options of all links. A message has the size that core::wire_size() returns.
  LinkOptions link;
  /// The options of all nodes; the cluster sets their ids, addresses, names, workers and seed
  /// nodes.
  core::MembershipOptions membership = {};
  /// The number of workers that each node offers.
  std::uint32_t workers_each = 1;
};

class Cluster {
 public:
  /// A node record that has changed: the node `by` noticed it at `at`.
  struct NoticedChange {
    Time at;
    NodeId by;
    core::NodeRecord record;
  };

  Cluster(ClusterOptions options, std::uint64_t seed);

  /// Starts a process on a new node, which joins through the seed nodes `seeds`. The first node
  /// needs none.
  NodeId start(const std::vector<NodeId>& seeds = {});
  /// Starts `count` nodes, each with the first node as its seed node.
  void start_many(std::size_t count);
  /// Starts a new process, with a new id and the old address, on a node whose process has crashed.
  void restart(NodeId node, const std::vector<NodeId>& seeds);
  /// Ends the process at once.
  void crash(NodeId node);
  /// Makes the process leave the cluster: see has_left().
  void leave(NodeId node);
  /// Makes the process offer `workers` workers instead of `workers_each`.
  void offer(NodeId node, std::uint32_t workers);
  /// Freezes the process for `duration`; messages and timers for it wait until then.
  void freeze(NodeId node, Time duration);
  /// From now on the process alternates between running and being frozen, for times drawn from
  /// `running` and `frozen`.
  void slow(NodeId node, Distribution running, Distribution frozen);
  [[nodiscard]] Network& network() noexcept { return network_; }

  /// Simulates the next `duration` of virtual time.
  void run(Time duration);
  /// Simulates until `condition()` is true, which it checks every 10 ms of virtual time, or until
  /// `limit` has passed. Returns the time that has passed; nullopt if `condition()` was never true.
  std::optional<Time> run_until(const std::function<bool()>& condition, Time limit);

  [[nodiscard]] Time now() const noexcept { return queue_.now(); }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  /// Returns true if a process runs on the node.
  [[nodiscard]] bool runs(NodeId node) const { return nodes_[node].process != nullptr; }
  /// Requires: runs(node).
  [[nodiscard]] const core::Membership& process(NodeId node) const { return *nodes_[node].process; }
  /// Returns the state of the process that runs or last ran on `subject`, as `observer` knows it;
  /// nullopt if `observer` does not know the process. Requires: runs(observer).
  [[nodiscard]] std::optional<core::NodeState> state(NodeId observer, NodeId subject) const;
  /// Returns true if the process that runs or last ran on the node has left the cluster.
  [[nodiscard]] bool has_left(NodeId node) const { return nodes_[node].has_left; }

  /// Returns true if each of `nodes` knows exactly these nodes as live, each with the record that
  /// the node has of itself.
  [[nodiscard]] bool agree(const std::vector<NodeId>& nodes) const;
  /// Returns true if all nodes whose process runs and is not leaving agree.
  [[nodiscard]] bool agree() const;
  /// Returns true if each of `observers` knows each of `subjects` as suspect or dead.
  [[nodiscard]] bool all_suspect(const std::vector<NodeId>& observers,
                                 const std::vector<NodeId>& subjects) const;

  /// All changes that were noticed, in order.
  [[nodiscard]] const std::vector<NoticedChange>& noticed() const noexcept { return noticed_; }
  /// Returns the sum of the counts of all processes that run.
  [[nodiscard]] core::MembershipCounts counts() const;
  /// The number and the total size of the messages that all processes have sent.
  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct Node {
    core::NodeId id = 0;
    /// nullptr if no process runs.
    std::unique_ptr<core::Membership> process;
    Time frozen_until{};
    /// For a node that slow() made slow: how long it runs, and how long it is frozen, alternately.
    Distribution running;
    Distribution frozen;
    bool has_left = false;
  };
  enum class Kind { message, timer, freeze };
  struct Event {
    Kind kind;
    NodeId node;
    /// The process that a timer or a freeze belongs to. 0 for a message: it reaches any process of
    /// the node.
    core::NodeId process_id = 0;
    std::shared_ptr<const core::MembershipMessage> message = nullptr;
  };

  void start_process(NodeId node, const std::vector<NodeId>& seeds);
  void handle(Event event);
  /// Calls `call(process, context)`, and executes the effects.
  template <class Call>
  void run_event(NodeId node, Call call);
  /// Freezes a slow node, and schedules its next freeze.
  void freeze_by_turns(NodeId node);

  ClusterOptions options_;
  Network network_;
  Random random_;
  Queue<Event> queue_;
  std::vector<Node> nodes_;
  std::vector<NoticedChange> noticed_;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace starling::sim
