#include "starling/actor/wire/pack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace starling::wire {
namespace {

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(std::byte(value));
  return bytes;
}

/// Returns a frame whose body consists of these parts.
Frame frame_of(Bytes head, const std::vector<Bytes>& body) {
  Frame frame;
  frame.head = std::move(head);
  for (const Bytes& part : body) {
    const auto owner = std::make_shared<const Bytes>(part);
    frame.body.push_back({owner, *owner});
  }
  return frame;
}

Bytes packed(const std::vector<Frame>& frames, BodyPart body_part = BodyPart::first) {
  const std::size_t size = std::accumulate(
      frames.begin(), frames.end(), pack_prefix_size,
      [&](std::size_t sum, const Frame& f) { return sum + packed_size(f, body_part); });
  Bytes pack(size);
  std::byte* at = write_pack_prefix(pack.data());
  for (const Frame& frame : frames) at = write_packed(frame, body_part, at);
  EXPECT_EQ(at, pack.data() + pack.size());
  return pack;
}

Bytes copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

const std::vector<Frame>& example_frames() {
  static const std::vector<Frame> frames{frame_of(bytes_of({1, 2, 3}), {}),
                                         frame_of(bytes_of({4}), {bytes_of({5, 6}), bytes_of({7})}),
                                         frame_of({}, {})};
  return frames;
}

void expect_example_frames(std::optional<PackReader> reader) {
  ASSERT_TRUE(reader);
  auto frame = reader->next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(copy_of(frame->head), bytes_of({1, 2, 3}));
  EXPECT_TRUE(frame->body.empty());
  frame = reader->next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(copy_of(frame->head), bytes_of({4}));
  EXPECT_EQ(copy_of(frame->body), bytes_of({5, 6, 7}));
  EXPECT_EQ(frame->body_owner, nullptr);
  frame = reader->next();
  ASSERT_TRUE(frame);
  EXPECT_TRUE(frame->head.empty());
  EXPECT_TRUE(frame->body.empty());
  EXPECT_FALSE(reader->next());
}

TEST(Pack, KeepsItsFrames) {
  const Bytes pack = packed(example_frames());
  expect_example_frames(PackReader::open(pack, {}));
}

TEST(Pack, MayHaveItsBodiesInTheSecondPart) {
  const Bytes pack = packed(example_frames(), BodyPart::second);
  expect_example_frames(PackReader::open(pack, bytes_of({5, 6, 7})));
}

TEST(Pack, YieldsItsCompleteFramesIfItIsTruncated) {
  const Bytes second_part = bytes_of({5, 6, 7});
  for (const BodyPart body_part : {BodyPart::first, BodyPart::second}) {
    const Bytes pack = packed(example_frames(), body_part);
    for (std::size_t size = 0; size < pack.size(); ++size) {
      auto reader = PackReader::open(std::span{pack}.first(size),
                                     body_part == BodyPart::second ? second_part : Bytes{});
      EXPECT_EQ(reader.has_value(), size >= pack_prefix_size) << size;
      if (!reader) continue;
      std::size_t frame_end = pack_prefix_size;
      std::size_t complete = 0;
      for (const Frame& frame : example_frames())
        if (frame_end += packed_size(frame, body_part); frame_end <= size) ++complete;
      std::size_t yielded = 0;
      while (reader->next()) ++yielded;
      EXPECT_EQ(yielded, complete) << size;
    }
  }
}

TEST(Pack, ReadsNothingPastItsEndIfLengthsAreWrong) {
  const Bytes second_part = bytes_of({5, 6, 7});
  for (const BodyPart body_part : {BodyPart::first, BodyPart::second})
    for (const std::size_t at : {pack_prefix_size, pack_prefix_size + 4})
      for (const int high : {1, 127, 255}) {
        Bytes pack = packed(example_frames(), body_part);
        pack[at + 3] = std::byte(high);
        auto reader = PackReader::open(pack, body_part == BodyPart::second ? second_part : Bytes{});
        ASSERT_TRUE(reader);
        EXPECT_FALSE(reader->next());
      }
}

TEST(Pack, YieldsItsCompleteFramesIfTheSecondPartIsShort) {
  const Bytes pack = packed(example_frames(), BodyPart::second);
  auto reader = PackReader::open(pack, bytes_of({5, 6}));
  ASSERT_TRUE(reader);
  EXPECT_TRUE(reader->next());
  EXPECT_FALSE(reader->next());
}

TEST(Pack, IsNotAFrameAndAFrameIsNotAPack) {
  const Frame frame = encode(1, 2, core::Envelope{});
  EXPECT_FALSE(PackReader::open(frame.head, {}));
  EXPECT_FALSE(kind_of({packed({frame}), {}}));
}

TEST(Pack, IsRefusedIfOfAnotherVersion) {
  Bytes pack = packed(example_frames());
  pack[2] = std::byte{version + 1};
  EXPECT_FALSE(PackReader::open(pack, {}));
  EXPECT_EQ(kind_of({pack, {}}).error().message, "a frame is of version " +
                                                     std::to_string(version + 1) +
                                                     "; valid here: " + std::to_string(version));
}

TEST(Pack, IsRefusedIfTooLong) {
  const auto opens = [](std::size_t head) {
    return PackReader::open(packed({frame_of(Bytes(head), {})}), {}).has_value();
  };
  EXPECT_TRUE(opens(pack_bytes_max - pack_prefix_size - 8));
  EXPECT_FALSE(opens(pack_bytes_max - pack_prefix_size - 7));
}

}  // namespace
}  // namespace starling::wire
