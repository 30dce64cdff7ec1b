/// Checks that no flag is seen before its payload. For tests.
#pragma once

#include <gtest/gtest.h>

#include "tests/actor/fabric/writer_process.hpp"

namespace starling::fabric {

/// The words of write `sequence`: 1 to 64 of them.
inline std::size_t words_of(std::uint64_t sequence) { return 1 + sequence * 7 % 64; }

/// Has another process write `transfers` payloads, looks at their flags all the time, and compares
/// each payload with what it should be as soon as its flag is there.
inline void expect_no_flag_before_its_payload(std::uint64_t transfers) {
  SKIP_WITHOUT(Provider::shm);
  const SlotLayout layout{64, 4096};
  const WriterProcess process{
      layout, [=](RegionWriter& writer, Mail& mail) {
        std::array<std::uint64_t, 64> words{};
        for (std::uint64_t sequence = 1; sequence <= transfers; ++sequence) {
          words.fill(sequence);
          const auto bytes = std::as_bytes(std::span{words}.first(words_of(sequence)));
          std::optional<Ticket> ticket;
          while (!ticket) {
            while (const auto release = mail.releases.get()) writer.release(*release);
            ticket = writer.write({&bytes, 1});
            if (!ticket) ::usleep(20);
          }
          mail.tickets.put(*ticket);
        }
        ::pause();
      }};
  const std::uint64_t base = process.reader->offer().entries[0].address;
  std::uint64_t early = 0;
  for (std::uint64_t sequence = 1; sequence <= transfers; ++sequence) {
    std::size_t slot = 0;
    const auto is_set = [&] {
      auto& flag = *reinterpret_cast<std::uint64_t*>(base + SlotLayout::flag_offset(slot));
      return std::atomic_ref{flag}.load(std::memory_order_acquire) == sequence;
    };
    for (std::size_t looks = 1; !is_set(); ++looks) {
      slot = (slot + 1) % layout.slots;
      if (looks % 4096 == 0) ::usleep(20);
    }
    const auto* const words =
        reinterpret_cast<const volatile std::uint64_t*>(base + layout.payload_offset(slot));
    for (std::size_t i = 0; i < words_of(sequence); ++i)
      if (words[i] != sequence) ++early;
    std::optional<Ticket> ticket;
    while (!(ticket = process.mail->tickets.get())) continue;
    ASSERT_EQ(ticket->slot, slot);
    ASSERT_TRUE(process.reader->take(*ticket));  // and frees the slot
    if (const auto release = process.reader->collect()) process.mail->releases.put(*release);
  }
  EXPECT_EQ(early, 0U);
}

}  // namespace starling::fabric
