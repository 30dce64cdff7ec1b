#include "starling/app/file_use.hpp"

#include <filesystem>
#include <fstream>

#include "starling/app/file_output.hpp"

namespace starling::app {
namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code fault;
  if (a.empty() || b.empty() || std::filesystem::is_other(std::filesystem::status(a, fault)))
    return false;
  return std::filesystem::equivalent(a, b, fault) || resolved(a) == resolved(b);
}

}  // namespace

Result<void> check_free(const FileUse& output, std::span<const FileUse> taken) {
  for (const FileUse& other : taken) {
    if (!is_same_file(output.path, other.path)) continue;
    const std::string spelt = other.path == output.path ? "" : ", '" + other.path + "'";
    return Error{output.place + ": '" + output.path + "' is also the file of " + other.place +
                 spelt};
  }
  return {};
}

Result<std::string> small_file(const std::string& path, const std::string& valid) {
  constexpr std::size_t bytes_max = 1U << 20U;
  std::error_code fault;
  const auto status = std::filesystem::status(path, fault);
  if (!std::filesystem::exists(status)) return Error{path + ": no such file"};
  if (std::filesystem::is_directory(status)) return Error{path + ": is a directory"};
  std::ifstream stream{path, std::ios::binary};
  std::string text(bytes_max + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.eof() && stream.fail()) return Error{path + ": cannot be read"};
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > bytes_max) return Error{path + ": is larger than 1 MiB; valid: " + valid};
  return text;
}

}  // namespace starling::app
