#include "starling/actor/wire/frame.hpp"

#include <array>
#include <new>
#include <numeric>
#include <string>

#include "starling/actor/wire/letters.hpp"

namespace starling::wire {
namespace {

constexpr std::array magic{std::byte{'S'}, std::byte{'t'}};
constexpr std::size_t prefix_size = magic.size() + 2;

void put_prefix(Encoder& encoder, Kind kind) {
  encoder.put(magic.data(), magic.size());
  encoder(version, static_cast<std::uint8_t>(kind));
}

/// What `read` makes of a frame of this kind.
template <class M, class Read>
Result<M> decode_as(const FrameView& frame, Kind kind, Read read) {
  const auto found = kind_of(frame);
  if (!found) return found.error();
  if (*found != kind) return Error{"a frame is of another kind than is valid here"};
  try {
    Decoder decoder{frame.head.subspan(prefix_size), frame.body};
    M message;
    read(decoder, message);
    decoder.finish();
    return message;
  } catch (const DecodeError& fault) {
    return Error{std::string{"a frame "} + fault.what()};
  } catch (const std::bad_alloc&) {
    return Error{"a frame needs more memory than there is"};
  }
}

}  // namespace

std::size_t Frame::body_size() const noexcept {
  return std::accumulate(body.begin(), body.end(), std::size_t{0},
                         [](std::size_t sum, const Attachment& a) { return sum + a.bytes.size(); });
}

Frame encode(JobId job, NodeId node, const core::Envelope& envelope) {
  Frame frame;
  frame.head.reserve(128);
  Encoder encoder{frame.head};
  put_prefix(encoder, Kind::envelope);
  encoder(job, node, envelope);
  frame.body = std::move(encoder.attachments());
  return frame;
}

Result<JobEnvelope> decode_envelope(const FrameView& frame) {
  return decode_as<JobEnvelope>(frame, Kind::envelope, [](Decoder& decoder, JobEnvelope& message) {
    decoder(message.job, message.node, message.envelope);
  });
}

Result<Kind> kind_of(const FrameView& frame) {
  if (frame.head.size() < prefix_size || !std::ranges::equal(frame.head.first(magic.size()), magic))
    return Error{"a frame is not Starling's"};
  const auto its_version = static_cast<unsigned>(frame.head[magic.size()]);
  if (its_version != version)
    return Error{"a frame is of version " + std::to_string(its_version) +
                 "; valid here: " + std::to_string(version)};
  const auto kind = static_cast<Kind>(frame.head[magic.size() + 1]);
  if (kind != Kind::envelope && kind != Kind::control) return Error{"a frame is of no known kind"};
  return kind;
}

}  // namespace starling::wire
