/// Several small frames as one message of ZeroMQ's, which costs about what one of them does:
///
///     magic "Sp", version, 0, then for each frame the lengths of its head and its body, four bytes
///     each, the low one first, and both
///
/// Plain functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "starling/actor/wire/frame.hpp"

namespace starling::wire {

/// Frames beyond so many bytes go by themselves, and packs are no longer than so many.
inline constexpr std::size_t packed_frame_max = std::size_t{8} << 10U;
inline constexpr std::size_t pack_max = std::size_t{64} << 10U;
inline constexpr std::size_t pack_prefix = 4;

/// Bytes that a frame takes in a pack.
[[nodiscard]] std::size_t packed_size(const Frame& frame);

/// Writes what is in front of the first frame, or a frame, to `at`, and returns the place behind
/// it.
[[nodiscard]] std::byte* begin_pack(std::byte* at);
[[nodiscard]] std::byte* put_packed(const Frame& frame, std::byte* at);

/// The frames of a message, if it is a pack of this version, and no longer than one may be.
[[nodiscard]] std::optional<std::span<const std::byte>> packed_in(
    std::span<const std::byte> message);
/// Takes the next frame off the front of `rest`. Nothing where there is none, or where it is longer
/// than what is there.
[[nodiscard]] std::optional<FrameView> take_packed(std::span<const std::byte>& rest);

}  // namespace starling::wire
