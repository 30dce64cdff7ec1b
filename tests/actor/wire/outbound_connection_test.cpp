// Tests how an OutboundConnection sends waiting frames, with a ZeroMQ ROUTER as the receiver.
#include "starling/actor/wire/outbound_connection.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "tests/actor/wire/examples.hpp"

namespace starling::wire {
namespace {

using namespace std::chrono_literals;
using FrameCounts = std::vector<std::size_t>;

constexpr std::size_t kib = 1024;

struct RouterServer {
  zmq::context_t context;
  zmq::socket_t router{context, zmq::socket_type::router};
  std::string address;

  RouterServer() {
    router.set(zmq::sockopt::rcvhwm, 1);
    router.set(zmq::sockopt::rcvtimeo, 10'000);
    router.bind("tcp://127.0.0.1:*");
    address = router.get(zmq::sockopt::last_endpoint);
  }

  /// Receives a message. Returns its parts without the sender's id, or no parts if no message
  /// arrives before the timeout.
  std::vector<zmq::message_t> receive() {
    std::vector<zmq::message_t> parts;
    zmq::message_t part;
    for (bool more = true; more; parts.push_back(std::move(part))) {
      if (!router.recv(part)) return {};
      more = part.more();
    }
    parts.erase(parts.begin());
    return parts;
  }
};

/// Returns a frame with a head of 10 bytes, each `number`, and a body of `size` bytes at `offset`
/// in `memory`.
Frame frame_of(int number, const std::shared_ptr<const Bytes>& memory, std::size_t offset,
               std::size_t size) {
  Frame frame;
  frame.head.assign(10, std::byte(number));
  if (size > 0) frame.body.push_back({memory, std::span{*memory}.subspan(offset, size)});
  return frame;
}

std::shared_ptr<const Bytes> memory_of(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(i / 977 % 251);
  return std::make_shared<const Bytes>(std::move(bytes));
}

/// Returns the frames in a message: the number in the head of each, and its body.
std::vector<std::pair<int, Bytes>> frames_in(const std::vector<zmq::message_t>& parts) {
  const auto bytes_of = [](const zmq::message_t& part) {
    return std::span{static_cast<const std::byte*>(part.data()), part.size()};
  };
  const auto second_part = parts.size() > 1 ? bytes_of(parts[1]) : std::span<const std::byte>{};
  std::vector<std::pair<int, Bytes>> frames;
  const auto add = [&](std::span<const std::byte> head, std::span<const std::byte> body) {
    frames.emplace_back(static_cast<int>(head[0]), Bytes(body.begin(), body.end()));
  };
  if (auto pack = PackReader::open(bytes_of(parts[0]), second_part))
    while (const auto frame = pack->next()) add(frame->head, frame->body);
  else
    add(bytes_of(parts[0]), second_part);
  return frames;
}

/// Adds frames with bodies of these sizes, contiguous in memory or each in its own block, and then
/// sends them. Expects that they arrive unchanged and in order. Returns the number of frames in
/// each message.
FrameCounts send_and_count(const std::vector<std::size_t>& sizes, bool is_contiguous = true,
                           const TransportOptions& options = {}) {
  RouterServer server;
  OutboundConnection connection{
      server.context, {server.address, std::nullopt}, options, TrafficClass::data};
  const auto all = memory_of(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
  std::size_t offset = 0;
  std::vector<Bytes> bodies;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto part = std::span{*all}.subspan(offset, sizes[i]);
    bodies.emplace_back(part.begin(), part.end());
    const auto own = std::make_shared<const Bytes>(bodies.back());
    EXPECT_TRUE(connection.add(is_contiguous ? frame_of(static_cast<int>(i), all, offset, sizes[i])
                                             : frame_of(static_cast<int>(i), own, 0, sizes[i])));
    offset += sizes[i];
  }
  FrameCounts messages;
  server.router.set(zmq::sockopt::rcvtimeo, 20);
  std::size_t received = 0;
  for (int i = 0; received < sizes.size() && i < 1000; ++i) {
    connection.flush();
    const auto parts = server.receive();
    if (parts.empty()) continue;
    EXPECT_LE(parts.size(), 2U);
    const auto frames = frames_in(parts);
    for (const auto& [number, body] : frames) {
      EXPECT_EQ(number, static_cast<int>(received));
      EXPECT_TRUE(body == bodies.at(received)) << received;
      ++received;
    }
    messages.push_back(frames.size());
  }
  EXPECT_EQ(received, sizes.size());
  EXPECT_FALSE(connection.is_waiting());
  return messages;
}

/// Returns the frame of a packet to member `to` with a tensor of 64 KiB in a compact form.
Frame compact_frame(core::MemberId to, bool is_resend) {
  static const auto message = [] {
    core::Slice values = slice_of<float>(std::vector<float>(16 * kib, 1.5F));
    values.is_compact = true;
    return core::make_peer_message(core::Value{0, 0, std::move(values)});
  }();
  core::Envelope envelope;
  envelope.to = to;
  envelope.traffic_class = TrafficClass::data;
  envelope.packet.sequence = 1;
  envelope.packet.payload = message;
  envelope.packet.is_resend = is_resend;
  return encode(1, 1, envelope);
}

TEST(OutboundConnection, DropsAResentFrameWhileTheFirstStillWaits) {
  const std::string address = RouterServer{}.address;
  RouterServer server;
  const TransportOptions options;
  OutboundConnection connection{
      server.context, {address, std::nullopt}, options, TrafficClass::data};
  EXPECT_TRUE(connection.add(compact_frame(1, false)));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(connection.add(compact_frame(1, true)));
  // The packet to another member has the same body, and does not wait yet.
  EXPECT_TRUE(connection.add(compact_frame(2, true)));
  server.router.bind(address);  // until now, all frames wait
  server.router.set(zmq::sockopt::rcvtimeo, 20);
  std::size_t frames = 0;
  for (int i = 0; i < 100; ++i) {
    connection.flush();
    if (const auto parts = server.receive(); !parts.empty()) frames += frames_in(parts).size();
  }
  EXPECT_EQ(frames, 2U);
}

TEST(OutboundConnection, JoinsLongFramesUpToAMebibyte) {
  const std::vector<std::size_t> ranges(10, 256 * kib);
  EXPECT_EQ(send_and_count(ranges), (FrameCounts{4, 4, 2}));
  EXPECT_EQ(send_and_count(ranges, false), (FrameCounts{4, 4, 2}));
  EXPECT_EQ(send_and_count({1024 * kib, 10 * kib}), (FrameCounts{1, 1}));
  EXPECT_EQ(send_and_count({1024 * kib + 1, 10 * kib, 10 * kib}), (FrameCounts{1, 2}));
}

TEST(OutboundConnection, PacksSmallFramesAndKeepsTheOrder) {
  EXPECT_EQ(send_and_count({0, 100, 0}), (FrameCounts{3}));
  EXPECT_EQ(send_and_count({0, 100, 256 * kib, 256 * kib, 50, 0}), (FrameCounts{2, 3, 1}));
  EXPECT_EQ(send_and_count({256 * kib, 0, 256 * kib}), (FrameCounts{1, 1, 1}));
}

TEST(OutboundConnection, JoinsNoMoreThanPartBytesMax) {
  const std::vector<std::size_t> ranges(4, 256 * kib);
  EXPECT_EQ(send_and_count(ranges, true, {.part_bytes_max = 512 * kib}), (FrameCounts{2, 2}));
}

TEST(JoinParts, CopiesNothingIfThePartsAreContiguous) {
  const auto all = memory_of(1024 * kib);
  std::vector<Attachment> parts;
  for (std::size_t i = 0; i < 4; ++i)
    parts.push_back({all, std::span{*all}.subspan(i * 256 * kib, 256 * kib)});
  const Attachment whole = join_parts(parts);
  EXPECT_EQ(whole.bytes.data(), all->data());
  EXPECT_EQ(whole.bytes.size(), all->size());

  std::ranges::reverse(parts);
  const Attachment copy = join_parts(parts);
  ASSERT_EQ(copy.bytes.size(), all->size());
  EXPECT_FALSE(std::ranges::any_of(
      parts, [&](const Attachment& part) { return part.bytes.data() == copy.bytes.data(); }));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(std::ranges::equal(copy.bytes.subspan(i * 256 * kib, 256 * kib), parts[i].bytes));
}

/// While the receiver receives nothing, the bytes that wait are bounded. They are sent when it
/// receives again.
TEST(OutboundConnection, KeepsFramesUntilZeroMqAcceptsThem) {
  RouterServer server;
  TransportOptions options;
  options.queue_bytes_max = 8 << 20U;
  OutboundConnection connection{
      server.context, {server.address, std::nullopt}, options, TrafficClass::data};
  const auto all = memory_of(256 * kib);
  int sent = 0;
  for (int tries = 0; tries < 1000; ++tries) {
    sent += connection.add(frame_of(sent, all, 0, 256 * kib)) ? 1 : 0;
    connection.flush();
    std::this_thread::sleep_for(1ms);
    if (sent == 200) break;
  }
  EXPECT_LT(sent, 200);
  EXPECT_TRUE(connection.is_waiting());
  server.router.set(zmq::sockopt::rcvtimeo, 100);
  int received = 0;
  for (int tries = 0; received < sent && tries < 1000; ++tries) {
    connection.flush();
    if (const auto parts = server.receive(); !parts.empty())
      for (const auto& [number, body] : frames_in(parts)) {
        EXPECT_EQ(number, received++);
        EXPECT_TRUE(body == *all);
      }
  }
  EXPECT_EQ(received, sent);
  EXPECT_FALSE(connection.is_waiting());
}

}  // namespace
}  // namespace starling::wire
