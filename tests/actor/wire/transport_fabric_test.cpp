/// Tests one-sided writes between transports. Both transports are in this process.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/fabric/region_reader.hpp"
#include "starling/actor/wire/fabric_links.hpp"
#include "tests/actor/fabric/test_link.hpp"
#include "tests/actor/wire/test_node.hpp"

namespace starling::wire {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t long_floats = 100'000;

TransportOptions with_fabric(fabric::Provider provider = fabric::Provider::shm) {
  TransportOptions options = with_keys();
  options.fabric.provider = provider;
  options.fabric.layout = {4, std::uint32_t{1} << 20U};
  return options;
}

/// Sends long bodies until one is written into the memory of the peer. Returns the number of frames
/// that it sent, which have the numbers 1 and so on.
std::uint64_t connect(TestNode& from, TestNode& to) {
  std::uint64_t sent = 0;
  EXPECT_TRUE(wait_until([&] {
    from.transport->send(to.peer(), TrafficClass::data, numbered_frame(++sent, long_floats));
    return from.transport->counts().written > 0;
  }));
  return sent;
}

class TransportFabric : public testing::TestWithParam<fabric::Provider> {};
INSTANTIATE_TEST_SUITE_P(All, TransportFabric,
                         testing::Values(fabric::Provider::shm, fabric::Provider::tcp),
                         [](const auto& test) { return std::string{fabric::print(test.param)}; });

/// Short and long bodies of both ways arrive in order, whole, and with their sender's key.
TEST_P(TransportFabric, KeepsTheOrderOfFrames) {
  SKIP_WITHOUT(GetParam());
  TestNode from{with_fabric(GetParam())};
  TestNode to{with_fabric(GetParam())};
  std::uint64_t count = connect(from, to);
  for (std::uint64_t i = 0; i < 300; ++i) {
    ++count;
    from.transport->send(to.peer(), TrafficClass::data,
                         numbered_frame(count, i % 5 == 0 ? 10 : 20'000 + i * 100));
    if (i % 20 == 0) {
      ASSERT_TRUE(to.wait_for(count));
    }
  }
  ASSERT_TRUE(to.wait_for(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(to.packets[i], i + 1);
    EXPECT_EQ(to.senders[i], from.key);
    EXPECT_TRUE(std::ranges::all_of(to.floats[i], [](float value) { return value == 1.5F; }));
  }
  EXPECT_EQ(to.refused, 0);
  EXPECT_EQ(to.transport->counts().refused, 0U);
  EXPECT_EQ(from.transport->counts().dropped, 0U);
  EXPECT_GT(to.transport->counts().read, 50U);
  EXPECT_EQ(to.transport->counts().read, from.transport->counts().written);
}

/// Both ends agree on regions at the same time, so their messages about that travel in packs.
TEST_P(TransportFabric, WritesInBothDirections) {
  SKIP_WITHOUT(GetParam());
  TestNode one{with_fabric(GetParam())};
  TestNode two{with_fabric(GetParam())};
  const auto send = [](TestNode& from, TestNode& to) {
    from.transport->send(to.peer(), TrafficClass::data, numbered_frame(1, long_floats));
    from.transport->send(to.peer(), TrafficClass::control, numbered_frame(2));
  };
  EXPECT_TRUE(wait_until([&] {
    send(one, two);
    send(two, one);
    return one.transport->counts().written > 0 && two.transport->counts().written > 0;
  }));
}

/// A body is copied once: from the sender's tensor into the slot, where the decoded tensor lies.
TEST(TransportFabricCopies, CopiesABodyOnce) {
  SKIP_WITHOUT(fabric::Provider::shm);
  TestNode from{with_fabric()};
  std::mutex mutex;
  std::vector<std::pair<const void*, const void*>> places;  // the owner of a body, and its tensor
  TransportOptions options = with_fabric();
  const auto key = options.keys->public_key;
  const auto to = Transport::open(options, [&](const IncomingFrame& incoming) {
                    const auto decoded = decode_envelope(incoming.frame);
                    const auto& message = **decoded->envelope.packet.payload;
                    const auto& value = std::get<core::Value>(message).value;
                    const std::lock_guard lock{mutex};
                    places.emplace_back(incoming.frame.body_owner.get(), value.bytes().data());
                  }).value();
  const Peer peer{to->address(), key};
  const auto counts = [&] { return from.transport->counts(); };
  std::size_t sent = 0;
  for (int i = 0; i < 20; ++i) {
    // While no slot is free, tensors travel by ZeroMQ.
    const std::uint64_t written = counts().written;
    ASSERT_TRUE(wait_until([&] {
      from.transport->send(peer, TrafficClass::data, numbered_frame(1, long_floats));
      ++sent;
      return counts().written > written;
    }));
    ASSERT_TRUE(wait_until([&] {
      const std::lock_guard lock{mutex};
      return places.size() == sent;
    }));
    const std::lock_guard lock{mutex};
    EXPECT_EQ(places.back().first, places.back().second) << "the tensor is not in the slot";
  }
}

/// While the receiver holds all slots, bodies travel by ZeroMQ, and no held tensor changes.
TEST(TransportFabricSlots, SendsByZeroMqWhenNoSlotIsFree) {
  SKIP_WITHOUT(fabric::Provider::shm);
  TestNode from{with_fabric()};
  std::mutex mutex;
  std::vector<core::Slice> held;
  std::atomic<bool> holds = false;
  TransportOptions options = with_fabric();
  const auto key = options.keys->public_key;
  const auto to = Transport::open(options, [&](const IncomingFrame& incoming) {
                    const auto decoded = decode_envelope(incoming.frame);
                    const auto& message = **decoded->envelope.packet.payload;
                    const std::lock_guard lock{mutex};
                    if (holds) held.push_back(std::get<core::Value>(message).value);
                  }).value();
  const Peer peer{to->address(), key};
  const auto send = [&](float value) {
    from.transport->send(
        peer, TrafficClass::data,
        numbered_frame(1, slice_of<float>(std::vector<float>(long_floats, value))));
  };
  const auto has_arrived = [&] { return to->counts().received == from.transport->counts().sent; };
  ASSERT_TRUE(wait_until([&] {
    send(0);
    return from.transport->counts().written > 0;
  }));
  ASSERT_TRUE(wait_until(has_arrived));
  holds = true;
  const std::uint64_t written = from.transport->counts().written;
  const auto held_count = [&] {
    const std::lock_guard lock{mutex};
    return held.size();
  };
  for (std::size_t i = 0; i < 12; ++i) {
    send(static_cast<float>(i));
    ASSERT_TRUE(wait_until([&] { return held_count() == i + 1; }));
  }
  EXPECT_LE(from.transport->counts().written, written + 4);
  EXPECT_GE(from.transport->counts().written, written + 3);
  {
    const std::lock_guard lock{mutex};
    ASSERT_EQ(held.size(), 12U);
    for (std::size_t i = 0; i < held.size(); ++i)
      EXPECT_TRUE(std::ranges::all_of(held[i].as<float>(), [&](float value) {
        return value == static_cast<float>(i);
      })) << i;
    holds = false;
    held.clear();
  }
  // The slots are free again.
  EXPECT_TRUE(wait_until([&] {
    send(0);
    return from.transport->counts().written > written + 8;
  }));
}

TEST(TransportFabricRefusals, NeedsKeys) {
  SKIP_WITHOUT(fabric::Provider::shm);
  TransportOptions options;
  options.fabric.provider = fabric::Provider::shm;
  const auto opened = Transport::open(options, [](const IncomingFrame&) {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "one-sided tensors need keys; valid: a key file, or no fabric");
}

/// Sends bodies for a while. Returns true if one was written.
bool writes(TestNode& from, TestNode& to) {
  for (std::uint64_t i = 1; i <= 20; ++i) {
    from.transport->send(to.peer(), TrafficClass::data, numbered_frame(i, long_floats));
    EXPECT_TRUE(to.wait_for(i));
  }
  return from.transport->counts().written > 0;
}

TEST(TransportFabricRefusals, OffersNothingToThoseThatAreNoMembers) {
  SKIP_WITHOUT(fabric::Provider::shm);
  TransportOptions options = with_fabric();
  std::atomic<int> asked = 0;
  options.fabric.is_member = [&](const Key&) {
    ++asked;
    return false;
  };
  TestNode from{with_fabric()};
  TestNode to{options};
  EXPECT_FALSE(writes(from, to));
  EXPECT_GE(asked, 1);
}

TEST(TransportFabricRefusals, OffersNothingToHoldersOfTheHandshakeKey) {
  SKIP_WITHOUT(fabric::Provider::shm);
  TransportOptions sender = with_fabric();
  TransportOptions options = with_fabric();
  options.handshake_keys = sender.keys;
  TestNode from{sender};
  TestNode to{options};
  EXPECT_FALSE(writes(from, to));
}

TEST(TransportFabricRefusals, SendsByZeroMqToPeersWithoutAFabric) {
  SKIP_WITHOUT(fabric::Provider::shm);
  TestNode from{with_fabric()};
  TestNode to{with_keys()};
  EXPECT_FALSE(writes(from, to));
  EXPECT_EQ(to.refused, 0);
}

TEST(TransportFabricRefusals, SendsByZeroMqToPeersWithAnotherProvider) {
  SKIP_WITHOUT(fabric::Provider::shm);
  SKIP_WITHOUT(fabric::Provider::tcp);
  TestNode from{with_fabric()};
  TestNode to{with_fabric(fabric::Provider::tcp)};
  EXPECT_FALSE(writes(from, to));
}

TEST(TransportFabricRefusals, OffersNoMoreMemoryThanItMay) {
  SKIP_WITHOUT(fabric::Provider::shm);
  TransportOptions options = with_fabric();
  options.fabric.region_bytes_max = 1U << 20U;
  TestNode from{with_fabric()};
  TestNode to{options};
  EXPECT_FALSE(writes(from, to));
  EXPECT_EQ(fabric::mapped_bytes(), 0U);
}

/// A member may send any ticket.
TEST(TransportFabricRefusals, DropsMessagesWhoseTicketIsNotValid) {
  SKIP_WITHOUT(fabric::Provider::shm);
  TestNode from{with_fabric()};
  TestNode to{with_fabric()};
  const std::uint64_t count = connect(from, to);
  ASSERT_TRUE(to.wait_for(count));
  for (const fabric::Ticket& ticket : {fabric::Ticket{}, fabric::Ticket{1, 1, 1, 65535, 65535},
                                       fabric::Ticket{UINT64_MAX, UINT64_MAX, UINT32_MAX, 0, 0}}) {
    Frame frame = numbered_frame(1);
    const TicketPrefix prefix = print_ticket(ticket);
    frame.head.insert(frame.head.begin(), prefix.begin(), prefix.end());
    from.transport->send(to.peer(), TrafficClass::control, std::move(frame));
  }
  // A frame with a ticket is a message of its own, so it must not be packed.
  EXPECT_TRUE(wait_until([&] { return to.transport->counts().refused + to.refused >= 1; }));
  from.transport->send(to.peer(), TrafficClass::data, numbered_frame(count + 1, long_floats));
  EXPECT_TRUE(to.wait_for_packet(count + 1));
}

/// A peer may pass on the offer of another one, with other addresses in it.
TEST(TransportFabricRefusals, WritesOnlyIntoARegionOfThePeerItself) {
  SKIP_WITHOUT(fabric::Provider::shm);
  FabricOptions options = with_fabric().fabric;
  options.address = "tcp://127.0.0.1:1";
  const Peer peer{"tcp://127.0.0.1:2", make_key_pair().public_key};
  const std::vector<std::byte> body(options.body_bytes_min);
  for (const bool is_own : {false, true}) {
    const auto writers = FabricWriters::open(options).value();
    EXPECT_FALSE(writers->write(peer, {{nullptr, body}}));
    FabricReaders readers{options, is_own ? *peer.key : make_key_pair().public_key, [] {}};
    for (const auto& [to, frame] : writers->take_frames())
      readers.on(make_key_pair().public_key, decode_fabric({frame.head, {}}).value());
    for (const auto& [to, frame] : readers.take_frames())
      writers->on(*peer.key, decode_fabric({frame.head, {}}).value());
    EXPECT_EQ(writers->has_frames(), is_own);
  }
}

/// The messages by which transports agree may hold anything.
TEST(TransportFabricRefusals, SurvivesMessagesThatAreNotValid) {
  SKIP_WITHOUT(fabric::Provider::shm);
  TestNode from{with_fabric()};
  TestNode to{with_fabric()};
  const std::uint64_t count = connect(from, to);
  fabric::Offer offer;
  offer.layout = {UINT32_MAX, UINT32_MAX};
  offer.entries.resize(50);
  fabric::ProcessClaim claim = fabric::own_claim();
  claim.address = 1;
  for (const FabricMessage& message :
       {FabricMessage{1, offer}, FabricMessage{1, WriterBegun{}}, FabricMessage{1, RegionReady{}},
        FabricMessage{1, fabric::Release{UINT64_MAX, 65535}}, FabricMessage{1, RegionRefused{"x"}},
        FabricMessage{1, AskRegion{"", "shm", claim}},
        FabricMessage{1, AskRegion{"tcp://1.2.3.4:5", "none", claim}},
        FabricMessage{1, AskRegion{std::string(100'000, 'x'), "shm", claim}}})
    from.transport->send(to.peer(), TrafficClass::control, encode(message));
  from.transport->send(to.peer(), TrafficClass::control, numbered_frame(count + 1));
  EXPECT_TRUE(to.wait_for_packet(count + 1));
}

}  // namespace
}  // namespace starling::wire
