/// Tests one-sided writes within a process. fabric_order_test.cpp and fabric_kill_test.cpp have the
/// tests with two processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>

#include "starling/actor/fabric/libfabric.hpp"
#include "starling/actor/fabric/permission.hpp"
#include "starling/actor/fabric/process.hpp"
#include "tests/actor/fabric/test_link.hpp"

namespace starling::fabric {
namespace {

TEST(Fabric, ParsesProviders) {
  for (const Provider provider : {Provider::shm, Provider::tcp, Provider::verbs})
    EXPECT_EQ(parse_provider(print(provider)).value(), provider);
  EXPECT_EQ(parse_provider("udp").error().message,
            "unknown provider 'udp'; valid: shm, tcp, verbs");
}

/// Libraries of its providers handle these signals, and a program that crashes then has no core
/// dump.
TEST(Fabric, LeavesSignalsToTheProgram) {
  const auto handlers = [] {
    std::vector<void*> all;
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGINT, SIGTERM}) {
      struct sigaction action {};
      ::sigaction(signal, nullptr, &action);
      all.push_back(reinterpret_cast<void*>(action.sa_handler));
    }
    return all;
  };
  const auto before = handlers();  // a sanitizer handles some
  ASSERT_TRUE(libfabric()) << libfabric().error().message;
  EXPECT_EQ(handlers(), before);
  for (const Provider provider : {Provider::tcp, Provider::shm}) {
    SKIP_WITHOUT(provider);  // opens an endpoint
    EXPECT_EQ(handlers(), before) << print(provider);
  }
}

TEST(Fabric, SaysThatAMachineLacksAProvider) {
  const auto usable = check(Provider::verbs);
  if (usable) GTEST_SKIP() << "this machine has RDMA devices";
  EXPECT_NE(usable.error().message.find("provider verbs of libfabric cannot be used on this "
                                        "machine"),
            std::string::npos)
      << usable.error().message;
}

class FabricProviders : public testing::TestWithParam<Provider> {};
INSTANTIATE_TEST_SUITE_P(All, FabricProviders, testing::Values(Provider::shm, Provider::tcp),
                         [](const auto& test) { return std::string{print(test.param)}; });

/// Payloads of several parts and sizes arrive whole, in a slot, without a copy on this side.
TEST_P(FabricProviders, DeliverPayloads) {
  SKIP_WITHOUT(GetParam());
  const TestLink link{{4, 1U << 16U}, GetParam()};
  for (std::uint64_t i = 1; i <= 500; ++i) {
    const auto bytes = make_bytes(1 + i * 131 % 65536, i);
    const auto middle = bytes.size() / 3;
    const std::array parts{std::span{bytes}.first(middle), std::span{bytes}.subspan(middle)};
    const auto apart = make_bytes(7, i);
    const auto ticket = i % 2 == 0 ? link.writer->write(parts) : link.write(bytes);
    ASSERT_TRUE(ticket) << i;
    EXPECT_EQ(ticket->sequence, i);
    const auto payload = link.reader->take(*ticket);
    ASSERT_TRUE(payload) << payload.error().message;
    EXPECT_TRUE(std::ranges::equal(payload->bytes, bytes)) << i;
    EXPECT_EQ(payload->owner.get(), payload->bytes.data());
    link.pass_releases();
  }
}

TEST(Fabric, JoinsPartsThatAreNotAdjacent) {
  SKIP_WITHOUT(Provider::shm);
  const TestLink link;
  const auto first = make_bytes(100, 1);
  const auto second = make_bytes(3000, 2);
  const std::array<std::span<const std::byte>, 3> parts{second, first, second};
  const auto payload = link.reader->take(link.writer->write(parts).value()).value();
  ASSERT_EQ(payload.bytes.size(), 6100U);
  EXPECT_TRUE(std::ranges::equal(payload.bytes.first(3000), second));
  EXPECT_TRUE(std::ranges::equal(payload.bytes.subspan(3000, 100), first));
  EXPECT_TRUE(std::ranges::equal(payload.bytes.subspan(3100), second));
}

