/// Writes each part of a set as a file of a new folder. The folder gets its final name when all
/// files are complete, so other processes see it complete or not at all. Blocking.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "starling/base/result.hpp"
#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

/// A file descriptor, which the destructor closes.
class Descriptor {
 public:
  /// Takes ownership of `descriptor`. -1: this object has no descriptor.
  explicit Descriptor(int descriptor = -1) noexcept : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { (void)close(); }

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  /// Closes the descriptor, if there is one. Returns false if the system reports an error.
  [[nodiscard]] bool close() noexcept;

 private:
  int descriptor_;
};

/// The file of one part while it is written. If the folder has several writers, the destructor
/// removes a file that is not finished. If it has one writer, the file stays, and the next
/// open_part() for the part empties it. The functions throw TaskFailure if the file cannot be
/// written. Must not outlive its OutputFolder. Not thread-safe.
class PartFile {
 public:
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  /// Appends bytes.
  void add(std::string_view bytes);
  /// Appends `line` and a newline.
  void add_line(const std::string& line);
  /// Writes the buffered bytes, waits until the file is on the disk (fsync), closes it, and renames
  /// it to its final name. Also succeeds if another writer has finished this part and has committed
  /// the folder.
  void finish();

 private:
  friend class OutputFolder;
  /// Creates or empties the file `unfinished_name` in the folder with the descriptor `folder`.
  /// finish() renames it to `name`, which may be equal.
  PartFile(int folder, std::string folder_path, std::string name, std::string unfinished_name);

  void flush();
  [[nodiscard]] std::string path() const { return folder_path_ + "/" + name_; }

  /// The descriptor of the folder. The OutputFolder closes it.
  int folder_;
  std::string folder_path_;
  std::string name_;
  /// The name under which the file is written; empty once finish() has succeeded.
  std::string unfinished_name_;
  Descriptor file_;
  std::string buffer_;
};

/// A temporary folder beside the final path. commit() renames it to the final path. If no commit()
/// has succeeded, the destructor removes the temporary folder and its files, unless another writer
/// still uses it. Several threads may call open_part() at the same time, but not during commit().
class OutputFolder {
 public:
  /// Makes a temporary folder for one writer. Returns an Error if `path` exists, or if no temporary
  /// folder can be made beside it.
  static Result<OutputFolder> make(std::string path);
  /// Opens the temporary folder `path.starling-TOKEN`, and makes it if it does not exist. Several
  /// writers, in all processes that see the same file system, use this folder, and each of them
  /// calls commit(). Several writers may write the same part if they write the same bytes. If no
  /// commit() succeeds, the last writer that ends removes the temporary folder. Requires: no other
  /// set is written with this token.
  static Result<OutputFolder> shared(std::string path, const std::string& token,
                                     std::string extension = ".txt");
  /// Returns a token that no other call returns, in this process or in another one.
  [[nodiscard]] static std::string new_token();
  /// Removes the temporary folders of shared() that killed writers of `path` have left. A folder
  /// stays if one of its writers runs, or if the file system has no locks. Folders of make() stay
  /// too. Requires: `path` is absolute.
  static void remove_abandoned(std::string path);

  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  /// Makes the file of a part, such as "part-00007.txt". Throws TaskFailure if that fails.
  [[nodiscard]] PartFile open_part(Part part) const { return open_file(name_of(part)); }
  /// Makes the file `name`, which is not the file of a part. Throws TaskFailure if that fails.
  [[nodiscard]] PartFile open_file(const std::string& name) const;
  /// Returns the name of the file of a part.
  [[nodiscard]] std::string name_of(Part part) const { return part_name(part, extension_); }
  /// Returns a name such as "part-00007.txt".
  [[nodiscard]] static std::string part_name(Part part, const std::string& extension);
  /// Renames the temporary folder to the final path. Succeeds too if another writer has done so.
  /// Returns an Error if something else has the final path, or if the file of a part below `parts`
  /// is missing. Requires: all parts were written, and no earlier call has succeeded.
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
  /// True if the folder with the descriptor `folder` has the files of all parts below `parts`.
  [[nodiscard]] bool has_all_parts(int folder, Part parts) const;
  /// Removes the temporary folder, unless another writer still uses it or has renamed it.
  void discard();

  std::string path_;
  /// The path of the temporary folder; empty once commit() has renamed it.
  std::string temporary_;
  bool is_shared_;
  /// The extension of the names of the parts' files, with its dot.
  std::string extension_;
  Descriptor folder_;
  /// The lock file of a shared folder. Each writer holds a shared lock on it (flock), which the
  /// system releases when the writer's process ends. Not open if the folder has one writer.
  Descriptor lock_;
};

}  // namespace starling::flow
