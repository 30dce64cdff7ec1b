/// Nodes that find each other over a simulated network: core::Membership in virtual time, with
/// faults at will. One at a time; not thread-safe. The same options, seed and calls give the same
/// run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/engine/core/membership.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/queue.hpp"

namespace starling::sim {

struct ClusterOptions {
  /// Of all links. A link's bandwidth sees the sizes of core::wire_bytes().
  LinkOptions link;
  /// The options of all nodes; their ids and seed nodes are set here.
  core::MembershipOptions membership = {};
  std::uint32_t workers_each = 1;
};

class Cluster {
 public:
  /// What a node has noticed.
  struct Noticed {
    Time at;
    NodeId by;
    core::NodeRecord record;
  };

  Cluster(ClusterOptions options, std::uint64_t seed);

  /// Starts a process on a new node. It joins by asking `seeds`; the first needs none.
  NodeId start(const std::vector<NodeId>& seeds = {});
  /// Starts `count`, each with the first node as its seed node.
  void start_many(std::size_t count);
  /// Starts a process on a node whose last one has crashed: another member at the same address.
  void restart(NodeId node, const std::vector<NodeId>& seeds);
  /// Ends the process at once.
  void crash(NodeId node);
  void leave(NodeId node);
  void offer(NodeId node, std::uint32_t workers);
  /// The process does nothing for so long. What comes and what is due waits for it.
  void freeze(NodeId node, Time duration);
  /// From now on the process runs and stands still by turns, for such times.
  void slow(NodeId node, Distribution runs, Distribution stands);
  [[nodiscard]] Network& network() noexcept { return network_; }

  /// Lets time pass.
  void run(Time duration);
  /// Lets time pass until `so` or for at most `limit`; the time that it took, absent where it did
  /// not come about. Looks each 10 ms.
  std::optional<Time> run_until(const std::function<bool()>& so, Time limit);

  [[nodiscard]] Time now() const noexcept { return queue_.now(); }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] bool runs(NodeId node) const { return nodes_[node].process != nullptr; }
  /// Requires: runs(node).
  [[nodiscard]] const core::Membership& of(NodeId node) const { return *nodes_[node].process; }
  /// What `by` knows of the process that runs or last ran on `of`; absent where it knows nothing.
  [[nodiscard]] std::optional<core::NodeState> state(NodeId by, NodeId of) const;
  [[nodiscard]] bool has_left(NodeId node) const { return nodes_[node].has_left; }

  /// Every one of `nodes` sees all of them alive with what they say of themselves, and no other.
  [[nodiscard]] bool agree(const std::vector<NodeId>& nodes) const;
  /// The same of all that run.
  [[nodiscard]] bool agree() const;
  /// Every one of `by` knows every one of `of` to be suspect or dead.
  [[nodiscard]] bool miss(const std::vector<NodeId>& by, const std::vector<NodeId>& of) const;

  /// All that was noticed, in order.
  [[nodiscard]] const std::vector<Noticed>& noticed() const noexcept { return noticed_; }
  /// Of all processes that run.
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
    /// The process that a timer or a slowness is of.
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
