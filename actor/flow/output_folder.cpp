#include "starling/actor/flow/output_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <vector>

#include "starling/engine/flow/plan/failure.hpp"

namespace starling::flow {
namespace {

constexpr std::size_t buffer_bytes_max = std::size_t{256} << 10U;
/// The names of the lock and of unfinished files begin with this text; a complete folder has no
/// such files. The path of a temporary folder is the final path, then this text, then its token.
constexpr const char* temporary_mark = ".starling-";
constexpr const char* lock_name = ".starling-lock";

TaskFailure system_failure(const std::string& path, const char* what) {
  return TaskFailure{Error{path + ": " + what + ": " + std::strerror(errno)}};
}

/// Renames a folder unless the new name is taken. Returns 0, or the number of the system's error.
int rename_to_new(const std::string& from, const std::string& to) {
  // rename() would replace an empty folder that someone has made meanwhile.
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  // Network file systems do not have this kind of renaming.
  if (errno != EINVAL && errno != ENOSYS) return errno;
  std::error_code fault;
  if (std::filesystem::symlink_status(to, fault).type() != std::filesystem::file_type::not_found)
    return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

/// Removes the lock and the unfinished files, which a writer leaves of a part that another writer
/// has finished.
void remove_unfinished_files(const std::string& folder) {
  std::error_code fault;
  for (auto at = std::filesystem::directory_iterator{folder, fault};
       !fault && at != std::filesystem::directory_iterator{}; at.increment(fault)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(temporary_mark)) std::filesystem::remove(at->path(), ignored);
  }
}

/// Removes a temporary folder. Another writer may rename it meanwhile, and its files then stay.
void remove_folder(const std::string& temporary) {
  const std::string removed = temporary + "-" + OutputFolder::new_token();
  std::error_code ignored;
  if (rename_to_new(temporary, removed) == 0) std::filesystem::remove_all(removed, ignored);
}

/// Waits until the names of the files in a folder are on the disk (fsync). Ignores failures,
/// because some file systems cannot do this.
void sync_names(const std::string& folder) {
  const Descriptor opened{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened.is_open()) (void)::fsync(opened.get());
}

void remove_end_slashes(std::string& path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
}

Error cannot_be_made(const std::string& path) {
  return Error{path + ": no folder can be made: " + std::strerror(errno)};
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  (void)close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

bool Descriptor::close() noexcept {
  return !is_open() || ::close(std::exchange(descriptor_, -1)) == 0;
}

std::string OutputFolder::part_name(Part part, const std::string& extension) {
  const std::string number = std::to_string(part);
  const std::string zeros(number.size() < 5 ? 5 - number.size() : 0, '0');
  return "part-" + zeros + number + extension;
}

std::string OutputFolder::new_token() {
  static const auto process =
      (std::uint64_t{std::random_device{}()} << 32U) | std::uint64_t{std::random_device{}()};
  static std::atomic<std::uint64_t> calls = 0;
  return std::to_string(process) + "-" + std::to_string(++calls);
}

bool OutputFolder::has_all_parts(int folder, Part parts) const {
  for (Part part = 0; part < parts; ++part)
    if (::faccessat(folder, name_of(part).c_str(), F_OK, 0) != 0) return false;
  return true;
}

Result<OutputFolder> OutputFolder::make(std::string path) {
  remove_end_slashes(path);
  std::error_code fault;
  if (std::filesystem::symlink_status(path, fault).type() != std::filesystem::file_type::not_found)
    return Error{path + ": exists already; valid: the name of a new folder"};
  std::string temporary = path + temporary_mark + new_token();
  if (::mkdir(temporary.c_str(), 0777) != 0) return cannot_be_made(path);
  OutputFolder made{std::move(path), std::move(temporary), false, ".txt"};
  if (auto opened = made.open(); !opened) return std::move(opened).error();
  return made;
}

Result<OutputFolder> OutputFolder::shared(std::string path, const std::string& token,
                                          std::string extension) {
  remove_end_slashes(path);
  OutputFolder made{path, path + temporary_mark + token, true, std::move(extension)};
  // Another writer may rename or remove the folder before this one has opened it.
  constexpr int tries = 10;
  for (int i = 0; i < tries; ++i) {
    if (::mkdir(made.temporary_.c_str(), 0777) != 0 && errno != EEXIST) {
      made.temporary_.clear();
      return cannot_be_made(path);
    }
    if (made.open()) return made;
    if (errno != ENOENT) break;
  }
  Error error = cannot_be_made(path);
  made.temporary_.clear();
  return error;
}

Result<void> OutputFolder::open() {
  folder_ = Descriptor{::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
  if (!folder_.is_open()) return cannot_be_made(path_);
  if (!is_shared_) return {};
  lock_ = Descriptor{::openat(folder_.get(), lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0666)};
  if (!lock_.is_open()) return cannot_be_made(path_);
  // Waits while another writer, whose job has failed, removes the folder. A file system without
  // locks keeps the temporary folder if the job fails.
  while (::flock(lock_.get(), LOCK_SH) != 0 && errno == EINTR) continue;
  // The folder may have been removed before it was locked: shared() tries again after ENOENT.
  errno = ENOENT;
  if (has_name(temporary_) || has_name(path_)) return {};
  return cannot_be_made(path_);
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      is_shared_(other.is_shared_),
      extension_(std::move(other.extension_)),
      folder_(std::move(other.folder_)),
      lock_(std::move(other.lock_)) {}

OutputFolder::~OutputFolder() {
  if (!temporary_.empty()) discard();
}

void OutputFolder::discard() {
  if (!is_shared_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) remove_folder(temporary_);
}

bool OutputFolder::has_name(const std::string& name) const {
  struct ::stat opened {};
  struct ::stat named {};
  return ::fstat(folder_.get(), &opened) == 0 && ::lstat(name.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

void OutputFolder::remove_abandoned(std::string path) {
  remove_end_slashes(path);
  const std::filesystem::path final_path{path};
  const std::string prefix = final_path.filename().string() + temporary_mark;
  std::vector<std::string> found;
  std::error_code fault;
  for (auto at = std::filesystem::directory_iterator{final_path.parent_path(), fault};
       !fault && at != std::filesystem::directory_iterator{}; at.increment(fault))
    if (at->path().filename().string().starts_with(prefix)) found.push_back(at->path().string());
  for (std::string& temporary : found) {
    const Descriptor lock{::open((temporary + "/" + lock_name).c_str(), O_RDWR | O_CLOEXEC)};
    // A folder without this file has not been locked yet, or belongs to one writer.
    if (!lock.is_open() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    remove_folder(temporary);
  }
}

PartFile OutputFolder::open_file(const std::string& name) const {
  return PartFile{folder_.get(), temporary_, name,
                  is_shared_ ? temporary_mark + name + "." + new_token() : name};
}

Result<void> OutputFolder::commit(Part parts) {
  const bool has_all = has_all_parts(folder_.get(), parts);
  int fault = 0;
  if (has_all && !has_name(path_)) {
    sync_names(temporary_);
    fault = rename_to_new(temporary_, path_);
    sync_names(std::filesystem::absolute(path_).parent_path().string());
  }
  if (has_all && (fault == 0 || has_name(path_))) {
    if (is_shared_) remove_unfinished_files(path_);
    temporary_.clear();
    return {};
  }
  // A writer that begins after another one has renamed the folder makes a new temporary folder,
  // which lacks parts. It has succeeded if the final folder has all parts.
  const Descriptor final_folder{::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (is_shared_ && (!has_all || parts == 0) && has_all_parts(final_folder.get(), parts) &&
      final_folder.is_open())
    return {};
  if (!has_all)
    return Error{path_ + ": the files of some parts are gone from " + temporary_ +
                 (is_shared_ ? "; valid: a folder on a file system that all nodes share" : "")};
  return Error{path_ + ": the finished folder cannot be given this name: " + std::strerror(fault)};
}

PartFile::PartFile(int folder, std::string folder_path, std::string name,
                   std::string unfinished_name)
    : folder_(folder),
      folder_path_(std::move(folder_path)),
      name_(std::move(name)),
      unfinished_name_(std::move(unfinished_name)),
      file_(::openat(folder_, unfinished_name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                     0666)) {
  if (!file_.is_open()) throw system_failure(path(), "cannot be written");
}

PartFile::~PartFile() {
  if (!unfinished_name_.empty() && unfinished_name_ != name_)
    ::unlinkat(folder_, unfinished_name_.c_str(), 0);
}

void PartFile::add(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= buffer_bytes_max) flush();
}

void PartFile::add_line(const std::string& line) {
  buffer_ += line;
  add("\n");
}

void PartFile::flush() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t n = ::write(file_.get(), buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno != EINTR) throw system_failure(path(), "cannot be written");
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  buffer_.clear();
}

void PartFile::finish() {
  flush();
  if (::fsync(file_.get()) != 0 || !file_.close())
    throw system_failure(path(), "cannot be written");
  if (unfinished_name_ != name_ &&
      ::renameat(folder_, unfinished_name_.c_str(), folder_, name_.c_str()) != 0) {
    // Once the folder is complete, another writer removes the files that are not finished.
    const int fault = errno;
    const bool is_written = ::faccessat(folder_, name_.c_str(), F_OK, 0) == 0;
    errno = fault;
    if (fault != ENOENT || !is_written) throw system_failure(path(), "cannot be written");
  }
  unfinished_name_.clear();
}

}  // namespace starling::flow
