/// A pack is several frames in one ZeroMQ message, which costs about as much as one frame:
///
///     magic "Sp", version, 0, then for each frame the lengths of its head and its body, four bytes
///     each, the low one first, and both
///
/// Where the message has a second part, the bodies lie there, one behind the other.
///
/// Plain values and functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "starling/actor/wire/frame.hpp"

namespace starling::wire {

/// Where the bodies of packed frames lie.
enum class Bodies { inside, behind };

/// The most bytes of a frame whose body lies inside; longer ones have their bodies behind the pack.
inline constexpr std::size_t packed_frame_max = std::size_t{8} << 10U;
/// The most bytes of a whole pack.
inline constexpr std::size_t pack_max = std::size_t{64} << 10U;
/// The most bytes of all bodies behind a pack.
inline constexpr std::size_t joint_bodies_max = std::size_t{1} << 20U;
inline constexpr std::size_t pack_prefix = 4;

/// Bytes that a frame takes in a pack.
[[nodiscard]] std::size_t packed_size(const Frame& frame, Bodies bodies);

/// Writes the prefix of a pack, or a frame, to `at`, and returns the place behind it.
[[nodiscard]] std::byte* begin_pack(std::byte* at);
[[nodiscard]] std::byte* put_packed(const Frame& frame, Bodies bodies, std::byte* at);

/// Reads a message that has come.
class PackReader {
 public:
  /// Opens `pack` where it is a pack of this version, and no longer than `pack_max`. `behind` is
  /// the message's second part, if any.
  [[nodiscard]] static std::optional<PackReader> open(std::span<const std::byte> pack,
                                                      std::span<const std::byte> behind);

  /// The next frame, a view of both parts. Nothing where there is none, or where it is longer than
  /// the bytes that are left.
  [[nodiscard]] std::optional<FrameView> next();

 private:
  PackReader(std::span<const std::byte> frames, std::span<const std::byte> behind)
      : frames_(frames),
        behind_(behind),
        bodies_(behind.empty() ? Bodies::inside : Bodies::behind) {}

  /// The unread rest of both parts.
  std::span<const std::byte> frames_;
  std::span<const std::byte> behind_;
  Bodies bodies_;
};

}  // namespace starling::wire
