#include "starling/tools/files/file_output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace starling::program {
namespace {

/// The path of the temporary file, readable from a signal handler.
std::array<char, 4096> unfinished{};
std::atomic<bool> is_unfinished = false;

/// The path of a folder, readable from a signal handler too.
struct UnfinishedFolder {
  std::array<char, 4096> path{};
  std::atomic<bool> is_made = false;
};
/// One for each folder that a command may make.
std::array<UnfinishedFolder, 4> unfinished_folders;

Error failed(const std::string& path, const char* what) {
  return Error{path + ": " + what + ": " + std::strerror(errno)};
}

/// An open file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  /// False, with errno set, where closing reports that something was not written.
  [[nodiscard]] bool close() noexcept { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// A temporary file that is removed unless it was kept.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {
    if (path_.size() >= unfinished.size()) return;
    std::memcpy(unfinished.data(), path_.c_str(), path_.size() + 1);
    is_unfinished = true;
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!kept_) ::unlink(path_.c_str());
    is_unfinished = false;
  }
  void keep() noexcept { kept_ = true; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  bool kept_ = false;
};

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_beside(const std::string& path) {
  return path + ".starling-" + std::to_string(::getpid()) + ".tmp";
}

/// True if `name` is a temporary file's beside the file `target`, of any process.
bool is_temporary_of(std::string_view name, std::string_view target) {
  constexpr std::string_view before = ".starling-";
  constexpr std::string_view after = ".tmp";
  if (!name.starts_with(target)) return false;
  name.remove_prefix(target.size());
  if (!name.starts_with(before) || !name.ends_with(after)) return false;
  name.remove_prefix(before.size());
  if (name.size() <= after.size()) return false;
  name.remove_suffix(after.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Locks a file. The lock says that the process lives: it ends with the process, however that ends,
/// and is seen from other machines and containers, too, where process numbers mean nothing.
bool lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; }

/// Removes what is at `path` if it is a regular file that nobody is writing.
void remove_if_left(const std::string& path) {
  const Descriptor fd{::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)};
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (info.st_uid == ::geteuid() && lock(fd.get())) ::unlink(path.c_str());
}

/// Removes temporary files of earlier writing to `target` that killed processes have left.
void remove_left_temporaries(const std::string& target) {
  const std::filesystem::path path{target};
  const std::string name = path.filename().string();
  std::error_code fault;
  for (std::filesystem::directory_iterator entry{path.parent_path(), fault}, end;
       !fault && entry != end; entry.increment(fault))
    if (is_temporary_of(entry->path().filename().string(), name))
      remove_if_left(entry->path().string());
}

/// Creates a locked file that is still there: another process that removes left files may have been
/// quicker than the lock.
int create(const std::string& path) {
  for (;;) {
    const int fd =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    struct stat info {};
    if (fd < 0 || !lock(fd) || ::fstat(fd, &info) != 0 || info.st_nlink > 0) return fd;
    ::close(fd);
  }
}

/// Creates a new file that nobody else may read, and removes the old one first, which another
/// process may have opened.
int create_secret(const std::string& path) {
  ::unlink(path.c_str());
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
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

/// Writes all of a new file, brings it to the disk and closes it; `path` is what errors call it.
Result<void> write_file(const std::string& path, int created,
                        std::span<const std::span<const std::byte>> pieces) {
  Descriptor fd{created};
  if (fd.get() < 0) return failed(path, "cannot be written");
  for (const auto piece : pieces)
    if (!write_all(fd.get(), piece)) return failed(path, "cannot be written");
  if (::fsync(fd.get()) != 0) return failed(path, "cannot be brought to the disk");
  if (!fd.close()) return failed(path, "cannot be written");
  return {};
}

/// Brings a renamed file's name to the disk; only an input or output error counts as a failure.
Result<void> sync_folder(const std::string& folder) {
  const Descriptor fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (fd.get() < 0) return {};
  if (::fsync(fd.get()) != 0 && errno == EIO)
    return failed(folder, "cannot be brought to the disk");
  return {};
}

Result<void> check_target(const std::string& path) {
  if (path.empty()) return Error{"the name of a file is empty"};
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return errno == ELOOP ? failed(path, "cannot be written") : Result<void>{};
  if (S_ISDIR(info.st_mode)) return Error{path + ": is a directory; valid: the name of a file"};
  if (!S_ISREG(info.st_mode))
    return Error{path + ": is not a regular file; valid: the name of a file"};
  return {};
}

Error taken(const std::string& path) {
  return Error{path + ": is there already, and keys are never overwritten; valid: another name"};
}

}  // namespace

