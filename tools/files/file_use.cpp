#include "starling/tools/files/file_use.hpp"

#include <filesystem>

#include "starling/base/input.hpp"
#include "starling/tools/files/file_output.hpp"

namespace starling::program {
namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code fault;
  if (a.empty() || b.empty() || std::filesystem::is_other(std::filesystem::status(a, fault)))
    return false;
  return std::filesystem::equivalent(a, b, fault) || resolve_links(a) == resolve_links(b);
}

}  // namespace

Result<void> check_no_conflict(const FileUse& output, std::span<const FileUse> taken) {
  for (const FileUse& other : taken) {
    if (!is_same_file(output.path, other.path)) continue;
    const std::string other_path = other.path == output.path ? "" : ", '" + other.path + "'";
    return Error{output.location + ": '" + output.path + "' is also the file of " + other.location +
                 other_path};
  }
  return {};
}

Result<std::string> read_small_file(const std::string& path, const std::string& valid) {
  constexpr std::size_t bytes_max = 1U << 20U;
  return read_text(path, bytes_max, valid);
}

}  // namespace starling::program
