#include "starling/actor/fabric/region.hpp"

#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "starling/actor/fabric/region_reader.hpp"

namespace starling::fabric {
namespace {

/// Addresses of a region that is no longer used but whose writer may still write.
struct RetainedRegion {
  std::span<std::byte> bytes;
  Process writer;
};

std::atomic<std::size_t> mapped = 0;
std::mutex retained_mutex;

/// Never destroyed, because payloads may outlive all other static objects.
std::vector<RetainedRegion>& retained() {
  static auto* const all = new std::vector<RetainedRegion>;
  return *all;
}

}  // namespace

std::size_t mapped_bytes() { return mapped; }

void unmap_retained() {
  const std::lock_guard lock{retained_mutex};
  std::vector<RetainedRegion> kept;
  for (RetainedRegion& one : retained())
    if (one.writer.is_alive())
      kept.push_back(std::move(one));
    else
      ::munmap(one.bytes.data(), one.bytes.size());
  retained().swap(kept);
}

std::unique_ptr<Region> Region::map(std::size_t bytes, std::optional<Process> writer) {
  unmap_retained();
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<Region>{
      new Region{{static_cast<std::byte*>(memory), bytes}, std::move(writer)}};
}

Region::Region(std::span<std::byte> bytes, std::optional<Process> writer)
    : bytes_(bytes), writer_(std::move(writer)) {
  mapped += bytes_.size();
}

Region::~Region() {
  mapped -= bytes_.size();
  if (!writer_ || !writer_->is_alive()) {
    ::munmap(bytes_.data(), bytes_.size());
    return;
  }
  ::madvise(bytes_.data(), bytes_.size(), MADV_DONTNEED);
  const std::lock_guard lock{retained_mutex};
  retained().push_back({bytes_, *std::move(writer_)});
}

}  // namespace starling::fabric
