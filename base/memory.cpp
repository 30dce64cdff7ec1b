#include "starling/base/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace starling {
namespace {

/// Reads a file with one number from this process's control group, which limits a container's
/// memory; nullopt if it says "max" or does not exist.
std::optional<double> read_cgroup_bytes(const char* name) {
  std::ifstream file{std::string{"/sys/fs/cgroup/"} + name};
  double bytes = 0;
  if (!(file >> bytes)) return std::nullopt;
  return bytes;
}

/// Returns the number after `key` in a file of lines `key number`, or 0 if the key is missing.
double read_number_after(const char* path, const std::string& key) {
  std::ifstream file{path};
  std::string word;
  while (file >> word) {
    double number = 0;
    if (word == key && file >> number) return number;
    std::getline(file, word);
  }
  return 0;
}

/// Returns the bytes that the control group still allows; nullopt if it sets no limit. The group
/// counts cached pages of files as used, but the kernel can reclaim them.
std::optional<double> free_cgroup_bytes() {
  const auto limit = read_cgroup_bytes("memory.max");
  const auto used = read_cgroup_bytes("memory.current");
  if (!limit || !used) return limit;
  constexpr const char* path = "/sys/fs/cgroup/memory.stat";
  const double cached_files =
      read_number_after(path, "inactive_file") + read_number_after(path, "active_file");
  return std::max(0.0, *limit - *used + cached_files);
}

}  // namespace

double memory_bytes() {
  const double machine =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return std::min(machine, read_cgroup_bytes("memory.max").value_or(machine));
}

double free_memory_bytes() {
  const double machine = read_number_after("/proc/meminfo", "MemAvailable:") * 1024;
  const double total = memory_bytes();
  return std::min({machine > 0 ? machine : total, free_cgroup_bytes().value_or(total), total});
}

std::size_t resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t total_pages = 0;
  std::size_t resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace starling
