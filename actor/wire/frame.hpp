/// The frames that travel between nodes. A frame has a head and, if it has tensors, a body with
/// their elements.
///
///     head   magic "St", version, kind, then the fields of the message (archive.hpp)
///     body   the elements of its tensors, one after the other, as they lie in memory
///
/// For any received bytes, decoding returns a message or an Error, and never crashes. It allocates
/// at most a small multiple of the size of the bytes, plus `unpacked_bytes_max` (archive.hpp). The
/// receiver of the message validates its meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "starling/actor/wire/archive.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/member/peer_message.hpp"

namespace starling::wire {

using core::NodeId;
using core::TrafficClass;

/// A node refuses frames of another version, and logs that it has received them.
inline constexpr std::uint8_t version = 33;

/// The kind of content that a frame holds.
enum class Kind : std::uint8_t {
  /// A packet of a job's members.
  envelope = 1,
  /// A control message of a node or a client (control.hpp).
  control = 2,
  /// Certificates and revocations (security/credentials.hpp).
  credentials = 3,
  /// A message by which transports prepare one-sided writes (fabric_links.hpp).
  fabric = 4,
};

/// Identifies a job in the whole cluster; drawn at random.
using JobId = std::uint64_t;

/// Names a payload on its way from one member to another. A packet that sends the payload again has
/// the same PacketId.
struct PacketId {
  JobId job = 0;
  core::MemberId from = 0;
  core::MemberId to = 0;
  core::Incarnation from_incarnation = 0;
  std::optional<core::Incarnation> to_incarnation = std::nullopt;
  TrafficClass traffic_class = TrafficClass::control;
  std::uint64_t sequence = 0;
  bool operator==(const PacketId&) const = default;
};

/// A frame to be sent. The body's parts are shared, not copied.
struct Frame {
  Bytes head;
  std::vector<Attachment> body;
  /// True if a frame with the same `packet` was sent before. If that frame still waits to be sent,
  /// the transport drops this one.
  bool is_retry = false;
  /// Absent if the frame is not a packet of a job's members.
  std::optional<PacketId> packet = std::nullopt;

  [[nodiscard]] std::size_t body_size() const noexcept;
};

/// A received frame. Valid only during the call that it is passed to.
struct FrameView {
  std::span<const std::byte> head;
  std::span<const std::byte> body;
  /// True if the receiver may handle the frame in the calling thread, because the frame is small or
  /// no further message waits.
  bool may_handle_inline = false;
  /// Keeps the body alive after the call. If it is null, the receiver must copy what it needs.
  std::shared_ptr<const void> body_owner = nullptr;
};

/// Draws a new JobId or NodeId from the system's random generator; never 0.
[[nodiscard]] std::uint64_t draw_id();

/// A packet of a job's members, as it travels between nodes.
struct JobEnvelope {
  JobId job = 0;
  /// The node on which the sender runs.
  NodeId node = 0;
  core::Envelope envelope;
};

[[nodiscard]] Frame encode(JobId job, NodeId node, const core::Envelope& envelope);
[[nodiscard]] Result<JobEnvelope> decode_envelope(const FrameView& frame);

/// Returns the kind of content of a frame. Returns an Error if the bytes are not a frame of this
/// version.
[[nodiscard]] Result<Kind> kind_of(const FrameView& frame);

}  // namespace starling::wire
