/// Writes the parts of a data set as files of a folder that appears as a whole or not at all.
/// Blocking.
#pragma once

#include <string>

#include "starling/base/result.hpp"
#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

/// The files are written in a folder beside the final one, which commit() renames. Without
/// commit(), the destructor removes them. commit() and the destructor: one thread.
class OutputFolder {
 public:
  /// Returns an Error if `path` exists, or cannot be made.
  static Result<OutputFolder> make(std::string path);

  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  /// The path of a part's file, "part-00007.txt", in the folder as it is now.
  [[nodiscard]] std::string part_path(Part part) const;
  /// Gives the folder its final name, once.
  Result<void> commit();

 private:
  OutputFolder(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}

  std::string path_;
  /// Empty once the folder has its final name.
  std::string temporary_;
};

/// The file of one part. An attempt after a failed one starts with an empty file. All functions
/// throw TaskFailure. Not thread-safe.
class PartFile {
 public:
  explicit PartFile(std::string path);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  /// Appends a line and its LF.
  void add_line(const std::string& line);
  /// Writes what is left, and waits until the disk has all of it.
  void finish();

 private:
  void flush();

  std::string path_;
  int descriptor_;
  std::string buffer_;
};

}  // namespace starling::flow
