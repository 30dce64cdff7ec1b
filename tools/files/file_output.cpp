#include "starling/tools/files/file_output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

namespace starling::program {
namespace {

/// The path of the temporary file that is being written. A signal handler may read it.
std::array<char, 4096> unfinished_path{};
std::atomic<bool> has_unfinished = false;

/// The path of a folder that was made for outputs. A signal handler may read it.
struct UnfinishedFolder {
  std::array<char, 4096> path{};
  std::atomic<bool> in_use = false;
};
/// A command creates at most four folders.
std::array<UnfinishedFolder, 4> unfinished_folders;

Error system_error(const std::string& path, const char* what) {
  return Error{path + ": " + what + ": " + std::strerror(errno)};
}

/// Owns a file descriptor, or -1, and closes it in its destructor.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  /// Returns false and sets errno if closing reports that something was not written.
  [[nodiscard]] bool close() noexcept { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// Removes a temporary file in its destructor unless keep() was called. While the object lives,
/// discard_unfinished() removes the file too.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {
    if (path_.size() >= unfinished_path.size()) return;
    std::memcpy(unfinished_path.data(), path_.c_str(), path_.size() + 1);
    has_unfinished = true;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!is_kept_) ::unlink(path_.c_str());
    has_unfinished = false;
  }
  void keep() noexcept { is_kept_ = true; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  bool is_kept_ = false;
};

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Returns a name beside `path` that no other writer has. A process id does not make a name unique:
/// process ids are often equal in containers that share a folder. A number that a process draws
/// once does not either: a fork copies it.
std::string temporary_beside(const std::string& path) {
  std::random_device device;
  const std::uint64_t number = (std::uint64_t{device()} << 32U) | device();
  return path + ".starling-" + std::to_string(number) + ".tmp";
}

/// Returns true if `name` is the name of a temporary file that any process made beside `target`.
bool is_temporary_of(std::string_view name, std::string_view target) {
  constexpr std::string_view prefix = ".starling-";
  constexpr std::string_view suffix = ".tmp";
  if (!name.starts_with(target)) return false;
  name.remove_prefix(target.size());
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return false;
  name.remove_prefix(prefix.size());
  if (name.size() <= suffix.size()) return false;
  name.remove_suffix(suffix.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Locks a file; returns false if another process holds the lock. A lock shows that the process
/// that took it still runs, because the system releases it when that process ends. Unlike a process
/// id, it has this meaning on other machines and in other containers too.
bool try_lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; }

/// Locks a new file. Waits while another process, which took the file for an abandoned one, holds
/// the lock. Returns false if the file system has no locks.
bool lock(int fd) {
  while (::flock(fd, LOCK_EX) != 0)
    if (errno != EINTR) return false;
  return true;
}

/// Removes `path` if it is a regular file of this user that no process is writing. Once the file is
/// locked, its links are counted: if another process has removed it, a writer may have created
/// another one of this name.
void remove_if_abandoned(const std::string& path) {
  const Descriptor fd{::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)};
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  // Root may have replaced the file of another user.
  const bool is_own = info.st_uid == ::geteuid() || ::geteuid() == 0;
  if (is_own && try_lock(fd.get()) && ::fstat(fd.get(), &info) == 0 && info.st_nlink > 0)
    ::unlink(path.c_str());
}

/// Removes the temporary files for `target` that killed processes left behind.
void remove_abandoned_temporaries(const std::string& target) {
  const std::filesystem::path path{target};
  const std::string name = path.filename().string();
  std::error_code fault;
  for (std::filesystem::directory_iterator entry{path.parent_path(), fault}, end;
       !fault && entry != end; entry.increment(fault))
    if (is_temporary_of(entry->path().filename().string(), name))
      remove_if_abandoned(entry->path().string());
}

/// Creates and locks the temporary file `temporary` for `path`, which errors name. Returns its
/// descriptor. Tries again if another process took the new file for an abandoned one and removed it
/// before it was locked.
Result<int> create(const std::string& temporary, const std::string& path, ::mode_t mode = 0666) {
  constexpr int attempts_max = 100;
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    const int fd =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return system_error(path, "cannot be written");
    struct stat info {};
    if (!lock(fd) || ::fstat(fd, &info) != 0 || info.st_nlink > 0) return fd;
    ::close(fd);
  }
  return Error{path + ": cannot be written: another process has removed its temporary file " +
               std::to_string(attempts_max) + " times; valid: to try again, or another name"};
}

/// Gives the new file `fd` the owner, group and permissions of the file `path` that it will
/// replace, if there is one, as far as this user may. The owner may always write it, and no one
/// else gets a permission that the old file did not give.
void copy_permissions(const std::string& path, int fd) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return;
  const bool has_group = ::fchown(fd, info.st_uid, info.st_gid) == 0 ||
                         ::fchown(fd, static_cast<::uid_t>(-1), info.st_gid) == 0;
  (void)::fchmod(fd, (info.st_mode & (has_group ? 0777U : 0707U)) | 0600U);
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

/// Returns a function that returns the pieces that are not empty, in order.
NextPiece each_of(std::span<const std::span<const std::byte>> pieces) {
  return [pieces]() mutable {
    std::span<const std::byte> next;
    while (next.empty() && !pieces.empty()) {
      next = pieces.front();
      pieces = pieces.subspan(1);
    }
    return next;
  };
}

