#include "starling/actor/wire/control.hpp"

#include <gtest/gtest.h>

#include "starling/base/random.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/actor/wire/heap.hpp"
#include "tests/actor/wire/received_frame.hpp"

namespace starling::wire {
namespace {

TEST(Control, SurvivesEncodingAndDecoding) {
  for (const auto& message : example_control_messages()) {
    const ReceivedFrame received{encode(message)};
    const auto decoded = decode_control({received.head, received.body});
    ASSERT_TRUE(decoded) << decoded.error().message;
    // All examples have this sender and this address.
    EXPECT_EQ(decoded->from, 5U);
    EXPECT_EQ(decoded->address, "tcp://127.0.0.1:1");
    EXPECT_EQ(ReceivedFrame{encode(*decoded)}, received);
  }
}

/// Expects that the encoded `message` has the enumerator `last` at `from_end` bytes before its end,
/// and that the message is refused if the next higher number is there.
void expect_last_enumerator(const ControlMessage& message, std::size_t from_end,
                            std::uint8_t last) {
  ReceivedFrame received{encode(message)};
  std::byte& enumerator = received.head[received.head.size() - from_end];
  ASSERT_EQ(enumerator, static_cast<std::byte>(last));
  enumerator = static_cast<std::byte>(last + 1);
  const auto decoded = decode_control({received.head, received.body});
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().message, "a frame holds an unknown enumerator");
}

TEST(Control, IsRefusedIfTheStateOfANodeOrJobIsUnknown) {
  const core::NodeRecord left{.id = 7, .address = "a", .name = "n", .state = core::NodeState::left};
  // The state itself has 1 byte. Then follow the kind of the MembershipMessage::Body (a Ping), the
  // Ping's two numbers, and the count of MembershipMessage::updates.
  expect_last_enumerator({1, "b", core::MembershipMessage{left, core::Ping{2, 3}}}, 1 + 1 + 16 + 4,
                         static_cast<std::uint8_t>(core::NodeState::left));
  // The lengths of two empty lists follow the state.
  const CloseJob failed{1, JobSummary{.state = JobState::failed}};
  expect_last_enumerator({1, "b", Request{2, failed}}, 1 + 4 + 4,
                         static_cast<std::uint8_t>(JobState::failed));
}

TEST(Control, IsRefusedIfAnyByteIsMissing) {
  for (const auto& message : example_control_messages()) {
    const ReceivedFrame received{encode(message)};
    for (std::size_t size = 0; size < received.head.size(); ++size)
      ASSERT_FALSE(decode_control({std::span{received.head}.first(size), received.body})) << size;
  }
}

TEST(Control, IsDecodedOrRefusedInBoundedMemoryIfDamaged) {
  std::vector<ReceivedFrame> frames;
  for (const auto& message : example_control_messages()) frames.emplace_back(encode(message));
  Random random{11};
  int decoded_count = 0;
  for (int i = 0; i < 100'000; ++i) {
    ReceivedFrame frame = frames[random.below(frames.size())];
    for (std::size_t damaged_bytes = 1 + random.below(4); damaged_bytes > 0; --damaged_bytes)
      frame.head[random.below(frame.head.size())] = static_cast<std::byte>(random.below(256));
    heap_reset_peak();
    const std::size_t before = heap_bytes();
    const auto decoded = decode_control({frame.head, frame.body});
    ASSERT_LE(heap_peak_bytes() - before, 8 * (frame.head.size() + frame.body.size()) + 65536);
    if (!decoded) continue;
    ++decoded_count;
    ASSERT_EQ(ReceivedFrame{encode(*decoded)}, frame);
  }
  EXPECT_GT(decoded_count, 1000);
}

}  // namespace
}  // namespace starling::wire
