#include "starling/actor/wire/control.hpp"

#include <gtest/gtest.h>

#include "starling/base/random.hpp"
#include "tests/actor/examples.hpp"
#include "tests/actor/heap.hpp"

namespace starling::wire {
namespace {

using core::MemberRecord;
using core::MemberState;

MemberRecord record(MemberState state) {
  return {.id = 77,
          .address = "tcp://127.0.0.1:7400",
          .name = "n1",
          .workers = 4,
          .incarnation = 3,
          .state = state};
}

core::ConfigurationPtr configuration() {
  return std::make_shared<const core::Configuration>(
      core::first_configuration({{0, 1, true, true, 5}, {1, 1, true, true, 6}}, 3, 2));
}

std::vector<ControlMessage> examples() {
  const JobSettings settings{{"model", "linear"}, {"workers", "4"}};
  core::RangeState state;
  state.value = slice_of<float>({1, 2});
  state.ledger = {{1, 2, 3}};
  std::vector<ControlMessage> all;
  const auto add = [&](auto body) { all.push_back({5, "tcp://127.0.0.1:1", std::move(body)}); };
  const auto tell = [&](core::MembershipMessage::Body body) {
    add(core::MembershipMessage{
        record(MemberState::alive), std::move(body), {{record(MemberState::suspect), 9}}});
  };
  tell(core::Ping{77, 1});
  tell(core::PingAck{1});
  tell(core::PingRequest{77, 2});
  tell(core::PingNack{2});
  tell(core::Gossip{});
  tell(core::Digest{{1, 2, 3, 4}, true});
  tell(core::Records{{record(MemberState::dead), record(MemberState::left)}});
  const auto ask = [&](RequestBody body) { add(Request{12, std::move(body)}); };
  ask(SubmitJob{1, settings});
  ask(PrepareJob{1, settings});
  ask(StartJob{1, configuration()});
  ask(AskStatus{});
  ask(AskJob{1});
  ask(ReadRanges{1, 7});
  ask(StopJob{1});
  ask(CloseJob{1});
  const auto answer = [&](ReplyBody body) { add(Reply{12, std::move(body)}); };
  answer(Refused{"no"});
  answer(Done{});
  answer(JobPrepared{0xfeed, 3});
  answer(NodeStatus{record(MemberState::alive),
                    {record(MemberState::dead)},
                    {{1, settings, {{0, 1, 2, "why", 3, 4, 5, 0.5, 6, 7, 8}}, configuration()}}});
  answer(JobFacts{settings, 4, configuration()});
  answer(Ranges{{state}, 9});
  return all;
}

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
  for (const auto& message : examples()) {
    const Sent sent{encode(message)};
    const auto decoded = decode_control({sent.head, sent.body});
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(decoded->from, 5U);
    EXPECT_EQ(decoded->address, "tcp://127.0.0.1:1");
    EXPECT_EQ(Sent{encode(*decoded)}, sent);
  }
}

TEST(Control, OfWhichAnyByteIsMissingIsRefused) {
  for (const auto& message : examples()) {
    const Sent sent{encode(message)};
    for (std::size_t size = 0; size < sent.head.size(); ++size)
      ASSERT_FALSE(decode_control({std::span{sent.head}.first(size), sent.body})) << size;
  }
}

TEST(Control, DamagedAtRandomIsReadOrRefusedInBoundedMemory) {
  std::vector<Sent> frames;
  for (const auto& message : examples()) frames.emplace_back(encode(message));
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
