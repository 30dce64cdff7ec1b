/// The messages that Membership objects (SWIM) of the nodes of a cluster send each other. Plain
/// values; any thread. Received messages are untrusted: Membership validates them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "starling/engine/core/ids.hpp"

namespace starling::core {

/// In ascending order: within one incarnation, a later state replaces an earlier one.
enum class NodeState : std::uint8_t { alive, suspect, dead, left };
constexpr NodeState last_of(NodeState) { return NodeState::left; }

/// A suspect counts as live until it is declared dead.
[[nodiscard]] constexpr bool is_live(NodeState state) noexcept {
  return state == NodeState::alive || state == NodeState::suspect;
}

struct NodeRecord {
  NodeId id = 0;
  /// The address by which others reach it.
  std::string address;
  /// A unique name for people: if two live nodes have one name, one has to leave. May be empty.
  std::string name;
  /// How many workers it offers.
  std::uint32_t workers = 0;
  /// Raised only by the node itself: when it refutes a suspicion or report of its death, and when
  /// its address, name or number of workers changes.
  std::uint64_t incarnation = 0;
  NodeState state = NodeState::alive;

  static constexpr auto fields(auto& m) {
    return std::tie(m.id, m.address, m.name, m.workers, m.incarnation, m.state);
  }

  bool operator==(const NodeRecord&) const = default;
};

/// News of a node: its record, as another node reports it.
struct NodeUpdate {
  NodeRecord record;
  /// The node that reports it; suspicions of different nodes confirm one another.
  NodeId by = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.record, m.by); }

  bool operator==(const NodeUpdate&) const = default;
};

/// Asks the node `to` for a PingAck. Any other receiver ignores it, because a new process may have
/// the address of an old one.
struct Ping {
  NodeId to;
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.to, m.sequence); }
};
/// Answers a Ping, or a PingRequest whose target has answered the helper. `sequence` is the
/// request's.
struct PingAck {
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.sequence); }
};
/// Asks the receiver to ping `target` for the sender.
struct PingRequest {
  NodeId target;
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.target, m.sequence); }
};
/// Answers a PingRequest whose target has not answered: it shows that the helper is reachable.
struct PingNack {
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.sequence); }
};
/// Carries only updates.
struct Gossip {};
/// Checksums of the live nodes that the sender knows, itself included: the nodes are divided into
/// buckets, a power of two of them, and each bucket has one sum. The receiver answers with the
/// records of the buckets that differ, and with its own digest, which is an `answer` and is
/// answered with records alone.
struct Digest {
  std::vector<std::uint64_t> buckets;
  bool answer = false;
  static constexpr auto fields(auto& m) { return std::tie(m.buckets, m.answer); }
};
/// The records that the sender has of some nodes.
struct Records {
  std::vector<NodeRecord> records;
  static constexpr auto fields(auto& m) { return std::tie(m.records); }
};

/// Two nodes have one name: the node `to` must leave, and `holder` stays. Any other receiver
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
  /// News that is sent along with any body.
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