/// Writes all pieces to the descriptor `fd`, syncs it to the disk and closes it. Errors name
/// `path`.
Result<void> write_file(const std::string& path, int fd, const NextPiece& next) {
  Descriptor file{fd};
  for (auto piece = next(); !piece.empty(); piece = next())
    if (!write_all(file.get(), piece)) return system_error(path, "cannot be written");
  if (::fsync(file.get()) != 0) return system_error(path, "cannot be synced to the disk");
  if (!file.close()) return system_error(path, "cannot be written");
  return {};
}

/// Syncs a folder to the disk after a rename in it. Only EIO counts as a failure: some file systems
/// cannot sync folders.
Result<void> sync_folder(const std::string& folder) {
  const Descriptor fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (fd.get() < 0) return {};
  if (::fsync(fd.get()) != 0 && errno == EIO)
    return system_error(folder, "cannot be synced to the disk");
  return {};
}

/// Returns an Error if `path` is empty or names anything but a regular file or a free name.
Result<void> check_target(const std::string& path) {
  if (path.empty()) return Error{"the name of a file is empty"};
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return errno == ELOOP ? system_error(path, "cannot be written") : Result<void>{};
  if (S_ISDIR(info.st_mode)) return Error{path + ": is a directory; valid: the name of a file"};
  if (!S_ISREG(info.st_mode))
    return Error{path + ": is not a regular file; valid: the name of a file"};
  return {};
}

Error already_exists(const std::string& path) {
  return Error{path + ": is there already, and keys are never overwritten; valid: another name"};
}

}  // namespace

std::string resolve_links(const std::string& path) {
  constexpr int links_max = 40;
  std::error_code fault;
  auto target = std::filesystem::absolute(path, fault);
  for (int links = 0; links < links_max && std::filesystem::is_symlink(target, fault); ++links)
    target = target.parent_path() / std::filesystem::read_symlink(target, fault);
  const auto real = std::filesystem::weakly_canonical(target, fault);
  return fault ? path : real.string();
}

Result<void> check_writable(const std::string& path) {
  if (auto valid = check_target(path); !valid) return valid;
  const TemporaryFile temporary{temporary_beside(resolve_links(path))};
  const auto created = create(temporary.path(), path);
  if (!created) return created.error();
  const Descriptor fd{*created};
  return {};
}

Result<void> replace_file(const std::string& path, const NextPiece& next) {
  if (auto valid = check_target(path); !valid) return valid;
  const std::string target = resolve_links(path);
  remove_abandoned_temporaries(target);
  TemporaryFile temporary{temporary_beside(target)};
  const auto fd = create(temporary.path(), path);
  if (!fd) return fd.error();
  copy_permissions(target, *fd);
  // A second descriptor keeps the lock until the rename; write_file() closes `fd`.
  const Descriptor lock{::fcntl(*fd, F_DUPFD_CLOEXEC, 0)};
  if (auto written = write_file(path, *fd, next); !written) return written;
  if (::rename(temporary.path().c_str(), target.c_str()) != 0)
    return system_error(path, "cannot be replaced");
  temporary.keep();
  return sync_folder(folder_of(target));
}

Result<void> replace_file(const std::string& path,
                          std::span<const std::span<const std::byte>> pieces) {
  return replace_file(path, each_of(pieces));
}

Result<void> replace_file(const std::string& path, const std::string& content) {
  const std::span<const std::byte> piece = std::as_bytes(std::span{content});
  return replace_file(path, std::span{&piece, 1});
}

Result<void> check_new(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) return already_exists(path);
  return check_writable(path);
}

Result<void> create_secret_file(const std::string& path, const std::string& content) {
  if (auto valid = check_new(path); !valid) return valid;
  const std::string target = resolve_links(path);
  remove_abandoned_temporaries(target);
  const TemporaryFile temporary{temporary_beside(target)};
  const auto fd = create(temporary.path(), path, 0600);
  if (!fd) return fd.error();
  // As in replace_file(), a second descriptor keeps the lock.
  const Descriptor lock{::fcntl(*fd, F_DUPFD_CLOEXEC, 0)};
  const std::span<const std::byte> piece = std::as_bytes(std::span{content});
  if (auto written = write_file(path, *fd, each_of({&piece, 1})); !written) return written;
  // Unlike a rename, a link never replaces an existing file.
  if (::link(temporary.path().c_str(), path.c_str()) != 0)
    return errno == EEXIST ? already_exists(path) : system_error(path, "cannot be made");
  return sync_folder(folder_of(path));
}

void add_unfinished_folder(const std::string& path) noexcept {
  for (UnfinishedFolder& folder : unfinished_folders) {
    if (folder.in_use || path.size() >= folder.path.size()) continue;
    std::memcpy(folder.path.data(), path.c_str(), path.size() + 1);
    folder.in_use = true;
    return;
  }
}

void forget_unfinished_folder(const std::string& path) noexcept {
  for (UnfinishedFolder& folder : unfinished_folders)
    if (folder.in_use && path == folder.path.data()) folder.in_use = false;
}

void discard_unfinished() noexcept {
  if (has_unfinished) ::unlink(unfinished_path.data());
  // Each pass removes the innermost of the folders that are left. The array does not have the
  // folders in order of depth, because its elements are reused.
  for (std::size_t pass = 0; pass < unfinished_folders.size(); ++pass)
    for (const UnfinishedFolder& folder : unfinished_folders)
      if (folder.in_use) ::rmdir(folder.path.data());
}

}  // namespace starling::program
