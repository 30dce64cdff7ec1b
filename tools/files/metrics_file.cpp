#include "starling/tools/files/metrics_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "starling/tools/files/file_output.hpp"

namespace starling::program {
namespace {

/// Returns the descriptor of stdout or stderr if that is the same file as `info`, else -1. Such a
/// file must not be opened again, because both descriptors would write from its beginning.
int standard_stream(const struct stat& info) {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat stream {};
    if (::fstat(fd, &stream) == 0 && stream.st_dev == info.st_dev && stream.st_ino == info.st_ino)
      return fd;
  }
  return -1;
}

/// Returns true for a pipe, a character device, and the file that stdout or stderr is: append()
/// does not cut a partial line off their ends.
bool is_stream(const struct stat& info) {
  return S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode) || standard_stream(info) >= 0;
}

/// Returns true if the last line of a regular file lacks its newline, as after a power failure.
bool has_partial_line(const std::string& path, off_t size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char last = '\n';
  const bool is_read = fd >= 0 && size > 0 && ::pread(fd, &last, 1, size - 1) == 1;
  if (fd >= 0) ::close(fd);
  return is_read && last != '\n';
}

int open_file(const std::string& path, bool keeps_content) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && standard_stream(info) >= 0)
    return ::fcntl(standard_stream(info), F_DUPFD_CLOEXEC, 0);
  // O_APPEND also for a new file: another process may append to it, or empty it.
  const int mode = keeps_content ? 0 : O_TRUNC;
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | mode, 0666);
}

}  // namespace

Result<void> MetricsFile::check(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !is_stream(info)) return check_writable(path);
  if (::access(path.c_str(), W_OK) == 0) return {};
  return Error{path + ": cannot be written: " + std::strerror(errno)};
}

Result<MetricsFile> MetricsFile::open(const std::string& path, bool keeps_content) {
  MetricsFile metrics;
  metrics.path_ = path;
  if (path.empty()) return metrics;
  const int fd = open_file(path, keeps_content);
  metrics.file_.reset(fd < 0 ? nullptr : ::fdopen(fd, "w"));
  if (!metrics.file_) {
    Error error{path + ": cannot be written: " + std::strerror(errno)};
    if (fd >= 0) ::close(fd);
    return error;
  }
  std::setvbuf(metrics.file_.get(), nullptr, _IONBF, 0);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || is_stream(info))
    std::signal(SIGPIPE, SIG_IGN);  // append() returns an error if the reader has closed the pipe
  else {
    metrics.size_ = info.st_size;
    metrics.is_within_line_ = has_partial_line(path, info.st_size);
  }
  return metrics;
}

void MetricsFile::clear() {
  if (!file_ || !size_ || ::ftruncate(::fileno(file_.get()), 0) != 0) return;
  size_ = 0;
  is_within_line_ = false;
}

Result<void> MetricsFile::append(const std::string& line) {
  if (!file_) return {};
  const std::string whole = (std::exchange(is_within_line_, false) ? "\n" : "") + line + "\n";
  struct stat info {};
  // Another process may have appended to the file, or emptied it.
  if (size_ && ::fstat(::fileno(file_.get()), &info) == 0) size_ = info.st_size;
  if (std::fwrite(whole.data(), 1, whole.size(), file_.get()) == whole.size()) return {};
  const Error error{path_ + ": cannot be written: " + std::strerror(errno)};
  if (size_ && ::ftruncate(::fileno(file_.get()), *size_) != 0) std::clearerr(file_.get());
  file_.reset();
  return error;
}

}  // namespace starling::program