std::string resolved(const std::string& path) {
  constexpr int links_max = 40;
  std::error_code fault;
  auto at = std::filesystem::absolute(path, fault);
  for (int links = 0; links < links_max && std::filesystem::is_symlink(at, fault); ++links)
    at = at.parent_path() / std::filesystem::read_symlink(at, fault);
  const auto real = std::filesystem::weakly_canonical(at, fault);
  return fault ? path : real.string();
}

Result<void> check_writable(const std::string& path) {
  if (auto valid = check_target(path); !valid) return valid;
  const Temporary temporary{temporary_beside(resolved(path))};
  const Descriptor fd{create(temporary.path())};
  if (fd.get() < 0) return failed(path, "cannot be written");
  return {};
}

Result<void> replace_file(const std::string& path,
                          std::span<const std::span<const std::byte>> pieces) {
  if (auto valid = check_target(path); !valid) return valid;
  const std::string target = resolved(path);
  remove_left_temporaries(target);
  Temporary temporary{temporary_beside(target)};
  const int created = create(temporary.path());
  const Descriptor locked{created < 0 ? -1 : ::fcntl(created, F_DUPFD_CLOEXEC, 0)};
  if (auto written = write_file(path, created, pieces); !written) return written;
  if (::rename(temporary.path().c_str(), target.c_str()) != 0)
    return failed(path, "cannot be replaced");
  temporary.keep();
  return sync_folder(folder_of(target));
}

Result<void> replace_file(const std::string& path, const std::string& content) {
  const std::span<const std::byte> piece = std::as_bytes(std::span{content});
  return replace_file(path, std::span{&piece, 1});
}

Result<void> check_new(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) return taken(path);
  return check_writable(path);
}

Result<void> create_secret_file(const std::string& path, const std::string& content) {
  if (auto valid = check_new(path); !valid) return valid;
  const Temporary temporary{temporary_beside(path)};
  const std::span<const std::byte> piece = std::as_bytes(std::span{content});
  if (auto written = write_file(path, create_secret(temporary.path()), std::span{&piece, 1});
      !written)
    return written;
  // Unlike a rename, a link never replaces what is there.
  if (::link(temporary.path().c_str(), path.c_str()) != 0)
    return errno == EEXIST ? taken(path) : failed(path, "cannot be made");
  return sync_folder(folder_of(path));
}

void add_unfinished_folder(const std::string& path) noexcept {
  for (UnfinishedFolder& folder : unfinished_folders) {
    if (folder.is_made || path.size() >= folder.path.size()) continue;
    std::memcpy(folder.path.data(), path.c_str(), path.size() + 1);
    folder.is_made = true;
    return;
  }
}

void drop_unfinished_folder(const std::string& path) noexcept {
  for (UnfinishedFolder& folder : unfinished_folders)
    if (folder.is_made && path == folder.path.data()) folder.is_made = false;
}

void discard_unfinished() noexcept {
  if (is_unfinished) ::unlink(unfinished.data());
  // In reverse order, for a folder that lies in another was made after it.
  for (std::size_t i = unfinished_folders.size(); i-- > 0;)
    if (unfinished_folders[i].is_made) ::rmdir(unfinished_folders[i].path.data());
}

}  // namespace starling::program
