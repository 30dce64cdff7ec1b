#include "starling/actor/wire/control.hpp"

#include <gtest/gtest.h>

#include "starling/base/random.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/actor/wire/heap.hpp"

namespace starling::wire {
namespace {

struct Sent {
  explicit Sent(const Frame& frame) : head(frame.head) {
    for (const Attachment& part : frame.body)
      body.insert(body.end(), part.bytes.begin(), part.bytes.end());
  }
  bool operator==(const Sent&) const = default;
  Bytes head;
  Bytes body;
};

TEST(Control, SaysEverythingAgain) {
  for (const auto& message : example_control_messages()) {
    const Sent sent{encode(message)};
    const auto decoded = decode_control({sent.head, sent.body});
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(decoded->from, 5U);
    EXPECT_EQ(decoded->address, "tcp://127.0.0.1:1");
    EXPECT_EQ(Sent{encode(*decoded)}, sent);
  }
}

/// Expects that the byte at `from_end` from the end of `message` is `last`, and that the next
/// higher one is refused.
void expect_last(const ControlMessage& message, std::size_t from_end, std::uint8_t last) {
  Sent sent{encode(message)};
  std::byte& enumerator = sent.head[sent.head.size() - from_end];
  ASSERT_EQ(enumerator, static_cast<std::byte>(last));
  enumerator = static_cast<std::byte>(last + 1);
  const auto decoded = decode_control({sent.head, sent.body});
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().message, "a frame holds a value of no known kind");
}

TEST(Control, OfANodeOrAJobInNoKnownStateIsRefused) {
  const core::NodeRecord left{.id = 7, .address = "a", .name = "n", .state = core::NodeState::left};
  // The kind of the body, its two numbers and the count of updates follow the state.
  expect_last({1, "b", core::MembershipMessage{left, core::Ping{2, 3}}}, 1 + 1 + 16 + 4,
              static_cast<std::uint8_t>(core::NodeState::left));
  // The lengths of two empty lists follow the state.
  const CloseJob failed{1, JobSummary{.state = JobState::failed}};
  expect_last({1, "b", Request{2, failed}}, 1 + 4 + 4, static_cast<std::uint8_t>(JobState::failed));
}

TEST(Control, OfWhichAnyByteIsMissingIsRefused) {
  for (const auto& message : example_control_messages()) {
    const Sent sent{encode(message)};
    for (std::size_t size = 0; size < sent.head.size(); ++size)
      ASSERT_FALSE(decode_control({std::span{sent.head}.first(size), sent.body})) << size;
  }
}

TEST(Control, DamagedAtRandomIsReadOrRefusedInBoundedMemory) {
  std::vector<Sent> frames;
  for (const auto& message : example_control_messages()) frames.emplace_back(encode(message));
  Random random{11};
  int read = 0;
  for (int i = 0; i < 100'000; ++i) {
    Sent frame = frames[random.below(frames.size())];
    for (std::size_t hits = 1 + random.below(4); hits > 0; --hits)
      frame.head[random.below(frame.head.size())] = static_cast<std::byte>(random.below(256));
    heap_reset_most();
    const std::size_t before = heap_taken();
    const auto decoded = decode_control({frame.head, frame.body});
    ASSERT_LE(heap_taken_most() - before, 8 * (frame.head.size() + frame.body.size()) + 65536);
    if (!decoded) continue;
    ++read;
    ASSERT_EQ(Sent{encode(*decoded)}, frame);
  }
  EXPECT_GT(read, 1000);
}

}  // namespace
}  // namespace starling::wire
