/// The receiving end of one-sided writes: the region that one writer writes into.
///
/// With the provider shm of libfabric 1.17, a writer holds a lock of the receiver's endpoint while
/// it writes, and a writer that is killed then never unlocks it. So a reader has endpoints of its
/// own, its entries, and touches an entry only when the writer uses another.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "starling/actor/fabric/messages.hpp"
#include "starling/actor/fabric/process.hpp"
#include "starling/base/result.hpp"

namespace starling::fabric {

struct RegionReaderOptions {
  Provider provider = Provider::shm;
  /// The numeric IP address at which the writer reaches this process. Not used by shm.
  std::string host = "127.0.0.1";
  SlotLayout layout = {};
  /// The writer, if it is on this host.
  std::optional<ProcessClaim> writer = std::nullopt;
  /// Called when so many slots are free again that collect() returns a Release, on the thread that
  /// freed the last of them. Must be callable as long as a payload is held.
  std::function<void()> on_free = [] {};
};

/// A received payload.
struct Payload {
  std::span<const std::byte> bytes;
  /// Keeps `bytes` readable. The slot is free when the last copy of `owner` is gone.
  std::shared_ptr<const void> owner;
};

/// Owners of payloads may be copied and destroyed on any thread; otherwise not thread-safe.
class RegionReader {
 public:
  /// Returns an Error that says why the provider cannot be used, or that the writer is not on this
  /// host although the provider needs that.
  static Result<std::unique_ptr<RegionReader>> open(RegionReaderOptions options);
  /// Unregisters the region. Held payloads stay readable. The memory is unmapped when they are gone
  /// and the writer can write no more.
  ~RegionReader();
  RegionReader(const RegionReader&) = delete;
  RegionReader& operator=(const RegionReader&) = delete;

  [[nodiscard]] Offer offer() const;
  /// Completes the connection after the writer's RegionWriter::begin().
  void connect();

  /// Takes the payload that a ticket names. Returns an Error if the ticket is not valid: the slot
  /// or the entry does not exist, the length is 0 or too large, the slot was not given back, its
  /// flag is not the ticket's sequence number, or that number is not above the last ticket's.
  [[nodiscard]] Result<Payload> take(const Ticket& ticket);

  /// Returns a Release to be sent to the writer, with the slots that are free again; nullopt while
  /// these are less than a quarter of all slots.
  [[nodiscard]] std::optional<Release> collect();

  /// True unless the writer is a process of this host that has ended.
  [[nodiscard]] bool is_writer_alive() const;
  /// The bytes of the region.
  [[nodiscard]] std::size_t bytes() const;

 private:
  class Impl;
  explicit RegionReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The bytes of all regions of this process that are mapped, with those that outlive their reader
/// because a payload is held. Thread-safe.
[[nodiscard]] std::size_t mapped_bytes();

}  // namespace starling::fabric
