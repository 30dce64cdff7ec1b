#include "starling/actor/wire/frame.hpp"

#include <gtest/gtest.h>

#include <set>

#include "starling/base/random.hpp"
#include "starling/engine/core/wire_size.hpp"
#include "starling/engine/sim/protocol/traffic.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/actor/wire/heap.hpp"
#include "tests/actor/wire/received_frame.hpp"

namespace starling::wire {
namespace {

constexpr JobId job = 0x0123456789abcdef;
constexpr NodeId node = 99;

std::vector<ReceivedFrame> all_frames() {
  std::vector<ReceivedFrame> frames;
  for (const auto& peer_message : example_messages())
    frames.emplace_back(encode(job, node, envelope_of(&peer_message)));
  frames.emplace_back(encode(job, node, envelope_of(nullptr)));
  return frames;
}

std::string error_of(const FrameView& view) {
  const auto decoded = decode_envelope(view);
  return decoded ? "" : decoded.error().message;
}

TEST(Frame, ExamplesCoverEveryKindOfMessage) {
  std::set<std::size_t> kinds;
  for (const auto& peer_message : example_messages()) kinds.insert(peer_message.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<core::PeerMessage>);
}

TEST(Frame, SurvivesEncodingAndDecoding) {
  for (const auto& received : all_frames()) {
    const auto decoded = decode_envelope(received.view());
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(decoded->job, job);
    EXPECT_EQ(decoded->node, node);
    EXPECT_EQ(ReceivedFrame{encode(decoded->job, decoded->node, decoded->envelope)}, received);
  }
}

std::size_t bytes_of(const Frame& frame) { return frame.head.size() + frame.body_size(); }

TEST(Frame, HasTheSizeThatTheFieldsOfItsMessageGive) {
  constexpr std::size_t prefix = 4;
  for (const auto& peer_message : example_messages()) {
    const core::Envelope envelope = envelope_of(&peer_message);
    EXPECT_EQ(bytes_of(encode(job, node, envelope)),
              prefix + sizeof job + sizeof node + core::wire_size(envelope))
        << "alternative " << peer_message.index();
  }
  for (const ControlMessage& message : example_control_messages())
    EXPECT_EQ(bytes_of(encode(message)), prefix + core::wire_size(message));
}

TEST(Frame, HasTheSizeThatTheSimulatorCounts) {
  for (const auto& peer_message : example_messages())
    EXPECT_EQ(bytes_of(encode(job, node, envelope_of(&peer_message))),
              sim::header_bytes() + sim::bytes_of(peer_message, 0))
        << sim::kind_of_message(peer_message.index());
}

TEST(Frame, IsOfTheDataClassIfItsMessageMayHaveTensors) {
  for (const auto& peer_message : example_messages())
    if (core::payload_bytes(core::make_peer_message(peer_message)) > 0) {
      EXPECT_EQ(core::traffic_class_of(peer_message), core::TrafficClass::data)
          << "alternative " << peer_message.index();
    }
  EXPECT_EQ(core::traffic_class_of(core::Ack{}), core::TrafficClass::control);
  EXPECT_EQ(core::traffic_class_of(core::Held{}), core::TrafficClass::control);
  EXPECT_EQ(core::traffic_class_of(core::ConfigurationPtr{}), core::TrafficClass::control);
}

TEST(Frame, KeepsTheFieldsOfItsEnvelope) {
  const auto decoded =
      decode_envelope(ReceivedFrame{encode(job, node, envelope_of(nullptr))}.view());
  ASSERT_TRUE(decoded);
  const core::Envelope& envelope = decoded->envelope;
  EXPECT_EQ(envelope.from, 3U);
  EXPECT_EQ(envelope.to, 9U);
  EXPECT_EQ(envelope.epoch, 7U);
  EXPECT_EQ(envelope.packet.from, 2U);
  EXPECT_EQ(envelope.packet.to, 4U);
  EXPECT_EQ(envelope.packet.acknowledged, 39U);
  EXPECT_EQ(envelope.packet.selective_acks, 5U);
  EXPECT_FALSE(envelope.packet.payload);
}

TEST(Frame, KeepsTensorsToTheBitWithTheirRows) {
  const auto rows = std::make_shared<const std::vector<std::uint32_t>>(std::vector{2U, 7U});
  const core::PeerMessage value = core::Value{1, 2, slice_of<double>({-0.0, 1e-310}, rows)};
  const auto decoded =
      decode_envelope(ReceivedFrame{encode(job, node, envelope_of(&value))}.view());
  ASSERT_TRUE(decoded);
  const auto& slice = std::get<core::Value>(**decoded->envelope.packet.payload).value;
  EXPECT_TRUE(std::signbit(slice.as<double>()[0]));
  EXPECT_EQ(slice.as<double>()[1], 1e-310);
  EXPECT_EQ(*slice.rows, *rows);
}

TEST(Frame, SendsTensorsWithoutCopyingThem) {
  const auto slice = slice_of<float>(std::vector<float>(65536));
  const core::PeerMessage value = core::Value{1, 2, slice};
  const Frame frame = encode(job, node, envelope_of(&value));
  ASSERT_EQ(frame.body.size(), 1U);
  EXPECT_EQ(frame.body[0].bytes.data(), slice.bytes().data());
  EXPECT_LT(frame.head.size(), 128U);
}

TEST(Frame, IsRefusedIfAnyByteIsMissing) {
  for (const auto& received : all_frames()) {
    for (std::size_t size = 0; size < received.head.size(); ++size)
      ASSERT_NE(error_of({std::span{received.head}.first(size), received.body}), "") << size;
    for (std::size_t size = 0; size < received.body.size(); ++size)
      ASSERT_EQ(error_of({received.head, std::span{received.body}.first(size)}),
                "a frame lacks bytes of its tensors");
  }
}

TEST(Frame, IsRefusedIfBytesAreLeftOver) {
  for (auto received : all_frames()) {
    received.body.push_back({});
    EXPECT_EQ(error_of(received.view()), "a frame has bytes left over at its end");
    received.body.pop_back();
    received.head.push_back({});
    EXPECT_EQ(error_of(received.view()), "a frame has bytes left over at its end");
  }
}

TEST(Frame, IsRefusedIfItsPrefixIsInvalid) {
  ReceivedFrame frame{encode(job, node, envelope_of(nullptr))};
  frame.head[3] = std::byte{9};
  EXPECT_EQ(error_of(frame.view()), "a frame is of an unknown kind");
  frame.head[3] = std::byte{2};
  EXPECT_EQ(error_of(frame.view()), "a frame is of another kind than expected");
  frame.head[2] = std::byte{200};
  EXPECT_EQ(error_of(frame.view()),
            "a frame is of version 200; valid here: " + std::to_string(version));
  frame.head[0] = std::byte{'X'};
  EXPECT_EQ(error_of(frame.view()), "a frame is not Starling's");
  EXPECT_EQ(error_of({}), "a frame is not Starling's");
}

TEST(Frame, IsRefusedIfItsMessageIsNotWellFormed) {
  ReceivedFrame frame{encode(job, node, envelope_of(nullptr))};
  ASSERT_EQ(frame.head.back(), std::byte{0});
  frame.head.back() = std::byte{1};
  frame.head.push_back(std::byte{0});
  EXPECT_EQ(error_of(frame.view()), "a frame is not well-formed");
}

TEST(Frame, IsRefusedIfItsTrafficClassIsInvalid) {
  ReceivedFrame frame{encode(job, node, envelope_of(nullptr))};
  // The prefix, the job, the node, both members and the epoch come before the class.
  std::byte& traffic_class = frame.head[4 + sizeof job + sizeof node + 4 + 4 + 8];
  ASSERT_EQ(traffic_class, static_cast<std::byte>(envelope_of(nullptr).traffic_class));
  traffic_class = static_cast<std::byte>(core::TrafficClass::handshake);
  EXPECT_EQ(error_of(frame.view()), "a frame is not well-formed");
  traffic_class = std::byte{3};
  EXPECT_EQ(error_of(frame.view()), "a frame holds an unknown enumerator");
}

TEST(Frame, IsRefusedIfTheWorkersPhaseIsUnknown) {
  const core::PeerMessage status = core::WorkerStatus{3, core::WorkerStatus::Phase::ended, 18, 17};
  ReceivedFrame frame{encode(job, node, envelope_of(&status))};
  // Two steps and a bool follow the phase.
  std::byte& phase = frame.head[frame.head.size() - 2 - 2 * sizeof(core::Step)];
  ASSERT_EQ(phase, std::byte{4});
  phase = std::byte{5};
  EXPECT_EQ(error_of(frame.view()), "a frame holds an unknown enumerator");
}

TEST(Frame, TakesNoMemoryForAnnouncedElements) {
  const core::PeerMessage report = core::CouncilMessage{core::RangeReport{7, {1, 2, 3}}};
  ReceivedFrame frame{encode(job, node, envelope_of(&report))};
  const std::uint32_t huge = UINT32_MAX;
  std::memcpy(frame.head.data() + frame.head.size() - 16, &huge, sizeof huge);
  heap_reset_peak();
  const std::size_t before = heap_bytes();
  EXPECT_EQ(error_of(frame.view()), "a frame announces more elements than it holds");
  EXPECT_LT(heap_peak_bytes() - before, 4096U);
}

TEST(Frame, IsRefusedIfItsCompactTensorsTakeTooMuchMemory) {
  core::Slice zeros = slice_of<float>(std::vector<float>(unpacked_bytes_max / sizeof(float)));
  zeros.is_compact = true;
  const auto frame_of = [](std::vector<core::Slice> slices) {
    core::OwnerState state;
    for (core::Slice& slice : slices) {
      state.queued_pushes.emplace_back();
      state.queued_pushes.back().update = std::move(slice);
    }
    const core::PeerMessage install =
        core::Install{6, std::make_shared<const core::OwnerState>(std::move(state))};
    return ReceivedFrame{encode(job, node, envelope_of(&install))};
  };
  const ReceivedFrame one = frame_of({zeros});
  EXPECT_LT(one.body.size(), unpacked_bytes_max / 31);
  EXPECT_EQ(error_of(one.view()), "");
  const ReceivedFrame two = frame_of({zeros, zeros});
  heap_reset_peak();
  const std::size_t before = heap_bytes();
  EXPECT_EQ(error_of(two.view()), "a frame has tensors that take too much memory");
  EXPECT_LT(heap_peak_bytes() - before, unpacked_bytes_max + 65536);
}

/// Decodes frames with random damage. If decoding succeeds, encoding the message gives the same
/// bytes. Memory is bounded in any case.
TEST(Frame, IsDecodedOrRefusedInBoundedMemoryIfDamaged) {
  const auto frames = all_frames();
  Random random{7};
  int decoded_count = 0;
  for (int i = 0; i < 200'000; ++i) {
    ReceivedFrame frame = frames[random.below(frames.size())];
    for (std::size_t damaged_bytes = 1 + random.below(4); damaged_bytes > 0; --damaged_bytes) {
      Bytes& bytes = frame.body.empty() || random.below(4) > 0 ? frame.head : frame.body;
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    }
    if (random.below(4) == 0) frame.head.resize(random.below(frame.head.size()));
    const std::size_t size = frame.head.size() + frame.body.size();
    heap_reset_peak();
    const std::size_t before = heap_bytes();
    const auto decoded = decode_envelope(frame.view());
    ASSERT_LE(heap_peak_bytes() - before, (8 + 32) * size + 65536);
    if (!decoded) continue;
    ++decoded_count;
    ASSERT_EQ(ReceivedFrame{encode(decoded->job, decoded->node, decoded->envelope)}, frame);
  }
  EXPECT_GT(decoded_count, 1000);
}

}  // namespace
}  // namespace starling::wire
