/// The writing end of one-sided writes: writes into the region that a receiver has offered.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "starling/actor/fabric/endpoint.hpp"
#include "starling/actor/fabric/messages.hpp"
#include "starling/base/result.hpp"

namespace starling::fabric {

/// Not thread-safe; writers that share an endpoint may not be used at the same time.
class RegionWriter {
 public:
  /// Prepares to write through `endpoint` into an offered region. Returns an Error if the offer is
  /// not valid, or if the receiver is not on this host and the provider is shm or `may_leave_host`
  /// is false.
  static Result<std::unique_ptr<RegionWriter>> open(std::shared_ptr<Endpoint> endpoint,
                                                    Provider provider, LinkId link,
                                                    const Offer& offer, bool may_leave_host);
  ~RegionWriter();
  RegionWriter(const RegionWriter&) = delete;
  RegionWriter& operator=(const RegionWriter&) = delete;

  /// Starts to connect to the receiver's endpoints (Offer::entries). The receiver then has to call
  /// RegionReader::connect().
  void begin();
  /// Completes what begin() has started, after RegionReader::connect() has returned. Returns an
  /// Error if writes do not work.
  [[nodiscard]] Result<void> connect();

  /// Writes the parts, one after the other, into a free slot, and then the slot's flag. Returns
  /// nothing if there is no free slot, if no entry can take the writes before the receiver drains
  /// it, if the parts are empty, too long or in more than 16 places of memory, or if the write
  /// fails. A failed write may read the parts until the endpoint is closed: `owner` keeps their
  /// memory until then. If `owner` is null, their memory must outlive the endpoint.
  [[nodiscard]] std::optional<Ticket> write(std::span<const std::span<const std::byte>> parts,
                                            const std::shared_ptr<const void>& owner = nullptr);

  /// Takes slots back that the receiver has freed.
  void release(const Release& release);

  /// True if nothing can be written any more: the receiver has ended, a write has failed, or for
  /// `stuck_after` all slots have been in use or no entry could take a payload.
  [[nodiscard]] bool is_broken() const;
  static constexpr std::chrono::seconds stuck_after{10};

 private:
  class Impl;
  explicit RegionWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace starling::fabric
