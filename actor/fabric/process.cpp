#include "starling/actor/fabric/process.hpp"

#include <poll.h>
#include <sodium.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <utility>

namespace starling::fabric {
namespace {

using Secret = std::array<std::uint8_t, 16>;

/// The secret in the process's claim, and the secret with which proofs are made. Process::find()
/// reads only at addresses that are multiples of a secret's size. If it read at any address, a peer
/// could find out the proof's secret byte by byte: it would send claims whose secret is at an
/// address where the peer knows all bytes but the last, with each value for the last byte.
struct alignas(sizeof(Secret)) OwnSecrets {
  Secret claim;
  Secret proof;
};

const OwnSecrets& own_secrets() {
  static const OwnSecrets secrets = [] {
    OwnSecrets drawn{};
    std::random_device device;
    for (Secret* secret : {&drawn.claim, &drawn.proof})
      for (std::uint8_t& byte : *secret) byte = static_cast<std::uint8_t>(device());
    return drawn;
  }();
  return secrets;
}

/// Reads `out` at `address` in the memory of another process. Returns false, and sets errno, if the
/// system does not permit it.
bool read_memory(pid_t process, std::uint64_t address, Secret& out) {
  const iovec here{out.data(), out.size()};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), out.size()};
  return ::process_vm_readv(process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(out.size());
}

HolderProof hash_of(const Secret& secret, std::span<const std::uint8_t> key) {
  HolderProof proof{};
  crypto_generichash(proof.data(), proof.size(), key.data(), key.size(), secret.data(),
                     secret.size());
  return proof;
}

}  // namespace

ProcessClaim own_claim() {
  const Secret& secret = own_secrets().claim;
  return {::getpid(), reinterpret_cast<std::uintptr_t>(secret.data()), secret};
}

std::optional<HolderProof> prove_holder(const ProcessClaim& claim,
                                        std::span<const std::uint8_t> key) {
  Secret secret{};
  if (!Process::find(claim) ||
      !read_memory(claim.pid, claim.address + offsetof(OwnSecrets, proof), secret))
    return std::nullopt;
  return hash_of(secret, key);
}

HolderProof expected_proof(std::span<const std::uint8_t> key) {
  return hash_of(own_secrets().proof, key);
}

Result<Process> Process::find(const ProcessClaim& claim) {
  const auto refuse = [&](const std::string& why) {
    return Error{"process " + std::to_string(claim.pid) + " cannot be written to: " + why};
  };
  if (claim.pid <= 0) return refuse("its pid is not valid");
  if (claim.address % sizeof(Secret) != 0) return refuse("its address is not valid");
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, claim.pid, 0));
  if (descriptor < 0) return refuse(std::string{"it is not on this host: "} + std::strerror(errno));
  Process process{descriptor};
  Secret found{};
  if (!read_memory(claim.pid, claim.address, found))
    return refuse(std::string{"the system does not permit it (process_vm_readv: "} +
                  std::strerror(errno) + "); valid: a process of the same user on the same host");
  if (found != claim.secret || !process.is_alive()) return refuse("it is not on this host");
  return process;
}

Process::Process(Process&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Process::~Process() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Process::is_alive() const {
  // The descriptor becomes readable when the process ends. If a signal interrupts the call, the
  // process counts as alive.
  pollfd item{descriptor_, POLLIN, 0};
  return ::poll(&item, 1, 0) != 1;
}

}  // namespace starling::fabric
