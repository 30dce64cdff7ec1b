#include "starling/base/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"

namespace starling {
namespace {

/// The place of a MappedFile in memory, for the handler of SIGBUS. A handler may run at any time
/// and take no locks, so records are never freed.
struct MappingRecord {
  /// False while no MappedFile has the record.
  std::atomic<bool> is_taken = false;
  /// Null until the other fields are set.
  std::atomic<const std::byte*> begin = nullptr;
  std::size_t size = 0;
  const char* name = nullptr;
};
/// If more files than this are mapped, one of the others that is cut short ends the process by
/// SIGBUS, without a message.
std::array<MappingRecord, 256> records;
struct sigaction previous_action;

void write_text(std::string_view text) {
  const auto ignored = ::write(STDERR_FILENO, text.data(), text.size());
  (void)ignored;  // nothing else can be done in a handler
}

/// Handles SIGBUS, which the system sends to a thread that uses a part of a mapped file that is not
/// in the file any more.
void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const MappingRecord& record : records) {
    const auto begin = reinterpret_cast<std::uintptr_t>(record.begin.load());
    if (begin == 0 || address < begin || address - begin >= record.size) continue;
    write_text("starling: ");
    write_text(record.name);
    write_text(": was cut short while it was used; valid: a file that stays as it is\n");
    ::_exit(1);
  }
  // Another part of the process has caused the signal. The system sends it again on return.
  ::sigaction(SIGBUS, &previous_action, nullptr);
}

void handle_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &previous_action);
}

void add_record(std::span<const std::byte> bytes, const char* name) {
  static const bool is_handled = (handle_bus_errors(), true);
  (void)is_handled;
  for (MappingRecord& record : records) {
    if (record.is_taken.exchange(true)) continue;
    record.size = bytes.size();
    record.name = name;
    record.begin = bytes.data();
    return;
  }
}

void remove_record(std::span<const std::byte> bytes) {
  for (MappingRecord& record : records)
    if (record.begin == bytes.data()) {
      record.begin = nullptr;
      record.is_taken = false;
      return;
    }
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  ReadLimits limits = ReadScope::limits();
  limits.refuses_pipes = true;
  const ReadScope scope{limits};
  const auto file = InputDescriptor::open(path);
  if (!file) return Error{file.error()};
  const std::size_t size = *file->size();
  if (size == 0) return std::shared_ptr<const MappedFile>{new MappedFile{{}, path}};
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file->descriptor(), 0);
  if (begin == MAP_FAILED)
    return Error{path + ": cannot be mapped into memory: " + std::strerror(errno)};
  // Otherwise the system reads more than the page that is used: with some disks 8 MiB.
  ::madvise(begin, size, MADV_RANDOM);
  return std::shared_ptr<const MappedFile>{
      new MappedFile{{static_cast<const std::byte*>(begin), size}, path}};
}

MappedFile::MappedFile(std::span<const std::byte> bytes, std::string_view name)
    : bytes_(bytes), name_(printable(name)) {
  if (!bytes_.empty()) add_record(bytes_, name_.c_str());
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  remove_record(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::will_need(std::span<const std::byte> part) const noexcept {
  // The system reads no more than this for one call, with the settings of most disks.
  constexpr std::size_t bytes_max = std::size_t{128} << 10U;
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(part.data()) % page;
  std::byte* const first_page = const_cast<std::byte*>(part.data()) - before;
  const std::size_t size = part.empty() ? 0 : part.size() + before;
  for (std::size_t at = 0; at < size; at += bytes_max)
    ::madvise(first_page + at, std::min(bytes_max, size - at), MADV_WILLNEED);
}

}  // namespace starling
