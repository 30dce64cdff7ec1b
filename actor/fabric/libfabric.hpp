/// Internal. Loads libfabric when it is first used. Programs do not link it, because libraries on
/// which Debian's libfabric depends (libpsm2, libinfinipath) take 0.2 s to load, and handle
/// signals: a program that crashes would end with exit code 1 and without a core dump.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "starling/base/result.hpp"

struct fi_info;
struct fi_fabric_attr;
struct fid_fabric;

namespace starling::fabric {

/// Saves the process's handlers of the signals below, and restores them when it is destroyed:
/// libraries of libfabric's providers replace the handlers when they are loaded, and shm does so
/// when its first endpoint is opened. Only one object exists at a time.
class KeptHandlers {
 public:
  KeptHandlers() : lock_(mutex_) {
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], nullptr, &kept_[i]);
  }
  KeptHandlers(const KeptHandlers&) = delete;
  KeptHandlers& operator=(const KeptHandlers&) = delete;
  ~KeptHandlers() {
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &kept_[i], nullptr);
  }

 private:
  static inline std::mutex mutex_;
  static constexpr std::array signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGINT, SIGTERM};
  const std::lock_guard<std::mutex> lock_;
  std::array<struct sigaction, signals.size()> kept_{};
};

/// The functions of libfabric that are used here. All others are inline.
struct Libfabric {
  std::uint32_t (*version)() = nullptr;
  int (*getinfo)(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                 const fi_info* hints, fi_info** info) = nullptr;
  void (*freeinfo)(fi_info* info) = nullptr;
  fi_info* (*dupinfo)(const fi_info* info) = nullptr;
  int (*fabric)(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) = nullptr;
  const char* (*strerror)(int code) = nullptr;
};

/// Returns libfabric, or an Error that says why it cannot be loaded. The first call loads it and
/// takes a quarter of a second. Thread-safe.
[[nodiscard]] const Result<Libfabric>& libfabric();

}  // namespace starling::fabric
