/// Makes the folder into which a command writes files. Blocking. Not thread-safe.
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

/// A folder for outputs. If prepare() made the folder, the destructor removes it again unless there
/// are files in it.
class ReportFolder {
 public:
  /// Makes the folder if it does not exist. `names` are the files that the command will write into
  /// it, and `taken` the command's other inputs and outputs. Returns an error if the folder or one
  /// of these files is one of `taken`, or if a file cannot be written.
  static Result<ReportFolder> prepare(const FileUse& folder, std::span<const std::string> names,
                                      std::span<const FileUse> taken);

  ReportFolder(ReportFolder&& other) noexcept
      : created_path_(std::exchange(other.created_path_, {})) {}
  ReportFolder& operator=(ReportFolder&&) = delete;
  ~ReportFolder();

 private:
  explicit ReportFolder(std::string created_path) : created_path_(std::move(created_path)) {}
  static Result<ReportFolder> make(const std::string& path);

  /// The path of the folder if make() created it; empty if it existed before.
  std::string created_path_;
};

/// Writes the data and the script of a plot into `folder`.
[[nodiscard]] Result<void> write_plot_source(const std::string& folder, const Plot& plot);

}  // namespace starling::program
