/// What the members of a cluster say to one another. Plain values; any thread. All that is heard is
/// untrusted: Membership checks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace starling::core {

/// One life of one node: drawn at random when its process starts, never 0. A process that restarts
/// is another member, and the old one is dead.
using MemberId = std::uint64_t;

/// In the order in which the later wins over the earlier of one incarnation.
enum class MemberState : std::uint8_t { alive, suspect, dead, left };

/// Suspects count as members until they are declared dead.
[[nodiscard]] constexpr bool is_live(MemberState state) noexcept {
  return state == MemberState::alive || state == MemberState::suspect;
}

struct MemberRecord {
  MemberId id = 0;
  /// How others reach it.
  std::string address;
  /// For people, and its own: of two live members with one name one has to go. May be empty.
  std::string name;
  /// How many workers it offers.
  std::uint32_t workers = 0;
  /// Raised by the member alone: when it refutes what others say of it, and when its facts change.
  std::uint64_t incarnation = 0;
  MemberState state = MemberState::alive;

  bool operator==(const MemberRecord&) const = default;
};

/// News of a member.
struct MemberUpdate {
  MemberRecord record;
  /// Who says so; suspicions of different members confirm one another.
  MemberId by = 0;

  bool operator==(const MemberUpdate&) const = default;
};

/// Are you there? Ignored by all but `to`: a new process may have the address of an old one.
struct Ping {
  MemberId to;
  std::uint64_t sequence;
};
/// The answer, to whoever asked: itself, or another one on its behalf.
struct PingAck {
  std::uint64_t sequence;
};
/// Ping `target` for me.
struct PingRequest {
  MemberId target;
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
  std::vector<MemberRecord> records;
};

/// Two members have one name: you must go, for this one stays. Ignored by all but `to`.
struct NameTaken {
  MemberId to;
  MemberRecord holder;
};

struct MembershipMessage {
  using Body =
      std::variant<Ping, PingAck, PingRequest, PingNack, Gossip, Digest, Records, NameTaken>;

  /// The sender as it is now: alive, or left.
  MemberRecord from;
  Body body;
  /// News that rides along.
  std::vector<MemberUpdate> updates = {};
};

// --- sizes on the wire, in bytes: fixed-width numbers, and two bytes before each string ----------

[[nodiscard]] inline std::size_t wire_bytes(const MemberRecord& record) {
  return 8 + 2 + record.address.size() + 2 + record.name.size() + 4 + 8 + 1;
}
[[nodiscard]] inline std::size_t wire_bytes(const MemberUpdate& update) {
  return wire_bytes(update.record) + 8;
}
[[nodiscard]] inline std::size_t wire_bytes(const MembershipMessage& message) {
  std::size_t bytes = wire_bytes(message.from) + 1 + 4;
  for (const MemberUpdate& update : message.updates) bytes += wire_bytes(update);
  if (const auto* digest = std::get_if<Digest>(&message.body))
    return bytes + 4 + 8 * digest->buckets.size() + 1;
  if (const auto* page = std::get_if<Records>(&message.body)) {
    for (const MemberRecord& record : page->records) bytes += wire_bytes(record);
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
