/// Writes each part of a data set as a file of a new folder, which appears complete or not at all.
/// Blocking.
#pragma once

#include <string>
#include <utility>

#include "starling/base/result.hpp"
#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

/// Writes into a temporary folder beside the final path; commit() renames it. Without commit(), the
/// destructor removes the temporary folder and its files. Several threads may call part_path() at
/// once, but none while a thread calls commit().
class OutputFolder {
 public:
  /// Returns an Error if `path` exists, or if no temporary folder can be made beside it.
  static Result<OutputFolder> make(std::string path);

  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  /// The path of a part's file, such as "part-00007.txt": in the temporary folder before commit(),
  /// and in the final one after it.
  [[nodiscard]] std::string part_path(Part part) const;
  /// Gives the folder its final name. Returns an Error if that name is taken meanwhile. Requires:
  /// no earlier call has succeeded.
  Result<void> commit();

 private:
  OutputFolder(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}

  std::string path_;
  /// Empty once the folder has its final name.
  std::string temporary_;
};

/// The file of one part. The constructor empties a file that a failed attempt has left. All
/// functions throw TaskFailure if the file cannot be written, as the constructor does. Not
/// thread-safe.
class PartFile {
 public:
  explicit PartFile(std::string path);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  /// Appends a line and its LF.
  void add_line(const std::string& line);
  /// Writes the lines that are still buffered, waits until the disk has the whole file, and closes
  /// it.
  void finish();

 private:
  void flush();

  std::string path_;
  int descriptor_;
  std::string buffer_;
};

}  // namespace starling::flow
