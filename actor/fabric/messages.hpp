/// The values by which a receiver and a writer agree on one-sided writes. Plain values. Values that
/// come from another process are untrusted: RegionReader and RegionWriter check them.
///
/// The receiver allots each writer a region of its memory:
///
///     one flag of 8 bytes for each slot, 64 bytes apart, padded to 4096 bytes; then the slots
///
/// The writer writes a payload into a free slot, then the sequence number of the write into the
/// slot's flag, and then sends the receiver a ticket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "starling/actor/fabric/process.hpp"
#include "starling/actor/fabric/provider.hpp"

namespace starling::fabric {

/// Identifies a region; drawn at random by the writer.
using LinkId = std::uint64_t;

inline constexpr std::uint32_t slots_max = 64;
inline constexpr std::uint32_t slot_bytes_max = std::uint32_t{1} << 30U;

struct SlotLayout {
  std::uint32_t slots = 8;
  /// The most bytes of a payload.
  std::uint32_t slot_bytes = std::uint32_t{8} << 20U;

  static constexpr auto fields(auto& m) { return std::tie(m.slots, m.slot_bytes); }
  [[nodiscard]] bool is_valid() const noexcept {
    return slots >= 1 && slots <= slots_max && slot_bytes >= 1 && slot_bytes <= slot_bytes_max;
  }
  [[nodiscard]] static constexpr std::size_t flag_offset(std::size_t slot) { return slot * 64; }
  [[nodiscard]] std::size_t payload_offset(std::size_t slot) const {
    constexpr std::size_t page = 4096;
    const std::size_t whole_pages = (std::size_t{slot_bytes} + page - 1) / page * page;
    return page + slot * whole_pages;
  }
  [[nodiscard]] std::size_t bytes() const { return payload_offset(slots); }
};
static_assert(SlotLayout::flag_offset(slots_max) <= 4096);

/// An endpoint of the receiver through which the writer writes, and the region as that endpoint has
/// registered it.
struct Entry {
  /// Endpoint::name().
  std::string name;
  /// The fields of the region's RemoteMemory.
  std::uint64_t address = 0;
  std::uint64_t key = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.name, m.address, m.key); }
};
inline constexpr std::size_t entries_max = 2;

/// Offers a writer a region.
struct Offer {
  std::string provider;
  ProcessClaim receiver;
  SlotLayout layout;
  std::vector<Entry> entries;
  /// The proof for the receiver's key, made with the writer's claim; zeros if the writer is on
  /// another host.
  HolderProof proof{};

  static constexpr auto fields(auto& m) {
    return std::tie(m.provider, m.receiver, m.layout, m.entries, m.proof);
  }
};

/// Says that a payload of `length` bytes is in a slot.
struct Ticket {
  LinkId link = 0;
  /// The number of the write, from 1. The slot's flag has the same number.
  std::uint64_t sequence = 0;
  std::uint32_t length = 0;
  std::uint16_t slot = 0;
  /// The index, in Offer::entries, of the entry through which the payload was written. The writer
  /// uses one entry at a time.
  std::uint16_t entry = 0;
};

/// Says which slots are free again (one bit for each), and the index of the entry that was drained
/// by Endpoint::progress(), or `entries_max` if none was.
struct Release {
  std::uint64_t slots = 0;
  std::uint16_t drained = entries_max;

  static constexpr auto fields(auto& m) { return std::tie(m.slots, m.drained); }
};

}  // namespace starling::fabric
