/// Frames travel between nodes. A frame is a head and, if it has tensors, a body with their bytes.
///
///     head   magic "St", version, kind, then the fields of the message (archive.hpp)
///     body   the elements of its tensors, one after the other, as they lie in memory
///
/// Whatever bytes come, decoding returns a message or an Error, allocates at most a small multiple
/// of them, and never crashes. The receiver of the message validates its meaning.
#pragma once

#include <cstdint>
#include <span>

#include "starling/actor/wire/archive.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/member/peer_message.hpp"

namespace starling::wire {

using core::NodeId;
using core::TrafficClass;

/// Frames of another version are refused, and the node that receives them logs it.
inline constexpr std::uint8_t version = 8;

/// The kind of content that a frame holds.
enum class Kind : std::uint8_t {
  /// A packet of a job's members.
  envelope = 1,
  /// A control message of a node or a client (control.hpp).
  control = 2,
  /// Certificates and revocations (security/credentials.hpp).
  credentials = 3,
};

/// Identifies a job in the whole cluster; drawn at random.
using JobId = std::uint64_t;

/// A frame to be sent. The body's parts are shared, not copied.
struct Frame {
  Bytes head;
  std::vector<Attachment> body;
  /// The same body was sent before: a frame that still waits with it makes this one superfluous.
  bool is_retry = false;

  [[nodiscard]] std::size_t body_size() const noexcept;
};

/// A frame as it came. Valid during the call that brings it.
struct FrameView {
  std::span<const std::byte> head;
  std::span<const std::byte> body;
  /// The frame is small, or no message waits after its own: the receiver may handle it in the
  /// calling thread.
  bool at_once = false;
  /// Keeps the body alive after the call; if null, the receiver must copy what it needs.
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

/// The kind of a frame of this version; an Error says why it is not one.
[[nodiscard]] Result<Kind> kind_of(const FrameView& frame);

}  // namespace starling::wire
