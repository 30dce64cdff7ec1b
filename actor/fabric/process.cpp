#include "starling/actor/fabric/process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <utility>

namespace starling::fabric {
namespace {

using Secret = std::array<std::uint8_t, 16>;

const Secret& own_secret() {
  static const Secret secret = [] {
    Secret drawn{};
    std::random_device device;
    for (std::uint8_t& byte : drawn) byte = static_cast<std::uint8_t>(device());
    return drawn;
  }();
  return secret;
}

}  // namespace

ProcessClaim own_claim() {
  const Secret& secret = own_secret();
  return {::getpid(), reinterpret_cast<std::uintptr_t>(secret.data()), secret};
}

Result<Process> Process::find(const ProcessClaim& claim) {
  const auto refuse = [&](const std::string& why) {
    return Error{"process " + std::to_string(claim.pid) + " cannot be written to: " + why};
  };
  if (claim.pid <= 0) return refuse("its pid is not valid");
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, claim.pid, 0));
  if (descriptor < 0) return refuse(std::string{"it is not on this host: "} + std::strerror(errno));
  Process process{descriptor};
  Secret found{};
  const iovec here{found.data(), found.size()};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(claim.address)),
                    found.size()};
  if (::process_vm_readv(claim.pid, &here, 1, &there, 1, 0) != static_cast<ssize_t>(found.size()))
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
  // The descriptor becomes readable when the process ends. A signal may interrupt the call.
  pollfd item{descriptor_, POLLIN, 0};
  return ::poll(&item, 1, 0) != 1;
}

}  // namespace starling::fabric
