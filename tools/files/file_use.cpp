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

/// Returns true if the file `path` is, or would be, in a subfolder of `folder`. Ignores subfolders
/// whose names begin with a dot, as the reader of images does.
bool is_in_subfolder(const std::string& path, const std::string& folder) {
  const std::filesystem::path parent = std::filesystem::path{resolve_links(path)}.parent_path();
  std::error_code fault;
  for (std::filesystem::directory_iterator entry{folder, fault}, end; !fault && entry != end;
       entry.increment(fault)) {
    std::error_code ignored;
    if (!entry->path().filename().string().starts_with('.') && entry->is_directory(ignored) &&
        std::filesystem::equivalent(entry->path(), parent, ignored))
      return true;
  }
  return false;
}

}  // namespace

Result<void> check_no_conflict(const FileUse& output, std::span<const FileUse> taken) {
  for (const FileUse& other : taken) {
    if (!output.path.empty() && is_in_subfolder(output.path, other.path))
      return Error{output.location + ": '" + output.path + "' is in a subfolder of " +
                   other.location + ", '" + other.path + "'; valid: a file elsewhere"};
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
