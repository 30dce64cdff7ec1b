#include "starling/base/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace starling {
namespace {

/// The names of a control group's files `limit` and `used`, and the keys of its cached file pages
/// in its file `memory.stat`.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* inactive_file;
  const char* active_file;
};
constexpr GroupFiles version_1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file", "total_active_file"};
constexpr GroupFiles version_2{"memory.max", "memory.current", "inactive_file", "active_file"};

/// Reads a file with one number; nullopt if it says "max" or does not exist.
std::optional<double> read_number(const std::string& path) {
  std::ifstream file{path};
  double number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

/// Returns the number after `key` in a file of lines `key number`, or 0 if the key is missing.
double read_number_after(const std::string& path, const std::string& key) {
  std::ifstream file{path};
  std::string word;
  while (file >> word) {
    double number = 0;
    if (word == key && file >> number) return number;
    std::getline(file, word);
  }
  return 0;
}

/// Lowers `allowed` to what the control group of `folder` allows. The group counts cached pages of
/// files as used, but the kernel can reclaim them.
void apply_limit(GroupMemory& allowed, const std::string& folder, const GroupFiles& files) {
  const auto limit = read_number(folder + "/" + files.limit);
  if (!limit) return;
  const std::string stat = folder + "/memory.stat";
  const double cached =
      read_number_after(stat, files.inactive_file) + read_number_after(stat, files.active_file);
  const double used = read_number(folder + "/" + files.used).value_or(0) - cached;
  allowed.total = std::min(allowed.total, *limit);
  allowed.free = std::min(allowed.free, std::max(0.0, *limit - std::max(0.0, used)));
}

}  // namespace

GroupMemory control_group_memory(const std::string& groups, const std::string& root) {
  GroupMemory allowed;
  std::ifstream file{groups};
  std::string line;  // "4:memory:/path" in version 1, "0::/path" in version 2
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controller = line.substr(first + 1, second - first - 1);
    if (!controller.empty() && controller != "memory") continue;
    const GroupFiles& files = controller.empty() ? version_2 : version_1;
    const std::string mount = root + (controller.empty() ? "" : "/memory");
    // The limits of all groups above apply too. In a container, the path may be the host's; then
    // only the uppermost group has files here.
    for (std::string path = line.substr(second + 1);;
         path.erase(std::min(path.rfind('/'), path.size() - 1))) {
      apply_limit(allowed, mount + path, files);
      if (path.empty()) break;
    }
  }
  return allowed;
}

double memory_bytes() {
  const double machine =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return std::min(machine, control_group_memory().total);
}

double free_memory_bytes() {
  const double machine = read_number_after("/proc/meminfo", "MemAvailable:") * 1024;
  const double total = memory_bytes();
  return std::min({machine > 0 ? machine : total, control_group_memory().free, total});
}

std::size_t resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t total_pages = 0;
  std::size_t resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace starling
