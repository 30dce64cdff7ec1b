/// Tests writes to endpoints that stop calling progress(). All endpoints are in this process.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/actor/fabric/test_link.hpp"
#include "tests/waiting.hpp"

namespace starling::fabric {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t memory_bytes = 4096;

/// An endpoint with memory that others write to. It answers only in a call of run().
struct Receiver {
  std::array<std::byte, memory_bytes> memory{};
  std::unique_ptr<Endpoint> endpoint = Endpoint::open(Provider::tcp).value();
  RemoteMemory remote = endpoint->register_memory(memory).value();

  /// Calls progress() during `action`.
  auto run(const auto& action) {
    std::atomic<bool> is_stopping = false;
    std::jthread thread{[&] {
      while (!is_stopping) endpoint->progress(1ms);
    }};
    const auto result = action();
    is_stopping = true;
    return result;
  }
  [[nodiscard]] bool has(std::uint64_t seed) const {
    return std::ranges::equal(memory, make_bytes(memory_bytes, seed));
  }
};

/// An endpoint that is connected to two receivers.
class FabricEndpoint : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT(Provider::tcp);
    one = std::make_unique<Receiver>();
    two = std::make_unique<Receiver>();
    writer = Endpoint::open(Provider::tcp).value();
    for (Receiver* receiver : {one.get(), two.get()}) {
      peers.push_back(writer->add(receiver->endpoint->name()).value());
      ASSERT_EQ(receiver->run([&] { return write(*receiver, 1, 5s); }), WriteResult::complete);
    }
  }

  /// Writes make_bytes(memory_bytes, seed), and remembers who owns them.
  WriteResult write(const Receiver& to, std::uint64_t seed, std::chrono::milliseconds timeout) {
    const auto bytes =
        std::make_shared<const std::vector<std::byte>>(make_bytes(memory_bytes, seed));
    owner = bytes;
    return writer->write(peers.at(&to == one.get() ? 0 : 1), *bytes, bytes, to.remote, 0, timeout);
  }

  std::unique_ptr<Receiver> one;
  std::unique_ptr<Receiver> two;
  std::shared_ptr<Endpoint> writer;
  std::vector<std::uint64_t> peers;
  std::weak_ptr<const void> owner;
};

/// The completion of a write that has timed out is not taken for that of the next write.
TEST_F(FabricEndpoint, CompletesNoWriteByTheCompletionOfAnother) {
  ASSERT_EQ(write(*one, 2, 50ms), WriteResult::failed);
  const auto late = owner;
  EXPECT_FALSE(late.expired());
  EXPECT_EQ(one->run([&] { return write(*two, 3, 1s); }), WriteResult::failed);
  EXPECT_TRUE(one->has(2));
  EXPECT_TRUE(late.expired());
  EXPECT_FALSE(two->has(3));
  EXPECT_FALSE(owner.expired());
  EXPECT_EQ(two->run([&] { return write(*two, 4, 5s); }), WriteResult::complete);
  EXPECT_TRUE(two->has(4));
  EXPECT_TRUE(owner.expired());
}

/// The error of a write that has timed out is not taken for that of the next write.
TEST_F(FabricEndpoint, FailsNoWriteByTheErrorOfAnother) {
  ASSERT_EQ(write(*one, 2, 50ms), WriteResult::failed);
  const auto late = owner;
  one.reset();
  for (std::uint64_t seed = 3; seed < 100 && !late.expired(); ++seed) {
    ASSERT_EQ(two->run([&] { return write(*two, seed, 5s); }), WriteResult::complete);
    EXPECT_TRUE(two->has(seed));
  }
  EXPECT_TRUE(late.expired());
}

TEST_F(FabricEndpoint, KeepsNoMoreLateWritesThanItsBound) {
  std::vector<std::weak_ptr<const void>> late;
  for (std::size_t i = 0; i < Endpoint::late_writes_max; ++i) {
    ASSERT_EQ(write(*one, 2, 1ms), WriteResult::failed) << i;
    late.push_back(owner);
  }
  EXPECT_EQ(write(*one, 3, 1ms), WriteResult::busy);
  EXPECT_TRUE(owner.expired());
  EXPECT_EQ(two->run([&] { return write(*two, 3, 1ms); }), WriteResult::busy);
  for (const auto& each : late) EXPECT_FALSE(each.expired());
  one->run([&] {
    for (int i = 0;
         i < 1000 && std::ranges::any_of(late, [](const auto& each) { return !each.expired(); });
         ++i)
      writer->progress(5ms);
    return true;
  });
  for (const auto& each : late) EXPECT_TRUE(each.expired());
  EXPECT_EQ(two->run([&] { return write(*two, 4, 5s); }), WriteResult::complete);
}

/// An endpoint that is closed lets go of the memory of its late writes.
TEST_F(FabricEndpoint, ForgetsLateWritesWhenItIsClosed) {
  ASSERT_EQ(write(*one, 2, 50ms), WriteResult::failed);
  EXPECT_FALSE(owner.expired());
  writer.reset();
  EXPECT_TRUE(owner.expired());
}

/// A flag of a link's beginning could come after that of a payload.
TEST_F(FabricEndpoint, ConnectsNoLinkWhoseBeginningIsLate) {
  const Offer offer{std::string{print(Provider::tcp)},
                    own_claim(),
                    {1, memory_bytes},
                    {{one->endpoint->name(), one->remote.address, one->remote.key}}};
  const auto link = RegionWriter::open(writer, Provider::tcp, test_link_id, offer, false).value();
  link->begin();
  EXPECT_TRUE(link->is_broken());
  EXPECT_FALSE(one->run([&] { return link->connect().ok(); }));
  // Both wait for a fraction of a second only, which a busy machine may exceed.
  EXPECT_TRUE(one->run([&] {
    return wait_until([&] {
      const auto other =
          RegionWriter::open(writer, Provider::tcp, test_link_id, offer, false).value();
      other->begin();
      return other->connect().ok();
    });
  }));
}

/// Errors of shm do not say which write has failed.
TEST(FabricEndpointShm, EndsWritesThatFail) {
  SKIP_WITHOUT(Provider::shm);
  std::vector<std::byte> memory(memory_bytes);
  const auto receiver = Endpoint::open(Provider::shm).value();
  const RemoteMemory good = receiver->register_memory(memory).value();
  const auto writer = Endpoint::open(Provider::shm).value();
  const auto peer = writer->add(receiver->name()).value();
  const auto bytes = std::make_shared<const std::vector<std::byte>>(make_bytes(memory_bytes, 1));
  const auto write = [&](const RemoteMemory& to) {
    return writer->write(peer, *bytes, bytes, to, 0);
  };
  EXPECT_EQ(write(good), WriteResult::busy);
  receiver->progress();
  const RemoteMemory bad{.address = 0, .key = good.key};
  for (std::size_t i = 0; i <= Endpoint::late_writes_max; ++i) {
    EXPECT_EQ(write(bad), WriteResult::failed);
    EXPECT_EQ(bytes.use_count(), 1);
  }
  EXPECT_EQ(write(good), WriteResult::complete);
  EXPECT_EQ(memory, *bytes);
}

}  // namespace
}  // namespace starling::fabric
