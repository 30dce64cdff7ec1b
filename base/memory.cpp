#include "starling/base/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace starling {
namespace {

/// Reads a number of the control group that this process, as in a container, sees as its own.
std::optional<double> group_figure(const char* name) {
  std::ifstream file{std::string{"/sys/fs/cgroup/"} + name};
  double bytes = 0;
  if (!(file >> bytes)) return std::nullopt;  // "max", or no such file
  return bytes;
}

/// Returns the number behind `key` in a file of lines `key number`, or 0 where the key is missing.
double figure_in(const char* path, const std::string& key) {
  std::ifstream file{path};
  std::string word;
  while (file >> word) {
    double number = 0;
    if (word == key && file >> number) return number;
    std::getline(file, word);
  }
  return 0;
}

/// Bytes that the control group still allows. The group counts cached pages of files as taken, but
/// the kernel can reclaim them.
std::optional<double> group_free() {
  const auto limit = group_figure("memory.max");
  const auto taken = group_figure("memory.current");
  if (!limit || !taken) return limit;
  constexpr const char* path = "/sys/fs/cgroup/memory.stat";
  const double files = figure_in(path, "inactive_file") + figure_in(path, "active_file");
  return std::max(0.0, *limit - *taken + files);
}

}  // namespace

double memory_bytes() {
  const double machine =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return std::min(machine, group_figure("memory.max").value_or(machine));
}

double free_memory_bytes() {
  const double machine = figure_in("/proc/meminfo", "MemAvailable:") * 1024;
  const double all = memory_bytes();
  return std::min({machine > 0 ? machine : all, group_free().value_or(all), all});
}

std::size_t resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace starling
