/// Other processes on this host. libfabric's provider `shm` writes into their memory. It must not
/// write once a process has ended, even if another process has got its pid.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>

#include "starling/base/result.hpp"

namespace starling::fabric {

/// Proof that a process runs on this host: its pid, a random secret, and the secret's address in
/// its memory. A process that can read the secret there is on the same host. A plain value.
struct ProcessClaim {
  std::int32_t pid = 0;
  std::uint64_t address = 0;
  std::array<std::uint8_t, 16> secret{};

  static constexpr auto fields(auto& m) { return std::tie(m.pid, m.address, m.secret); }
};

/// Returns the claim of the calling process. Thread-safe.
[[nodiscard]] ProcessClaim own_claim();

/// Shows that the holder of a public key runs on the host of a process, and as its user. A claim
/// does not show that: whoever has received one can pass it on.
using HolderProof = std::array<std::uint8_t, 16>;
/// Returns the proof for the holder of `key`: a hash of the key and of a second secret in the
/// memory of the process of `claim`, which no message holds. Returns nothing if this process cannot
/// read that memory.
[[nodiscard]] std::optional<HolderProof> prove_holder(const ProcessClaim& claim,
                                                      std::span<const std::uint8_t> key);
/// Returns the proof that the holder of `key` must send to this process. Thread-safe.
[[nodiscard]] HolderProof expected_proof(std::span<const std::uint8_t> key);

/// A handle of a process on this host, into whose memory this process may write. Thread-safe.
class Process {
 public:
  /// Reads the secret in the memory of the process. Returns an Error if the process is not on this
  /// host, or if the system does not let this process write into the memory of the other.
  static Result<Process> find(const ProcessClaim& claim);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  /// False once the process has ended, even if another process has got its pid.
  [[nodiscard]] bool is_alive() const;

 private:
  explicit Process(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace starling::fabric
