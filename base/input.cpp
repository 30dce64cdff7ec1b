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
#include <utility>

#include "starling/base/memory.hpp"

namespace starling {
namespace {

constexpr std::uint64_t look_every = std::uint64_t{64} << 20U;
/// Milliseconds between two checks whether to go on, while a read waits for a pipe.
constexpr int wait_ms = 100;

const ReadLimits& no_limits() {
  static const ReadLimits none;
  return none;
}

thread_local const ReadLimits* current = nullptr;

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return S_ISSOCK(mode) ? "a socket" : "no regular file";
}

Error wrong_kind(const std::string& path, mode_t mode) {
  const std::string is = path + ": is " + kind_of(mode);
  if (S_ISDIR(mode)) return Error{is + ", not a file"};
  return Error{is + (ReadScope::limits().regular_only ? "; valid: a regular file"
                                                      : "; valid: a regular file or a pipe")};
}

std::string gigabytes(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), bytes < 1e8 ? "%.3f GB" : "%.1f GB", bytes / 1e9);
  return text.data();
}

std::string size_text(std::size_t bytes) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20U;
  return bytes < mebibyte ? std::to_string(bytes) + " bytes"
                          : std::to_string(bytes / mebibyte) + " MiB";
}

/// The bytes that a reader may hold in all, and the reason, for messages.
struct Bound {
  double bytes = 0;
  std::string reason;
};

Bound bound_of(double held) {
  if (const auto set = ReadScope::limits().memory_max; set > 0)
    return {static_cast<double>(set), ""};
  const double free = free_memory_bytes() + held;
  return {free / 3, ", a third of the " + gigabytes(free) + " that are free"};
}

}  // namespace

ReadScope::ReadScope(ReadLimits limits)
    : own_(std::move(limits)), outer_(std::exchange(current, &own_)) {}

ReadScope::~ReadScope() { current = outer_; }

const ReadLimits& ReadScope::limits() noexcept {
  return current != nullptr ? *current : no_limits();
}

Result<void> check_reading(const std::string& path) {
  const ReadLimits& limits = ReadScope::limits();
  if (limits.stop.stop_requested()) return Error{path + ": is read no further: nobody wants it"};
  if (std::chrono::steady_clock::now() > limits.deadline)
    return Error{path + ": is read no further: reading took too long"};
  return {};
}

Result<InputDescriptor> InputDescriptor::open(const std::string& path) {
  // O_NONBLOCK: never waits for a pipe's writer or for a device. O_NOCTTY: never takes a
  // controlling terminal.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return Error{path + ": no such file"};
  if (fd < 0) return Error{"cannot open '" + path + "': " + std::strerror(errno)};
  InputDescriptor input{fd, path};
  if (auto looked = input.look(); !looked) return std::move(looked).error();
  return input;
}

Result<void> InputDescriptor::look() {
  struct stat about {};
  if (::fstat(descriptor_, &about) != 0) return Error{path_ + ": " + std::strerror(errno)};
  const bool is_pipe = S_ISFIFO(about.st_mode) && !ReadScope::limits().regular_only;
  if (!S_ISREG(about.st_mode) && !is_pipe) return wrong_kind(path_, about.st_mode);
  if (!is_pipe) size_ = static_cast<std::uint64_t>(about.st_size);
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

/// A pipe to which nobody has written yet is not at its end: Linux tells the two apart.
Result<void> InputDescriptor::await_bytes() {
  for (;;) {
    if (auto go_on = check_reading(path_); !go_on) return go_on;
    pollfd one{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&one, 1, wait_ms);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR)
      return Error{path_ + ": cannot be read: " + std::strerror(errno)};
  }
}

Result<std::size_t> InputDescriptor::read(std::span<std::byte> out) {
  for (;;) {
    if (auto go_on = size_ ? check_reading(path_) : await_bytes(); !go_on)
      return std::move(go_on).error();
    const ssize_t got = ::read(descriptor_, out.data(), out.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    // Some kernel files claim to be regular, yet make a reader wait as devices do.
    if (errno == EAGAIN && size_) return wrong_kind(path_, S_IFCHR);
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
    const auto got = input->read(part);
    if (!got) return got.error();
    if (*got == 0) return text;
    if (text.size() + *got > bytes_max)
      return Error{path + ": is larger than " + size_text(bytes_max) +
                   (valid.empty() ? "" : "; valid: " + valid)};
    text.append(reinterpret_cast<const char*>(part.data()), *got);
  }
}

Result<void> ReadBudget::expect(std::uint64_t bytes) const {
  const Bound bound = bound_of(0);
  if (static_cast<double>(bytes) <= bound.bytes) return {};
  return Error{place_ + ": would take " + gigabytes(static_cast<double>(bytes)) +
               " of memory; valid: up to " + gigabytes(bound.bytes) + bound.reason};
}

Result<void> ReadBudget::look(std::uint64_t bytes) {
  const std::uint64_t set = ReadScope::limits().memory_max;
  next_look_ = bytes + (set > 0 ? std::min(look_every, set / 16) : look_every);
  const Bound bound = bound_of(static_cast<double>(bytes));
  if (static_cast<double>(bytes) <= bound.bytes) return {};
  return Error{place_ + ": takes more than " + gigabytes(static_cast<double>(bytes)) +
               " of memory; valid: up to " + gigabytes(bound.bytes) + bound.reason};
}

}  // namespace starling
