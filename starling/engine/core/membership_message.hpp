/// The messages by which the nodes of a cluster keep its membership. Plain values; any thread. All
/// that is heard is untrusted: Membership checks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "starling/engine/core/ids.hpp"

namespace starling::core {

/// In the order in which the later wins over the earlier of one incarnation.
enum class NodeState : std::uint8_t { alive, suspect, dead, left };

/// Suspects count as members until they are declared dead.
[[nodiscard]] constexpr bool is_live(NodeState state) noexcept {
  return state == NodeState::alive || state == NodeState::suspect;
}

struct NodeRecord {
  NodeId id = 0;
  /// How others reach it.
  std::string address;
  /// For people, and its own: of two live members with one name one has to go. May be empty.
  std::string name;
  /// How many workers it offers.
  std::uint32_t workers = 0;
  /// Raised by the member alone: when it refutes what others say of it, and when its facts change.
  std::uint64_t incarnation = 0;
  NodeState state = NodeState::alive;

  bool operator==(const NodeRecord&) const = default;
};

/// News of a member.
struct NodeUpdate {
  NodeRecord record;
  /// Who says so; suspicions of different members confirm one another.
  NodeId by = 0;

  bool operator==(const NodeUpdate&) const = default;
};

/// Are you there? Ignored by all but `to`: a new process may have the address of an old one.
struct Ping {
  NodeId to;
  std::uint64_t sequence;
};
/// The answer, to whoever asked: itself, or another one on its behalf.
struct PingAck {
  std::uint64_t sequence;
};
/// Ping `target` for me.
struct PingRequest {
  NodeId target;
  std::uint64_t sequence;
};
/// I was asked to, and have no answer yet: so at least I hear you.
struct PingNack {
  std::uint64_t sequence;
};
/// Nothing but the updates.
struct Gossip {};
/// All that the sender knows, in short: the members in as many buckets, a power of two. Answered by
/// a digest with as many, and by the records of the buckets that differ; the answer by records.
struct Digest {
  std::vector<std::uint64_t> buckets;
  bool answer = false;
};
/// What the sender knows of some members.
struct Records {
  std::vector<NodeRecord> records;
};

/// Two members have one name: you must go, for this one stays. Ignored by all but `to`.
struct NameTaken {
  NodeId to;
  NodeRecord holder;
};

struct MembershipMessage {
  using Body =
      std::variant<Ping, PingAck, PingRequest, PingNack, Gossip, Digest, Records, NameTaken>;

  /// The sender as it is now: alive, or left.
  NodeRecord from;
  Body body;
  /// News that rides along.
  std::vector<NodeUpdate> updates = {};
};

// --- sizes on the wire, in bytes: fixed-width numbers, and two bytes before each string ----------

[[nodiscard]] inline std::size_t wire_bytes(const NodeRecord& record) {
  return 8 + 2 + record.address.size() + 2 + record.name.size() + 4 + 8 + 1;
}
[[nodiscard]] inline std::size_t wire_bytes(const NodeUpdate& update) {
  return wire_bytes(update.record) + 8;
}
[[nodiscard]] inline std::size_t wire_bytes(const MembershipMessage& message) {
  std::size_t bytes = wire_bytes(message.from) + 1 + 4;
  for (const NodeUpdate& update : message.updates) bytes += wire_bytes(update);
  if (const auto* digest = std::get_if<Digest>(&message.body))
    return bytes + 4 + 8 * digest->buckets.size() + 1;
  if (const auto* page = std::get_if<Records>(&message.body)) {
    for (const NodeRecord& record : page->records) bytes += wire_bytes(record);
    return bytes + 4;
  }
  if (const auto* taken = std::get_if<NameTaken>(&message.body))
    return bytes + 8 + wire_bytes(taken->holder);
  return std::holds_alternative<Gossip>(message.body) ? bytes : bytes + 16;
}

/// What a member has seen so far.
struct MembershipCounts {
  std::uint64_t probes = 0;
  std::uint64_t probes_failed = 0;
  /// Suspicions of its own, and deaths that it declared itself.
  std::uint64_t suspicions = 0;
  std::uint64_t deaths = 0;
  /// Times that it had to say that it is alive.
  std::uint64_t refutations = 0;
};

}  // namespace starling::core
