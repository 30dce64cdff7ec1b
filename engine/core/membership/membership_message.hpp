/// The messages by which the nodes of a cluster keep its membership. Plain values; any thread.
/// Received messages are untrusted: Membership validates them.
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

/// Suspects count as members until they are declared dead.
[[nodiscard]] constexpr bool is_live(NodeState state) noexcept {
  return state == NodeState::alive || state == NodeState::suspect;
}

struct NodeRecord {
  NodeId id = 0;
  /// How others reach it.
  std::string address;
  /// A unique name for people: of two live members with one name, one has to go. May be empty.
  std::string name;
  /// How many workers it offers.
  std::uint32_t workers = 0;
  /// Raised only by the member itself: when it refutes what others say of it, and when its facts
  /// change.
  std::uint64_t incarnation = 0;
  NodeState state = NodeState::alive;

  static constexpr auto fields(auto& m) {
    return std::tie(m.id, m.address, m.name, m.workers, m.incarnation, m.state);
  }

  bool operator==(const NodeRecord&) const = default;
};

/// News of a member.
struct NodeUpdate {
  NodeRecord record;
  /// The member that reports it; suspicions of different members confirm one another.
  NodeId by = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.record, m.by); }

  bool operator==(const NodeUpdate&) const = default;
};

/// Asks `to` for an answer. All others ignore it: a new process may have the address of an old one.
struct Ping {
  NodeId to;
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.to, m.sequence); }
};
/// The answer of the pinged member, to a Ping or, through a helper, to a PingRequest.
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
/// The answer to a PingRequest without an answer of the target: the sender at least is reachable.
struct PingNack {
  std::uint64_t sequence;
  static constexpr auto fields(auto& m) { return std::tie(m.sequence); }
};
/// Carries only updates.
struct Gossip {};
/// A checksum of all that the sender knows: one sum for each of a power of two of buckets of
/// members. The receiver answers with the records of the buckets that differ and with its own
/// digest, which is answered with records alone.
struct Digest {
  std::vector<std::uint64_t> buckets;
  bool answer = false;
  static constexpr auto fields(auto& m) { return std::tie(m.buckets, m.answer); }
};
/// The records that the sender has of some members.
struct Records {
  std::vector<NodeRecord> records;
  static constexpr auto fields(auto& m) { return std::tie(m.records); }
};

/// Two members have one name: `to` must go, for `holder` stays. All others ignore it.
struct NameTaken {
  NodeId to;
  NodeRecord holder;
  static constexpr auto fields(auto& m) { return std::tie(m.to, m.holder); }
};

struct MembershipMessage {
  using Body =
      std::variant<Ping, PingAck, PingRequest, PingNack, Gossip, Digest, Records, NameTaken>;

  /// The sender as it is now: alive, or left.
  NodeRecord from;
  Body body;
  /// News that rides along.
  std::vector<NodeUpdate> updates = {};

  static constexpr auto fields(auto& m) { return std::tie(m.from, m.body, m.updates); }
};

/// Counts a member's events so far.
struct MembershipCounts {
  std::uint64_t probes = 0;
  std::uint64_t probes_failed = 0;
  /// Suspicions of its own, and deaths that it declared itself.
  std::uint64_t suspicions = 0;
  std::uint64_t deaths = 0;
  /// Times that it had to refute what others reported of it.
  std::uint64_t refutations = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.probes, m.probes_failed, m.suspicions, m.deaths, m.refutations);
  }
};

}  // namespace starling::core
