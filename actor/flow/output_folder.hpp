/// Writes each part of a data set as a file of a new folder, which appears complete or not at all.
/// Blocking.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "starling/base/result.hpp"
#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

/// A descriptor of the system that the destructor closes.
class Descriptor {
 public:
  /// Takes a descriptor; -1 stands for none.
  explicit Descriptor(int descriptor = -1) noexcept : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { (void)close(); }

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  /// Returns false if the system reports an error.
  [[nodiscard]] bool close() noexcept;

 private:
  int descriptor_;
};

/// The file of one part. A file that is not finished is removed, or emptied by the next attempt.
/// All functions throw TaskFailure if the file cannot be written, as OutputFolder::open_part()
/// does. Not thread-safe.
class PartFile {
 public:
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  /// Appends bytes.
  void add(std::string_view bytes);
  /// Appends a line and its LF.
  void add_line(const std::string& line);
  /// Writes the bytes that are still buffered, waits until the disk has the whole file, closes it,
  /// and gives it its name.
  void finish();

 private:
  friend class OutputFolder;
  /// Writes the file `name` of the folder; first under `first_name`, which may be the same.
  PartFile(int folder, std::string folder_path, std::string name, std::string first_name);

  void flush();
  [[nodiscard]] std::string path() const { return folder_path_ + "/" + name_; }

  /// OutputFolder has it open.
  int folder_;
  std::string folder_path_;
  std::string name_;
  /// Empty once the file has its name.
  std::string first_name_;
  Descriptor file_;
  std::string buffer_;
};

/// Writes into a temporary folder beside the final path; commit() renames it. Without commit(), the
/// destructor removes the temporary folder and its files. Several threads may call open_part() at
/// once, but none while a thread calls commit().
class OutputFolder {
 public:
  /// For one writer. Returns an Error if `path` exists, or if no temporary folder can be made
  /// beside it.
  static Result<OutputFolder> make(std::string path);
  /// For several writers, in any processes that see the same folders: all of them use the temporary
  /// folder `path.starling-TOKEN`, and each of them calls commit(). Several of them may write one
  /// part, with the same lines. The last writer that ends without commit() removes the temporary
  /// folder. Requires: no other data set is written with this token.
  static Result<OutputFolder> shared(std::string path, const std::string& token,
                                     std::string extension = ".txt");
  /// Returns a token that no other call returns, in this process or in another one.
  [[nodiscard]] static std::string new_token();
  /// Removes the temporary folders that killed writers of `path` have left. A folder stays if one
  /// of its writers runs, or if the file system has no locks.
  static void remove_abandoned(std::string path);

  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  /// Makes the file of a part, such as "part-00007.txt". Throws TaskFailure if that fails.
  [[nodiscard]] PartFile open_part(Part part) const { return open_file(name_of(part)); }
  /// Makes another file, as open_part() does.
  [[nodiscard]] PartFile open_file(const std::string& name) const;
  /// Returns the name of the file of a part.
  [[nodiscard]] std::string name_of(Part part) const { return part_name(part, extension_); }
  /// Returns a name such as "part-00007.txt".
  [[nodiscard]] static std::string part_name(Part part, const std::string& extension);
  /// Gives the folder its final name, or finds that another writer has done so. Returns an Error if
  /// that name is taken, or if the file of one of the `parts` parts is missing. Requires: all parts
  /// were written, and no earlier call has succeeded.
  Result<void> commit(Part parts);

 private:
  OutputFolder(std::string path, std::string temporary, bool is_shared, std::string extension)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        is_shared_(is_shared),
        extension_(std::move(extension)) {}

  /// Opens the temporary folder. Returns an Error if that fails.
  Result<void> open();
  /// True if `name` is the path of the folder that this object has open.
  [[nodiscard]] bool has_name(const std::string& name) const;
  /// True if the folder, which is open, has the files of all parts.
  [[nodiscard]] bool has_all_parts(int folder, Part parts) const;
  /// Removes the temporary folder, unless another writer still uses it or has renamed it.
  void discard();

  std::string path_;
  /// Empty once the folder has its final name.
  std::string temporary_;
  bool is_shared_;
  /// The end of the names of parts' files, with its dot.
  std::string extension_;
  Descriptor folder_;
  /// Every writer of a shared folder has a lock of this file until it ends in any way.
  Descriptor lock_;
};

}  // namespace starling::flow
