#include <gtest/gtest.h>

#include <bit>

#include "starling/actor/wire/frame.hpp"

namespace starling::wire {
namespace {

TEST(Frame, CarriesAllFloatPatterns) {
  constexpr std::uint64_t piece = 1U << 20U;
  for (std::uint64_t first = 0; first < (1ULL << 32U); first += piece) {
    auto buffer = core::Buffer::make<float>(piece);
    for (std::uint64_t i = 0; i < piece; ++i) {
      const auto pattern = static_cast<std::uint32_t>(first + i);
      std::memcpy(buffer->bytes().data() + 4 * i, &pattern, 4);
    }
    const core::Slice slice{buffer, 0, piece, nullptr};
    core::Envelope envelope;
    envelope.packet.payload = std::make_shared<const core::PeerMessage>(core::Value{0, 0, slice});
    const Frame frame = encode(1, 1, envelope);
    ASSERT_EQ(frame.body.size(), 1U);
    const Bytes body{frame.body[0].bytes.begin(), frame.body[0].bytes.end()};
    const auto decoded = decode_envelope({frame.head, body});
    ASSERT_TRUE(decoded);
    const auto& back = std::get<core::Value>(**decoded->envelope.packet.payload).value;
    ASSERT_TRUE(std::ranges::equal(back.bytes(), slice.bytes())) << first;
  }
}

}  // namespace
}  // namespace starling::wire
