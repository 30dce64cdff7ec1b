/// What travels between nodes: a head and, where there are tensors, their bytes behind it.
///
///     head   magic "St", version, kind, then the fields of the message (archive.hpp)
///     body   the elements of its tensors, one after the other, as they lie in memory
///
/// Whatever bytes come, decoding ends with a message or an Error, allocates at most a small
/// multiple of them, and never crashes; what it means is for whoever takes the message to judge.
#pragma once

#include <cstdint>
#include <span>

#include "starling/actor/wire/archive.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/peer_message.hpp"

namespace starling::wire {

using core::NodeId;
using core::TrafficClass;

/// Nodes of another version are not heard; a node that is sent their frames says so in its log.
inline constexpr std::uint8_t version = 8;

/// What a frame holds.
enum class Kind : std::uint8_t {
  /// A packet of a job's members.
  envelope = 1,
  /// What nodes say to one another (control.hpp).
  control = 2,
  /// Certificates and revocations (security/credentials.hpp).
  credentials = 3,
};

/// Names a job in all of a cluster; drawn at random.
using JobId = std::uint64_t;

/// A frame to be sent. The body's parts are shared, not copied.
struct Frame {
  Bytes head;
  std::vector<Attachment> body;
  /// Its body was sent before: not needed where that waits still.
  bool again = false;

  [[nodiscard]] std::size_t body_size() const noexcept;
};

/// A frame as it came. Valid during the call that brings it.
struct FrameView {
  std::span<const std::byte> head;
  std::span<const std::byte> body;
  /// Small, or no message waits behind its own: worth doing what it asks on the spot.
  bool at_once = false;
  /// Keeps the body alive for longer; null where nothing does, and what is wanted must be copied.
  std::shared_ptr<const void> body_owner = nullptr;
};

/// A new JobId or NodeId, from the machine's own randomness; never 0.
[[nodiscard]] std::uint64_t draw_id();

struct JobEnvelope {
  JobId job = 0;
  /// Where the sender runs.
  NodeId node = 0;
  core::Envelope envelope;
};

[[nodiscard]] Frame encode(JobId job, NodeId node, const core::Envelope& envelope);
[[nodiscard]] Result<JobEnvelope> decode_envelope(const FrameView& frame);

/// The kind of a frame of this version; an Error says what else it is.
[[nodiscard]] Result<Kind> kind_of(const FrameView& frame);

}  // namespace starling::wire