/// No payload changes while it is held, and a writer without a free slot writes nothing.
TEST(Fabric, OverwritesNoPayloadThatIsHeld) {
  SKIP_WITHOUT(Provider::shm);
  const TestLink link{{4, 4096}};
  std::vector<Payload> held;
  for (std::uint64_t i = 0; i < 4; ++i)
    held.push_back(link.reader->take(link.write(make_bytes(4096, i)).value()).value());
  EXPECT_FALSE(link.write(make_bytes(4096, 9)));
  link.pass_releases();
  EXPECT_FALSE(link.write(make_bytes(4096, 9)));
  for (std::uint64_t round = 0; round < 100; ++round) {
    const std::size_t freed = round % 4;
    held[freed] = {};
    link.pass_releases();
    held[freed] = link.reader->take(link.write(make_bytes(4096, round + 4)).value()).value();
    for (std::size_t slot = 0; slot < 4; ++slot) {
      const std::uint64_t seed = slot <= freed ? round + 4 - freed + slot : round + slot - freed;
      EXPECT_TRUE(std::ranges::equal(held[slot].bytes, make_bytes(4096, seed)))
          << round << " " << slot;
    }
    EXPECT_FALSE(link.write(make_bytes(4096, 9)));
  }
}

TEST(Fabric, KeepsPayloadsLongerThanTheInlet) {
  SKIP_WITHOUT(Provider::shm);
  Payload payload;
  {
    const TestLink link;
    payload = link.reader->take(link.write(make_bytes(5000, 3)).value()).value();
    EXPECT_EQ(mapped_bytes(), link.reader->bytes());
  }
  EXPECT_TRUE(std::ranges::equal(payload.bytes, make_bytes(5000, 3)));
  payload = {};
  EXPECT_EQ(mapped_bytes(), 0U);
}

/// The memory of a region that a living process may still write into is not used for anything else.
TEST(Fabric, ReservesTheMemoryOfALivingWriter) {
  SKIP_WITHOUT(Provider::shm);
  std::vector<std::unique_ptr<TestLink>> links;
  std::vector<std::uint64_t> addresses;
  for (int i = 0; i < 3; ++i) {
    links.push_back(std::make_unique<TestLink>(SlotLayout{1, 1U << 16U}));
    addresses.push_back(links.back()->reader->offer().entries[0].address);
    links.back()->reader.reset();
    EXPECT_EQ(mapped_bytes(), 0U);
  }
  const TestLink last{{1, 1U << 16U}};
  EXPECT_EQ(std::ranges::count(addresses, last.reader->offer().entries[0].address), 0);
  for (const auto& link : links) EXPECT_TRUE(link->write(make_bytes(5000, 3)));
  EXPECT_TRUE(
      std::ranges::equal(last.reader->take(last.write(make_bytes(5000, 4)).value()).value().bytes,
                         make_bytes(5000, 4)));
}

TEST(Fabric, TellsOfFreeSlotsTogether) {
  SKIP_WITHOUT(Provider::shm);
  int told = 0;
  const TestLink link{{8, 4096}, Provider::shm, [&] { ++told; }};
  std::vector<Payload> held;
  for (std::uint64_t i = 0; i < 3; ++i)
    held.push_back(link.reader->take(link.write(make_bytes(10, i)).value()).value());
  held[0] = {};
  EXPECT_EQ(told, 0);
  EXPECT_FALSE(link.reader->collect());
  held[1] = {};
  EXPECT_EQ(told, 1);
  const auto release = link.reader->collect();
  ASSERT_TRUE(release);
  EXPECT_EQ(release->slots, 3U);
  EXPECT_FALSE(link.reader->collect());
}

/// Tickets come from another process, so each of their fields may be anything.
TEST(Fabric, RefusesTicketsThatAreNotValid) {
  SKIP_WITHOUT(Provider::shm);
  const TestLink link{{4, 4096}};
  const auto refuses = [&](Ticket ticket, const std::string& what) {
    const auto taken = link.reader->take(ticket);
    ASSERT_FALSE(taken) << what;
    EXPECT_EQ(taken.error().message, "a ticket names " + what + ", which is not valid");
  };
  const Ticket ticket = link.write(make_bytes(100, 1)).value();
  Ticket bad = ticket;
  bad.slot = 4;
  refuses(bad, "slot 4");
  bad.slot = 65535;
  refuses(bad, "slot 65535");
  bad = ticket;
  bad.entry = 2;
  refuses(bad, "entry 2");
  bad = ticket;
  bad.length = 0;
  refuses(bad, "a length of 0 bytes");
  bad.length = 4097;
  refuses(bad, "a length of 4097 bytes");
  bad = ticket;
  bad.sequence = 2;
  refuses(bad, "write 2");
  bad.sequence = 0;
  refuses(bad, "write 0");
  bad = ticket;
  bad.slot = static_cast<std::uint16_t>((ticket.slot + 1) % 4);
  refuses(bad, "write 1");
  const auto payload = link.reader->take(ticket);
  ASSERT_TRUE(payload);
  refuses(ticket, "slot " + std::to_string(ticket.slot) + " before it was given back");
}

