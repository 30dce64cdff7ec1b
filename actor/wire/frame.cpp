#include "starling/actor/wire/frame.hpp"

#include <numeric>
#include <random>
#include <string>

#include "starling/actor/wire/framing.hpp"
#include "starling/actor/wire/message_codec.hpp"

namespace starling::wire {

std::uint64_t draw_id() {
  std::random_device device;
  std::uint64_t id = 0;
  while (id == 0) id = (std::uint64_t{device()} << 32U) | device();
  return id;
}

std::size_t Frame::body_size() const noexcept {
  return std::accumulate(body.begin(), body.end(), std::size_t{0},
                         [](std::size_t sum, const Attachment& a) { return sum + a.bytes.size(); });
}

Frame encode(JobId job, NodeId node, const core::Envelope& envelope) {
  Frame frame = encode_as(Kind::envelope, [&](Encoder& encoder) { encoder(job, node, envelope); });
  const auto& packet = envelope.packet;
  frame.is_retry = packet.is_resend;
  frame.packet = {job,       envelope.from,          envelope.to,    packet.from,
                  packet.to, envelope.traffic_class, packet.sequence};
  return frame;
}

Result<JobEnvelope> decode_envelope(const FrameView& frame) {
  return decode_as<JobEnvelope>(frame, Kind::envelope, [](Decoder& decoder, JobEnvelope& message) {
    decoder(message.job, message.node, message.envelope);
  });
}

Result<Kind> kind_of(const FrameView& frame) {
  const auto begins_with = [&](const auto& expected) {
    return std::ranges::equal(frame.head.first(magic.size()), expected);
  };
  if (frame.head.size() < prefix_size || !(begins_with(magic) || begins_with(pack_magic)))
    return Error{"a frame is not Starling's"};
  const auto frame_version = static_cast<unsigned>(frame.head[magic.size()]);
  if (frame_version == version && !begins_with(magic))
    return Error{"a pack is too long, or inside another pack"};
  if (frame_version != version)
    return Error{"a frame is of version " + std::to_string(frame_version) +
                 "; valid here: " + std::to_string(version)};
  const auto kind = static_cast<Kind>(frame.head[magic.size() + 1]);
  if (kind < Kind::envelope || kind > Kind::fabric) return Error{"a frame is of an unknown kind"};
  return kind;
}

}  // namespace starling::wire
