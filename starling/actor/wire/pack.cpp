#include "starling/actor/wire/pack.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "starling/actor/wire/framing.hpp"

namespace starling::wire {
namespace {

constexpr std::array prefix{pack_magic[0], pack_magic[1], std::byte{version}, std::byte{0}};
static_assert(prefix.size() == pack_prefix);

/// Of the head and of the body, as they lie in memory (archive.hpp).
using Lengths = std::array<std::uint32_t, 2>;

}  // namespace

std::size_t packed_size(const Frame& frame) {
  return sizeof(Lengths) + frame.head.size() + frame.body_size();
}

std::byte* begin_pack(std::byte* at) { return std::ranges::copy(prefix, at).out; }

std::byte* put_packed(const Frame& frame, std::byte* at) {
  const Lengths lengths{count_of(frame.head.size()), count_of(frame.body_size())};
  std::memcpy(at, lengths.data(), sizeof lengths);
  at = std::ranges::copy(frame.head, at + sizeof lengths).out;
  for (const Attachment& part : frame.body) at = std::ranges::copy(part.bytes, at).out;
  return at;
}

std::optional<std::span<const std::byte>> packed_in(std::span<const std::byte> message) {
  if (message.size() < prefix.size() || message.size() > pack_max ||
      !std::ranges::equal(message.first(prefix.size()), prefix))
    return std::nullopt;
  return message.subspan(prefix.size());
}

std::optional<FrameView> take_packed(std::span<const std::byte>& rest) {
  Lengths lengths{};
  if (rest.size() < sizeof lengths) return std::nullopt;
  std::memcpy(lengths.data(), rest.data(), sizeof lengths);
  const auto [head, body] = lengths;
  const auto behind = rest.subspan(sizeof lengths);
  if (std::size_t{head} + body > behind.size()) return std::nullopt;
  rest = behind.subspan(std::size_t{head} + body);
  FrameView frame;
  frame.head = behind.first(head);
  frame.body = behind.subspan(head, body);
  return frame;
}

}  // namespace starling::wire