TEST(Fabric, RefusesOffersThatAreNotValid) {
  SKIP_WITHOUT(Provider::shm);
  const TestLink link;
  const std::shared_ptr<Endpoint> endpoint = Endpoint::open(Provider::shm).value();
  const auto refuses = [&](const std::function<void(Offer&)>& change, const std::string& why) {
    Offer offer = link.reader->offer();
    change(offer);
    const auto opened = RegionWriter::open(endpoint, Provider::shm, 1, offer, true);
    ASSERT_FALSE(opened) << why;
    EXPECT_NE(opened.error().message.find(why), std::string::npos) << opened.error().message;
  };
  refuses([](Offer& offer) { offer.provider = "tcp"; }, "the receiver uses provider 'tcp'");
  refuses([](Offer& offer) { offer.entries.clear(); }, "not valid");
  refuses([](Offer& offer) { offer.entries.resize(3, offer.entries[0]); }, "not valid");
  refuses([](Offer& offer) { offer.entries[0].name.clear(); }, "not valid");
  refuses([](Offer& offer) { offer.entries[0].name.assign(100'000, 'x'); }, "not valid");
  refuses([](Offer& offer) { offer.entries[1].name = "fi_shm://../etc/passwd"; }, "not valid");
  refuses([](Offer& offer) { offer.layout.slots = 0; }, "not valid");
  refuses([](Offer& offer) { offer.layout.slots = 65; }, "not valid");
  refuses([](Offer& offer) { offer.layout.slot_bytes = UINT32_MAX; }, "not valid");
  refuses([](Offer& offer) { offer.receiver.pid = -1; }, "its pid is not valid");
  refuses([](Offer& offer) { offer.receiver.pid = INT32_MAX; }, "not on this host");
  refuses([](Offer& offer) { ++offer.receiver.secret[0]; }, "not on this host");
  refuses([](Offer& offer) { offer.receiver.address = 8; }, "its address is not valid");
  refuses([](Offer& offer) { offer.receiver.address = 16; }, "does not permit it");
}

TEST(Fabric, ReportsAnEndpointThatDoesNotExist) {
  SKIP_WITHOUT(Provider::shm);
  const TestLink link;
  Offer offer = link.reader->offer();
  offer.entries[0].name = "fi_shm://starling-none";
  const auto writer =
      RegionWriter::open(Endpoint::open(Provider::shm).value(), Provider::shm, 1, offer, true)
          .value();
  writer->begin();
  EXPECT_FALSE(writer->connect());
  EXPECT_FALSE(writer->write({}));
}

TEST(Fabric, RefusesLayoutsAndWritersThatAreNotValid) {
  EXPECT_FALSE(RegionReader::open({.layout = {0, 4096}, .writer = own_claim()}));
  EXPECT_FALSE(RegionReader::open({.layout = {4, 0}, .writer = own_claim()}));
  EXPECT_FALSE(RegionReader::open({.writer = std::nullopt}));
  ProcessClaim wrong = own_claim();
  ++wrong.secret[3];
  EXPECT_FALSE(RegionReader::open({.writer = wrong}));
}

/// Otherwise a peer could guess the bytes behind the secret one by one.
TEST(Process, IsFoundAtTheAddressOfASecretOnly) {
  ProcessClaim claim = own_claim();
  EXPECT_TRUE(Process::find(claim));
  ++claim.address;
  std::memcpy(claim.secret.data(), reinterpret_cast<const void*>(claim.address),
              claim.secret.size());
  EXPECT_FALSE(Process::find(claim));
}

TEST(Process, PermitsWriters) {
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 0), 0);
  permit_memory_access();
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE), 1);
}

TEST(Process, EndsWithTheProcess) {
  ProcessClaim claim = own_claim();
  claim.pid = ::fork();
  ASSERT_GE(claim.pid, 0);
  if (claim.pid == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto child = Process::find(claim);
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_TRUE(child->is_alive());
  ::kill(claim.pid, SIGKILL);
  ::waitpid(claim.pid, nullptr, 0);
  EXPECT_FALSE(child->is_alive());
  EXPECT_FALSE(Process::find(claim));
}

}  // namespace
}  // namespace starling::fabric
