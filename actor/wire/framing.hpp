/// The prefix of every frame, and the functions that encode and decode frames. Internal to
/// actor/wire and actor/security.
#pragma once

#include <array>
#include <new>
#include <string>
#include <utility>

#include "starling/actor/wire/frame.hpp"

namespace starling::wire {

inline constexpr std::array magic{std::byte{'S'}, std::byte{'t'}};
/// The magic of a pack, which holds several frames in one message (pack.hpp).
inline constexpr std::array pack_magic{std::byte{'S'}, std::byte{'p'}};
inline constexpr std::size_t prefix_size = magic.size() + 2;

/// Makes a frame of kind `kind`. Calls `write(encoder)`, which encodes the message.
template <class Write>
Frame encode_as(Kind kind, Write write) {
  Frame frame;
  frame.head.reserve(128);
  Encoder encoder{frame.head};
  encoder.put(magic.data(), magic.size());
  encoder(version, static_cast<std::uint8_t>(kind));
  write(encoder);
  frame.body = std::move(encoder.attachments());
  return frame;
}

/// Decodes a frame: calls `read(decoder, message)`, which decodes the message. Returns an Error if
/// the frame is not of this version or not of kind `kind`, if its bytes are malformed, or if there
/// is not enough memory. Tensors of the message may stay in the frame's body, which
/// `frame.body_owner` then keeps alive.
template <class M, class Read>
Result<M> decode_as(const FrameView& frame, Kind kind, Read read) {
  const auto found = kind_of(frame);
  if (!found) return found.error();
  if (*found != kind) return Error{"a frame is of another kind than expected"};
  try {
    Decoder decoder{frame.head.subspan(prefix_size), {frame.body_owner, frame.body}};
    M message;
    read(decoder, message);
    decoder.finish();
    return message;
  } catch (const DecodeError& fault) {
    return Error{std::string{"a frame "} + fault.what()};
  } catch (const std::bad_alloc&) {
    return Error{"a frame needs more memory than is available"};
  }
}

}  // namespace starling::wire
