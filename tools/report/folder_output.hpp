/// Makes the folder into which a command writes files. Blocking. One thread at a time.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/report/plot.hpp"

namespace starling::program {

/// Returns the names of a plot's files: data, script and picture.
[[nodiscard]] std::vector<std::string> plot_file_names(const std::string& name);

/// Returns `folder`/`name`.
[[nodiscard]] std::string path_inside(const std::string& folder, const std::string& name);

/// A folder for outputs. If prepare() made the folder, the destructor removes it again unless it
/// holds files.
class OutputFolder {
 public:
  /// Makes the folder if it does not exist. Refuses a folder that is one of `taken`, and one in
  /// which a file of `names` is one of `taken` or cannot be written.
  static Result<OutputFolder> prepare(const FileUse& folder, std::span<const std::string> names,
                                      std::span<const FileUse> taken);

  OutputFolder(OutputFolder&& other) noexcept : made_(std::exchange(other.made_, {})) {}
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

 private:
  explicit OutputFolder(std::string made) : made_(std::move(made)) {}
  static Result<OutputFolder> make(const std::string& path);

  /// The folder that was made; empty if it existed before.
  std::string made_;
};

/// Writes the data and the script of a plot.
[[nodiscard]] Result<void> write_plot_source(const std::string& folder, const Plot& plot);

}  // namespace starling::program
