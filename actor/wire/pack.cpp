#include "starling/actor/wire/pack.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "starling/actor/wire/framing.hpp"

namespace starling::wire {
namespace {

constexpr std::array prefix{pack_magic[0], pack_magic[1], std::byte{version}, std::byte{0}};
static_assert(prefix.size() == pack_prefix_size);

/// The lengths of a frame's head and body; little-endian in memory, as archive.hpp asserts.
using Lengths = std::array<std::uint32_t, 2>;

}  // namespace

std::size_t packed_size(const Frame& frame, BodyPart body_part) {
  return sizeof(Lengths) + frame.head.size() +
         (body_part == BodyPart::first ? frame.body_size() : 0);
}

std::byte* write_pack_prefix(std::byte* out) { return std::ranges::copy(prefix, out).out; }

std::byte* write_packed(const Frame& frame, BodyPart body_part, std::byte* out) {
  const Lengths lengths{to_count(frame.head.size()), to_count(frame.body_size())};
  std::memcpy(out, lengths.data(), sizeof lengths);
  out = std::ranges::copy(frame.head, out + sizeof lengths).out;
  if (body_part == BodyPart::second) return out;
  for (const Attachment& part : frame.body) out = std::ranges::copy(part.bytes, out).out;
  return out;
}

std::optional<PackReader> PackReader::open(std::span<const std::byte> pack,
                                           std::span<const std::byte> second_part) {
  if (pack.size() < prefix.size() || pack.size() > pack_bytes_max ||
      !std::ranges::equal(pack.first(prefix.size()), prefix))
    return std::nullopt;
  return PackReader{pack.subspan(prefix.size()), second_part};
}

std::optional<FrameView> PackReader::next() {
  Lengths lengths{};
  if (frames_.size() < sizeof lengths) return std::nullopt;
  std::memcpy(lengths.data(), frames_.data(), sizeof lengths);
  const auto [head_bytes, body_bytes] = lengths;
  const auto rest = frames_.subspan(sizeof lengths);
  if (head_bytes > rest.size()) return std::nullopt;
  const auto bodies = body_part_ == BodyPart::first ? rest.subspan(head_bytes) : second_part_;
  if (body_bytes > bodies.size()) return std::nullopt;
  FrameView frame;
  frame.head = rest.first(head_bytes);
  frame.body = bodies.first(body_bytes);
  if (body_part_ == BodyPart::first) {
    frames_ = bodies.subspan(body_bytes);
  } else {
    frames_ = rest.subspan(head_bytes);
    second_part_ = bodies.subspan(body_bytes);
  }
  return frame;
}

}  // namespace starling::wire
