/// Temporary folders for tests.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace starling::program {

/// A new temporary folder, in which a test runs programs. The destructor removes it.
class Folder {
 public:
  /// Makes the folder in `parent`.
  explicit Folder(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "starling-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Names are relative to the folder.
  void write(const std::string& name, const std::string& content) const {
    std::ofstream{path_ / name, std::ios::binary} << content;
  }
  /// Returns the content of a file; empty if the file cannot be read.
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream stream{path_ / name, std::ios::binary};
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  [[nodiscard]] bool has(const std::string& name) const {
    return std::filesystem::exists(path_ / name);
  }
  /// Returns the names of the files and folders in the folder, sorted. Does not look into folders.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator{path_})
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace starling::program
