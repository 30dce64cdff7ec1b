/// A pack is several frames in one ZeroMQ message, which costs about as much as one frame:
///
///     magic "Sp", version, 0, then for each frame the lengths of its head and its body, four bytes
///     each, the low one first, then its head and its body
///
/// If the message has a second part, the bodies lie there instead, one after the other.
///
/// Plain values and functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "starling/actor/wire/frame.hpp"

namespace starling::wire {

/// Where the bodies of packed frames lie.
enum class BodyPlace { in_pack, second_part };

/// The most bytes of a frame whose body lies in the pack; bodies of longer frames lie in the second
/// part.
inline constexpr std::size_t packed_frame_max = std::size_t{8} << 10U;
/// The most bytes of a whole pack.
inline constexpr std::size_t pack_max = std::size_t{64} << 10U;
/// The most bytes of the second part.
inline constexpr std::size_t second_part_max = std::size_t{1} << 20U;
inline constexpr std::size_t pack_prefix = 4;

/// Bytes that a frame takes in a pack, without those in the second part.
[[nodiscard]] std::size_t packed_size(const Frame& frame, BodyPlace body_place);

/// Writes the prefix of a pack, or a frame, to `at`, and returns the end of what was written.
[[nodiscard]] std::byte* begin_pack(std::byte* at);
[[nodiscard]] std::byte* put_packed(const Frame& frame, BodyPlace body_place, std::byte* at);

/// Reads a message that has come.
class PackReader {
 public:
  /// Opens `pack`, the first part of a message; nothing unless it is a pack of this version and no
  /// longer than `pack_max`. `second_part` is empty if the message has none.
  [[nodiscard]] static std::optional<PackReader> open(std::span<const std::byte> pack,
                                                      std::span<const std::byte> second_part);

  /// The next frame, a view of both parts. Nothing if there is none, or if it is longer than the
  /// bytes that are left.
  [[nodiscard]] std::optional<FrameView> next();

 private:
  PackReader(std::span<const std::byte> frames, std::span<const std::byte> second_part)
      : frames_(frames),
        second_part_(second_part),
        body_place_(second_part.empty() ? BodyPlace::in_pack : BodyPlace::second_part) {}

  /// The unread rests of both parts.
  std::span<const std::byte> frames_;
  std::span<const std::byte> second_part_;
  BodyPlace body_place_;
};

}  // namespace starling::wire
