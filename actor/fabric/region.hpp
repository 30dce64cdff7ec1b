/// Internal to actor/fabric: memory that another process may write into.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "starling/actor/fabric/process.hpp"

namespace starling::fabric {

/// Zeroed memory. If the writer still runs when a Region is destroyed, the destructor gives the
/// pages back but keeps the addresses reserved, so that a late write harms nothing. Thread-safe to
/// destroy.
class Region {
 public:
  /// Returns null if there is no memory. `writer` is the process that writes into the region;
  /// absent if it is not on this host.
  static std::unique_ptr<Region> map(std::size_t bytes, std::optional<Process> writer);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool is_writer_alive() const { return !writer_ || writer_->is_alive(); }

 private:
  Region(std::span<std::byte> bytes, std::optional<Process> writer);

  std::span<std::byte> bytes_;
  std::optional<Process> writer_;
};

/// Unmaps the addresses that were kept reserved for writers that have ended.
void unmap_retained();

}  // namespace starling::fabric
