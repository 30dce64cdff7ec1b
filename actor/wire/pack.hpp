/// Packs. A pack is one ZeroMQ message with several frames, which costs about as much as one frame:
///
///     magic "Sp", version, 0; then for each frame the length of its head and that of its body,
///     each in four bytes, little-endian; then its head and its body
///
/// If the message has a second part, that part holds all bodies, one after the other, and the first
/// part holds none.
///
/// Plain values and pure functions; thread-safe to read and call.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "starling/actor/wire/frame.hpp"

namespace starling::wire {

/// A packed message has one or two parts. This is the part that holds the bodies of its frames.
enum class BodyPart { first, second };

/// The most bytes of a frame whose body is sent in the first part. Bodies of longer frames are sent
/// in the second.
inline constexpr std::size_t packed_frame_bytes_max = std::size_t{8} << 10U;
/// The most bytes of the first part.
inline constexpr std::size_t pack_bytes_max = std::size_t{64} << 10U;
/// The most bytes of the second part.
inline constexpr std::size_t second_part_bytes_max = std::size_t{1} << 20U;
/// The bytes of the magic, the version and the zero.
inline constexpr std::size_t pack_prefix_size = 4;

/// Returns the number of bytes that a frame takes in the first part.
[[nodiscard]] std::size_t packed_size(const Frame& frame, BodyPart body_part);

/// Write the prefix of a pack, or one frame, to `out`. Return the end of the written bytes.
[[nodiscard]] std::byte* write_pack_prefix(std::byte* out);
[[nodiscard]] std::byte* write_packed(const Frame& frame, BodyPart body_part, std::byte* out);

/// Reads the frames of a received pack.
class PackReader {
 public:
  /// Opens a message with the parts `pack` and `second_part`, which is empty if the message has
  /// none. Returns nothing unless `pack` is a pack of this version and not longer than
  /// `pack_bytes_max`.
  [[nodiscard]] static std::optional<PackReader> open(std::span<const std::byte> pack,
                                                      std::span<const std::byte> second_part);

  /// Returns the next frame, as a view of the message. Returns nothing if there is no further
  /// frame, or if the frame is longer than the bytes that are left.
  [[nodiscard]] std::optional<FrameView> next();

 private:
  PackReader(std::span<const std::byte> frames, std::span<const std::byte> second_part)
      : frames_(frames),
        second_part_(second_part),
        body_part_(second_part.empty() ? BodyPart::first : BodyPart::second) {}

  /// The bytes of the first and of the second part that are not read yet.
  std::span<const std::byte> frames_;
  std::span<const std::byte> second_part_;
  BodyPart body_part_;
};

}  // namespace starling::wire
