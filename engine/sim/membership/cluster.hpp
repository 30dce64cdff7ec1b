/// Nodes that find each other over a simulated network: core::Membership in virtual time, with
/// faults at will. Not thread-safe. The same options, seed and calls give the same run.
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
  /// Options of all links. Their bandwidth counts the bytes of core::wire_size().
  LinkOptions link;
  /// Options of all nodes; the cluster sets their ids, addresses, names, workers and seed nodes.
  core::MembershipOptions membership = {};
  std::uint32_t workers_each = 1;
};

class Cluster {
 public:
  /// A change of a member, and the node that noticed it.
  struct Noticed {
    Time at;
    NodeId by;
    core::NodeRecord record;
  };

  Cluster(ClusterOptions options, std::uint64_t seed);

  /// Starts a process on a new node, which joins by asking `seeds`; the first node needs none.
  NodeId start(const std::vector<NodeId>& seeds = {});
  /// Starts `count` nodes, each with the first node as its seed node.
  void start_many(std::size_t count);
  /// Starts a process on a node whose last process has crashed: another member at the same address.
  void restart(NodeId node, const std::vector<NodeId>& seeds);
  /// Ends the process at once.
  void crash(NodeId node);
  void leave(NodeId node);
  void offer(NodeId node, std::uint32_t workers);
  /// Stops the process for `duration`; messages and timers for it wait until then.
  void freeze(NodeId node, Time duration);
  /// Makes the process run and stand still by turns from now on, for times drawn from `runs` and
  /// `stands`.
  void slow(NodeId node, Distribution runs, Distribution stands);
  [[nodiscard]] Network& network() noexcept { return network_; }

  /// Lets time pass.
  void run(Time duration);
  /// Lets time pass until `so` holds, which is checked every 10 ms, or for at most `limit`. Returns
  /// the time that it took; absent where `so` did not come to hold.
  std::optional<Time> run_until(const std::function<bool()>& so, Time limit);

  [[nodiscard]] Time now() const noexcept { return queue_.now(); }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] bool runs(NodeId node) const { return nodes_[node].process != nullptr; }
  /// Requires: runs(node).
  [[nodiscard]] const core::Membership& of(NodeId node) const { return *nodes_[node].process; }
  /// Returns the state that `by` knows of the process that runs or last ran on `of`; absent where
  /// it knows nothing.
  [[nodiscard]] std::optional<core::NodeState> state(NodeId by, NodeId of) const;
  [[nodiscard]] bool has_left(NodeId node) const { return nodes_[node].has_left; }

  /// True where each of `nodes` sees all of them alive, with the records that they hold of
  /// themselves, and no other node.
  [[nodiscard]] bool agree(const std::vector<NodeId>& nodes) const;
  /// True where all nodes that run and hold themselves alive agree.
  [[nodiscard]] bool agree() const;
  /// True where each of `by` knows each of `of` to be suspect or dead.
  [[nodiscard]] bool miss(const std::vector<NodeId>& by, const std::vector<NodeId>& of) const;

  /// All changes that were noticed, in order.
  [[nodiscard]] const std::vector<Noticed>& noticed() const noexcept { return noticed_; }
  /// Sums the counts of all processes that run.
  [[nodiscard]] core::MembershipCounts counts() const;
  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct Node {
    core::NodeId id = 0;
    std::unique_ptr<core::Membership> process;
    Time frozen_until{};
    Distribution runs;
    Distribution stands;
    bool slow = false;
    bool has_left = false;
  };
  enum class Kind { message, timer, stand };
  struct Event {
    Kind kind;
    NodeId node;
    /// The process that a timer or a slowness belongs to; 0 for any.
    core::NodeId of = 0;
    std::shared_ptr<const core::MembershipMessage> message = nullptr;
  };

  void begin(NodeId node, const std::vector<NodeId>& seeds);
  void happen(Event event);
  template <class Call>
  void act(NodeId node, Call call);
  void stand(NodeId node);

  ClusterOptions options_;
  Network network_;
  Random random_;
  Queue<Event> queue_;
  std::vector<Node> nodes_;
  std::vector<Noticed> noticed_;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace starling::sim
