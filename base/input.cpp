#include "starling/base/input.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "starling/base/memory.hpp"

namespace starling {
namespace {

/// ReadBudget::check_growth() computes the bound again after this many bytes.
constexpr std::uint64_t check_interval_bytes = std::uint64_t{64} << 20U;
/// A read that waits for a pipe checks its limits at this interval.
constexpr int poll_timeout_ms = 100;

const ReadLimits& no_limits() {
  static const ReadLimits none;
  return none;
}

/// The limits of this thread's innermost ReadScope; null outside of any.
thread_local const ReadLimits* current_limits = nullptr;

/// The device number and the inode number of each file that withhold_file() was called with.
struct WithheldFiles {
  std::mutex mutex;
  std::set<std::pair<std::uint64_t, std::uint64_t>> files;
};
WithheldFiles& withheld() {
  static auto& files = *new WithheldFiles;  // never destroyed, because threads may still read
  return files;
}

const char* describe_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return S_ISSOCK(mode) ? "a socket" : "not a regular file";
}

Error wrong_kind_error(const std::string& path, mode_t mode) {
  const std::string text = path + ": is " + describe_kind(mode);
  if (S_ISDIR(mode)) return Error{text + ", not a file"};
  return Error{text + (ReadScope::limits().refuses_pipes ? "; valid: a regular file"
                                                         : "; valid: a regular file or a pipe")};
}

std::string print_gigabytes(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), bytes < 1e8 ? "%.3f GB" : "%.1f GB", bytes / 1e9);
  return text.data();
}

std::string print_size(std::size_t bytes) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20U;
  return bytes < mebibyte ? std::to_string(bytes) + " bytes"
                          : std::to_string(bytes / mebibyte) + " MiB";
}

/// The memory that a reader's values may take, and the reason for this bound, for messages.
struct Bound {
  double bytes = 0;
  std::string reason;
};

/// Computes the bound for a reader whose values already take `held_bytes`.
Bound compute_bound(double held_bytes) {
  if (const auto memory_max = ReadScope::limits().memory_max; memory_max > 0)
    return {static_cast<double>(memory_max), ""};
  const double free = free_memory_bytes() + held_bytes;
  return {free / 3, ", a third of the " + print_gigabytes(free) + " that are free"};
}

}  // namespace

void withhold_file(std::uint64_t device, std::uint64_t number) {
  const std::lock_guard lock{withheld().mutex};
  withheld().files.emplace(device, number);
}

ReadScope::ReadScope(ReadLimits limits)
    : limits_(std::move(limits)), outer_limits_(std::exchange(current_limits, &limits_)) {}

ReadScope::~ReadScope() { current_limits = outer_limits_; }

const ReadLimits& ReadScope::limits() noexcept {
  return current_limits != nullptr ? *current_limits : no_limits();
}

Result<void> check_reading(const std::string& path) {
  const ReadLimits& limits = ReadScope::limits();
  if (limits.stop.stop_requested()) return Error{path + ": reading was cancelled"};
  if (std::chrono::steady_clock::now() > limits.deadline)
    return Error{path + ": reading took too long"};
  return {};
}

Result<InputDescriptor> InputDescriptor::open(const std::string& path) {
  // O_NONBLOCK: never waits for a pipe's writer or for a device. O_NOCTTY: never takes a
  // controlling terminal.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return Error{path + ": no such file"};
  if (fd < 0) return Error{"cannot open '" + path + "': " + std::strerror(errno)};
  InputDescriptor input{fd, path};
  if (auto valid = input.check_kind(); !valid) return std::move(valid).error();
  return input;
}

Result<void> InputDescriptor::check_kind() {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return Error{path_ + ": " + std::strerror(errno)};
  {
    const std::lock_guard lock{withheld().mutex};
    if (withheld().files.contains({status.st_dev, status.st_ino}))
      return Error{path_ + ": is a key file that this process uses; valid: a file of data"};
  }
  const bool is_pipe = S_ISFIFO(status.st_mode) && !ReadScope::limits().refuses_pipes;
  if (!S_ISREG(status.st_mode) && !is_pipe) return wrong_kind_error(path_, status.st_mode);
  if (!is_pipe) size_ = static_cast<std::uint64_t>(status.st_size);
  return {};
}

InputDescriptor::InputDescriptor(InputDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      size_(other.size_) {}

InputDescriptor& InputDescriptor::operator=(InputDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  return *this;
}

InputDescriptor::~InputDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

/// Waits until a pipe has bytes or has ended. A pipe that no process has opened for writing yet has
/// not ended: poll() on Linux tells the two apart.
Result<void> InputDescriptor::await_bytes() {
  for (;;) {
    if (auto may_read = check_reading(path_); !may_read) return may_read;
    pollfd request{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&request, 1, poll_timeout_ms);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR)
      return Error{path_ + ": cannot be read: " + std::strerror(errno)};
  }
}

Result<std::size_t> InputDescriptor::read(std::span<std::byte> out) {
  for (;;) {
    if (auto may_read = size_ ? check_reading(path_) : await_bytes(); !may_read)
      return std::move(may_read).error();
    const ssize_t size = ::read(descriptor_, out.data(), out.size());
    if (size >= 0) return static_cast<std::size_t>(size);
    // Some files of the kernel (in /proc or /sys) claim to be regular, but make a reader wait.
    if (errno == EAGAIN && size_) return wrong_kind_error(path_, S_IFCHR);
    if (errno != EINTR && errno != EAGAIN)
      return Error{path_ + ": cannot be read: " + std::strerror(errno)};
  }
}

Result<std::string> read_text(const std::string& path, std::size_t bytes_max,
                              const std::string& valid) {
  auto input = InputDescriptor::open(path);
  if (!input) return std::move(input).error();
  std::string text;
  std::array<std::byte, 65536> part{};
  for (;;) {
    const auto size = input->read(part);
    if (!size) return size.error();
    if (*size == 0) return text;
    if (text.size() + *size > bytes_max)
      return Error{path + ": is larger than " + print_size(bytes_max) +
                   (valid.empty() ? "" : "; valid: " + valid)};
    text.append(reinterpret_cast<const char*>(part.data()), *size);
  }
}

Result<void> ReadBudget::check_total(std::uint64_t bytes) const {
  const Bound bound = compute_bound(0);
  if (static_cast<double>(bytes) <= bound.bytes) return {};
  return Error{source_ + ": would take " + print_gigabytes(static_cast<double>(bytes)) +
               " of memory; valid: up to " + print_gigabytes(bound.bytes) + bound.reason};
}

Result<void> ReadBudget::check_bound(std::uint64_t bytes) {
  const std::uint64_t memory_max = ReadScope::limits().memory_max;
  next_check_bytes_ = bytes + (memory_max > 0 ? std::min(check_interval_bytes, memory_max / 16)
                                              : check_interval_bytes);
  const Bound bound = compute_bound(static_cast<double>(bytes));
  if (static_cast<double>(bytes) <= bound.bytes) return {};
  return Error{source_ + ": takes more than " + print_gigabytes(static_cast<double>(bytes)) +
               " of memory; valid: up to " + print_gigabytes(bound.bytes) + bound.reason};
}

}  // namespace starling
