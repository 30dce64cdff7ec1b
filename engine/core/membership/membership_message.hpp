/// The messages of SWIM that the Membership objects of a cluster's nodes send each other. Plain
/// values; thread-safe to read. Membership validates a message when it receives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "starling/engine/core/ids.hpp"

namespace starling::core {

/// In order of precedence: within one incarnation, a later enumerator replaces an earlier one.
enum class NodeState : std::uint8_t { alive, suspect, dead, left };
constexpr NodeState last_of(NodeState) { return NodeState::left; }

/// A suspect counts as live until it is declared dead.
[[nodiscard]] constexpr bool is_live(NodeState state) noexcept {
  return state == NodeState::alive || state == NodeState::suspect;
}

/// One node as the cluster knows it.
struct NodeRecord {
  NodeId id = 0;
  /// The address at which other nodes reach it. It never changes.
  std::string address;
  /// A unique name that people choose: if two live nodes have the same name, one of them has to
  /// leave. May be empty.
  std::string name;
  /// How many workers it offers to run.
  std::uint32_t workers = 0;
  /// Raised only by the node itself: when it refutes a suspicion or report of its death, and when
  /// its name or number of workers changes.
  std::uint64_t incarnation = 0;
  NodeState state = NodeState::alive;

  static constexpr auto fields(auto& m) {
    return std::tie(m.id, m.address, m.name, m.workers, m.incarnation, m.state);
  }

  bool operator==(const NodeRecord&) const = default;
};

/// News about a node: its record, as another node reports it.
struct NodeUpdate {
  NodeRecord record;
  /// The node that reports the state in `record`. Suspicions that different nodes report confirm
  /// one another.
  NodeId reported_by = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.record, m.reported_by); }

  bool operator==(const NodeUpdate&) const = default;
};

/// Asks the node `to` for a PingAck. Any other receiver ignores it, because a new process may have
/// the address of an old one.
struct Ping {
  NodeId to;
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.to, m.sequence); }
};
/// Answers a Ping, or a PingRequest after its target has answered the helper (the receiver of the
/// PingRequest). `sequence` is copied from the Ping or the PingRequest.
struct PingAck {
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.sequence); }
};
/// Asks the receiver, the helper, to ping `target` for the sender.
struct PingRequest {
  NodeId target;
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.target, m.sequence); }
};
/// Answers a PingRequest whose target has not answered the helper: the sender can still reach the
/// helper.
struct PingNack {
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.sequence); }
};
/// Has no content: the message carries only MembershipMessage::updates.
struct Gossip {};
/// Checksums of the live nodes that the sender knows, itself included. Nodes are divided into
/// buckets by a hash of their ids; each bucket has one sum, and the number of buckets is a power of
/// two. The receiver sends back its records of the buckets whose sums differ. Unless the digest is
/// an `answer`, it also sends its own digest as an `answer`.
struct Digest {
  std::vector<std::uint64_t> buckets;
  bool answer = false;
  static constexpr auto fields(auto& m) { return std::tie(m.buckets, m.answer); }
};
/// Records of nodes that the sender knows, in answer to a Digest.
struct Records {
  std::vector<NodeRecord> records;
  static constexpr auto fields(auto& m) { return std::tie(m.records); }
};

/// Two nodes have the same name: the node `to` must leave, and `holder` stays. Any other receiver
/// ignores the message.
struct NameTaken {
  NodeId to;
  NodeRecord holder;
  static constexpr auto fields(auto& m) { return std::tie(m.to, m.holder); }
};

struct MembershipMessage {
  using Body =
      std::variant<Ping, PingAck, PingRequest, PingNack, Gossip, Digest, Records, NameTaken>;

  /// The sender's own record; its state is alive or left.
  NodeRecord from;
  Body body;
  /// News about other nodes, which travels with every kind of body.
  std::vector<NodeUpdate> updates = {};

  static constexpr auto fields(auto& m) { return std::tie(m.from, m.body, m.updates); }
};

/// A node's counts since its start.
struct MembershipCounts {
  std::uint64_t probes = 0;
  std::uint64_t probes_failed = 0;
  /// Suspicions that the node itself began, and deaths that it declared itself.
  std::uint64_t suspicions = 0;
  std::uint64_t deaths = 0;
  /// How often it had to refute a report about itself.
  std::uint64_t refutations = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.probes, m.probes_failed, m.suspicions, m.deaths, m.refutations);
  }
};

}  // namespace starling::core
