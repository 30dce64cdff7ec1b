#include "starling/actor/flow/spill_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "starling/engine/flow/plan/failure.hpp"

namespace starling::flow {
namespace {

/// Writes all bytes at `offset`. Returns false, and sets errno, if the system cannot.
bool write_all(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(descriptor, bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(offset + done));
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return true;
}

/// Fills `out` from `offset` on, as far as the file goes. Returns the number of bytes read;
/// nullopt, and sets errno, if the system cannot.
std::optional<std::size_t> read_up_to(int descriptor, std::span<std::byte> out,
                                      std::uint64_t offset) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(descriptor, out.data() + done, out.size() - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno != EINTR) return std::nullopt;
    if (n == 0) break;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace

class SpillFolder::MemoryReservation : public Reservation {
 public:
  MemoryReservation(std::shared_ptr<SpillFolder> folder, std::size_t bytes)
      : folder_(std::move(folder)), bytes_(bytes) {}
  ~MemoryReservation() override { folder_->memory_used_ -= bytes_; }

 private:
  std::shared_ptr<SpillFolder> folder_;
  std::size_t bytes_;
};

class SpillFolder::File : public SpillFile {
 public:
  explicit File(std::shared_ptr<SpillFolder> folder) : folder_(std::move(folder)) {}
  ~File() override {
    if (descriptor_ >= 0) ::close(descriptor_);
    folder_->disk_used_ -= size_ - released_;
  }

  std::uint64_t append(std::span<const std::byte> bytes) override {
    const std::uint64_t offset = allocate(bytes.size());
    if (!write_all(descriptor_, bytes, offset)) throw failure("cannot be written");
    folder_->spilled_ += bytes.size();
    return offset;
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto read = read_up_to(descriptor_, out, offset);
    if (!read) throw failure("cannot be read");
    if (*read < out.size())
      throw TaskFailure{
          Error{folder_->path_ + ": a file of spilled data has lost bytes since it was written"}};
  }

  void release(std::uint64_t offset, std::uint64_t size) noexcept override {
    // The disk gives whole pages back. Some file systems have no holes; they give the space back
    // with the file.
    constexpr std::uint64_t page = 4096;
    const std::uint64_t begin = (offset + page - 1) / page * page;
    const std::uint64_t end = (offset + size) / page * page;
    if (begin >= end ||
        ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(begin), static_cast<off_t>(end - begin)) != 0)
      return;
    released_ += end - begin;
    folder_->disk_used_ -= end - begin;
  }

 private:
  /// Reserves the next `bytes` bytes of the file, and returns their offset. The first call opens
  /// the file.
  std::uint64_t allocate(std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    if (descriptor_ < 0) open();
    if ((folder_->disk_used_ += bytes) > folder_->disk_max_) {
      folder_->disk_used_ -= bytes;
      throw TaskFailure{Error{folder_->path_ + ": spilled data takes more than " +
                              std::to_string(folder_->disk_max_) +
                              " bytes; try: a higher spill_bytes_max, or more memory"}};
    }
    return std::exchange(size_, size_ + bytes);
  }

  void open() {
    std::string name = folder_->path_ + "/starling-spill-XXXXXX";
    descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor_ < 0) throw failure("no file can be created for spilled data");
    // The system removes the file once it is closed, even if the process is killed.
    ::unlink(name.c_str());
  }

  [[nodiscard]] TaskFailure failure(const char* what) const {
    return TaskFailure{Error{folder_->path_ + ": " + what + ": " + std::strerror(errno) +
                             "; try: another spill folder, or more memory"}};
  }

  const std::shared_ptr<SpillFolder> folder_;
  std::mutex mutex_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::atomic<std::uint64_t> released_ = 0;
};

std::unique_ptr<Reservation> SpillFolder::reserve(std::size_t bytes) {
  // Reservations take at most half of the memory, because the buffers of the running tasks may take
  // the other half (buffer_bytes()).
  if ((memory_used_ += bytes) > memory_max_ / 2) {
    memory_used_ -= bytes;
    return nullptr;
  }
  return std::make_unique<MemoryReservation>(shared_from_this(), bytes);
}

std::shared_ptr<SpillFile> SpillFolder::make_spill_file() {
  return std::make_shared<File>(shared_from_this());
}

}  // namespace starling::flow
