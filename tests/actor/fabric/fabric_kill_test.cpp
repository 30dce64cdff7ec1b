/// Kills processes while they write.
#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

#include "tests/actor/fabric/writer_process.hpp"

namespace starling::fabric {
namespace {

constexpr SlotLayout kill_layout{4, 4U << 20U};

/// Writes payloads without end. All bytes of payload n are n.
void write_without_end(RegionWriter& writer, Mail& mail) {
  std::vector<std::byte> bytes(kill_layout.slot_bytes);
  for (std::uint64_t sequence = 1;; ++sequence) {
    std::ranges::fill(bytes, static_cast<std::byte>(sequence));
    const std::span<const std::byte> part{bytes};
    std::optional<Ticket> ticket;
    while (!ticket) {
      while (const auto release = mail.releases.get()) writer.release(*release);
      ticket = writer.write({&part, 1});
    }
    mail.tickets.put(*ticket);
  }
}

/// Takes the payload of a ticket, and checks all of its bytes.
void take_one(RegionReader& reader, Mail& mail, const Ticket& ticket) {
  {
    const auto payload = reader.take(ticket);
    ASSERT_TRUE(payload) << payload.error().message;
    EXPECT_TRUE(std::ranges::all_of(payload->bytes, [&](std::byte byte) {
      return byte == static_cast<std::byte>(ticket.sequence);
    }));
  }
  if (const auto release = reader.collect()) mail.releases.put(*release);
}

/// Returns true if the payload of a slot has begun with bytes that no ticket has named.
bool is_half_written(const RegionReader& reader, std::uint64_t sequence) {
  const std::uint64_t base = reader.offer().entries[0].address;
  for (std::size_t slot = 0; slot < kill_layout.slots; ++slot) {
    const auto* const payload =
        reinterpret_cast<const std::byte*>(base + kill_layout.payload_offset(slot));
    const auto* const flag =
        reinterpret_cast<const std::uint64_t*>(base + SlotLayout::flag_offset(slot));
    if (payload[0] == static_cast<std::byte>(sequence + 1) && *flag != sequence + 1) return true;
  }
  return false;
}

/// A writer that is killed in the middle of a write harms neither the receiver nor another writer:
/// no payload is wrong, nobody waits, and the system keeps nothing of the killed process.
TEST(FabricKill, HarmsNobody) {
  SKIP_WITHOUT(Provider::shm);
  const TestLink other;
  std::mt19937 random{1};
  int half_written = 0;
  std::vector<pid_t> killed;
  constexpr int rounds = sanitized ? 15 : 60;
  for (int round = 0; round < rounds; ++round) {
    WriterProcess writer{kill_layout, write_without_end};
    std::uint64_t last = 0;
    const auto take_all = [&] {
      while (const auto ticket = writer.mail->tickets.get()) {
        take_one(*writer.reader, *writer.mail, *ticket);
        last = ticket->sequence;
      }
    };
    for (const std::uint64_t taken = 1 + random() % 6; last < taken;) take_all();
    ::usleep(static_cast<useconds_t>(random() % 800));
    killed.push_back(writer.pid);
    writer.kill();
    EXPECT_FALSE(writer.reader->is_writer_alive());
    take_all();
    half_written += is_half_written(*writer.reader, last) ? 1 : 0;
    const auto bytes = make_bytes(60'000, static_cast<std::uint64_t>(round));
    const auto ticket = other.write(bytes);
    ASSERT_TRUE(ticket);
    EXPECT_TRUE(std::ranges::equal(other.reader->take(*ticket).value().bytes, bytes));
    other.pass_releases();
  }
  EXPECT_EQ(mapped_bytes(), other.reader->bytes());
  EXPECT_GT(half_written, 0) << "no process was killed in the middle of a write";
  // Opening an endpoint removes what killed processes have left.
  const auto endpoint = Endpoint::open(Provider::shm);
  for (const auto& entry : std::filesystem::directory_iterator{"/dev/shm"})
    for (const pid_t process : killed)
      EXPECT_EQ(entry.path().string().find("-" + std::to_string(process) + ":"), std::string::npos);
}

/// A writer notices that the receiver was killed, and writes no more.
TEST(FabricKill, StopsTheWriterOfAKilledReceiver) {
  SKIP_WITHOUT(Provider::shm);
  std::array<int, 2> pipes{};
  ASSERT_EQ(::pipe(pipes.data()), 0);
  const ProcessClaim self = own_claim();
  const pid_t receiver = ::fork();
  ASSERT_GE(receiver, 0);
  if (receiver == 0) {
    const auto reader = RegionReader::open({.layout = {64, 4096}, .writer = self}).value();
    wire::Bytes bytes;
    wire::Encoder encoder{bytes};
    encoder(reader->offer());
    if (::write(pipes[1], bytes.data(), bytes.size()) < 0) ::_exit(1);
    ::pause();
  }
  std::array<std::byte, 4096> bytes{};
  const auto size = ::read(pipes[0], bytes.data(), bytes.size());
  ASSERT_GT(size, 0);
  Offer offer;
  wire::Decoder decoder{std::span{bytes}.first(static_cast<std::size_t>(size))};
  decoder(offer);
  const auto writer =
      RegionWriter::open(Endpoint::open(Provider::shm).value(), Provider::shm, 1, offer, false)
          .value();
  ::kill(receiver, SIGKILL);
  ::waitpid(receiver, nullptr, 0);
  EXPECT_TRUE(writer->is_broken());
  const std::span<const std::byte> part{bytes};
  EXPECT_FALSE(writer->write({&part, 1}));
  ::close(pipes[0]);
  ::close(pipes[1]);
}

}  // namespace
}  // namespace starling::fabric
