#include "starling/actor/fabric/region_writer.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/fabric/process.hpp"

namespace starling::fabric {
namespace {

using Clock = std::chrono::steady_clock;
using Part = std::span<const std::byte>;

/// The most separate pieces of memory that a payload is written from.
constexpr std::size_t pieces_max = 16;

/// How long begin(), connect() and write() wait at most, while their caller holds a lock.
constexpr std::chrono::milliseconds begin_time_max{50};
constexpr std::chrono::milliseconds connect_time_max{300};
constexpr std::chrono::milliseconds write_time_max{1000};

/// Joins parts that are adjacent in memory.
std::vector<Part> join(std::span<const Part> parts) {
  std::vector<Part> pieces;
  for (const Part part : parts) {
    if (part.empty()) continue;
    if (!pieces.empty() && pieces.back().data() + pieces.back().size() == part.data())
      pieces.back() = {pieces.back().data(), pieces.back().size() + part.size()};
    else
      pieces.push_back(part);
  }
  return pieces;
}

}  // namespace

class RegionWriter::Impl {
 public:
  Impl(std::shared_ptr<Endpoint> endpoint, Provider provider, LinkId link, const SlotLayout& layout)
      : endpoint_(std::move(endpoint)), provider_(provider), link_(link), layout_(layout) {
    for (std::uint32_t slot = layout.slots; slot > 0; --slot)
      free_.push_back(static_cast<std::uint16_t>(slot - 1));
  }
  ~Impl() {
    for (const WritableEntry& entry : entries_) endpoint_->remove(entry.endpoint);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> open(const Offer& offer, bool may_leave_host) {
    auto receiver = Process::find(offer.receiver);
    if (receiver)
      receiver_.emplace(*std::move(receiver));
    else if (provider_ == Provider::shm || !may_leave_host)
      return std::move(receiver).error();
    for (const Entry& entry : offer.entries) {
      auto endpoint = endpoint_->add(entry.name);
      if (!endpoint) return std::move(endpoint).error();
      entries_.push_back({*endpoint, {entry.address, entry.key}});
    }
    return {};
  }

  void begin() {
    // record_result() records a write that has timed out, after which this writer is broken: the
    // write could still come later, and overwrite the flag of a payload.
    for (WritableEntry& entry : entries_)
      (void)record_result(write_flag(entry, 0, 0, begin_time_max));
  }

  Result<void> connect() {
    for (WritableEntry& entry : entries_)
      if (has_failed_ || !record_result(write_flag(entry, 0, 0, connect_time_max)))
        return Error{"provider " + std::string{print(provider_)} +
                     " of libfabric cannot write to the receiver"};
    return {};
  }

  std::optional<Ticket> write(std::span<const Part> parts,
                              const std::shared_ptr<const void>& owner) {
    const auto pieces = join(parts);
    std::size_t length = 0;
    for (const Part piece : pieces) length += piece.size();
    if (length == 0 || length > layout_.slot_bytes || pieces.size() > pieces_max || free_.empty())
      return std::nullopt;
    if (is_broken()) return std::nullopt;
    if (!select_entry(pieces.size() + 1)) {
      if (!no_entry_since_) no_entry_since_ = Clock::now();
      return std::nullopt;
    }
    no_entry_since_.reset();
    const std::uint16_t slot = free_.back();
    WritableEntry& entry = entries_[entry_];
    std::size_t offset = layout_.payload_offset(slot);
    for (const Part piece : pieces) {
      if (!record_result(write(entry, piece, owner, offset))) return std::nullopt;
      offset += piece.size();
    }
    // The payload is complete, so whoever sees the flag sees the payload.
    if (!record_result(write_flag(entry, slot, sequence_ + 1))) return std::nullopt;
    free_.pop_back();
    if (free_.empty()) all_used_since_ = Clock::now();
    return Ticket{link_, ++sequence_, static_cast<std::uint32_t>(length), slot, entry_};
  }

  void release(const Release& release) {
    for (std::uint16_t slot = 0; slot < layout_.slots; ++slot)
      if (((release.slots >> slot) & 1U) != 0 && std::ranges::count(free_, slot) == 0)
        free_.push_back(slot);
    if (release.drained < entries_.size() && release.drained != entry_) {
      entries_[release.drained].used = 0;
      no_entry_since_.reset();
    }
  }

  [[nodiscard]] bool is_broken() const {
    return has_failed_ || (receiver_ && !receiver_->is_alive()) ||
           (free_.empty() && Clock::now() - all_used_since_ > stuck_after) ||
           (no_entry_since_ && Clock::now() - *no_entry_since_ > stuck_after);
  }

 private:
  struct WritableEntry {
    std::uint64_t endpoint = 0;
    RemoteMemory memory;
    /// The writes since the receiver drained the entry.
    std::size_t used = 0;
  };

  /// Returns true if the current entry can take `writes` more writes before it is drained. If it
  /// cannot, but another entry can, makes that one the current entry and returns true.
  bool select_entry(std::size_t writes) {
    const auto fits = [&](const WritableEntry& entry) {
      return provider_ != Provider::shm || entry.used + writes <= Endpoint::writes_max;
    };
    if (fits(entries_[entry_])) return true;
    const std::size_t other = (std::size_t{entry_} + 1) % entries_.size();
    if (!fits(entries_[other])) return false;
    entry_ = static_cast<std::uint16_t>(other);
    return true;
  }

  WriteResult write(WritableEntry& entry, Part bytes, std::shared_ptr<const void> owner,
                    std::size_t offset, std::chrono::milliseconds timeout = write_time_max) {
    ++entry.used;
    return endpoint_->write(entry.endpoint, bytes, std::move(owner), entry.memory, offset, timeout);
  }
  WriteResult write_flag(WritableEntry& entry, std::uint16_t slot, std::uint64_t sequence,
                         std::chrono::milliseconds timeout = write_time_max) {
    auto flag = std::make_shared<const std::uint64_t>(sequence);
    const auto bytes = std::as_bytes(std::span{flag.get(), 1});
    return write(entry, bytes, std::move(flag), SlotLayout::flag_offset(slot), timeout);
  }
  bool record_result(WriteResult result) {
    has_failed_ = has_failed_ || result == WriteResult::failed;
    return result == WriteResult::complete;
  }

  const std::shared_ptr<Endpoint> endpoint_;
  const Provider provider_;
  const LinkId link_;
  const SlotLayout layout_;
  /// Absent if the receiver is on another host.
  std::optional<Process> receiver_;
  std::vector<WritableEntry> entries_;
  std::uint16_t entry_ = 0;
  /// The slot that was freed last is used first: its memory is likely to be in a cache.
  std::vector<std::uint16_t> free_;
  std::uint64_t sequence_ = 0;
  bool has_failed_ = false;
  Clock::time_point all_used_since_{};
  /// Since when no entry can take the writes of a payload: the notice that one was drained may be
  /// lost.
  std::optional<Clock::time_point> no_entry_since_;
};

Result<std::unique_ptr<RegionWriter>> RegionWriter::open(std::shared_ptr<Endpoint> endpoint,
                                                         Provider provider, LinkId link,
                                                         const Offer& offer, bool may_leave_host) {
  if (offer.provider != print(provider))
    return Error{"the receiver uses provider '" + offer.provider + "', and this process " +
                 std::string{print(provider)}};
  const bool has_entries =
      !offer.entries.empty() && offer.entries.size() <= entries_max &&
      std::ranges::none_of(offer.entries, [](const Entry& entry) {
        return entry.name.empty() || entry.name.size() > Endpoint::name_bytes_max;
      });
  if (!offer.layout.is_valid() || !has_entries) return Error{"an offer of a region is not valid"};
  auto impl = std::make_unique<Impl>(std::move(endpoint), provider, link, offer.layout);
  if (auto opened = impl->open(offer, may_leave_host); !opened) return std::move(opened).error();
  return std::unique_ptr<RegionWriter>{new RegionWriter{std::move(impl)}};
}

RegionWriter::RegionWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RegionWriter::~RegionWriter() = default;

void RegionWriter::begin() { impl_->begin(); }
Result<void> RegionWriter::connect() { return impl_->connect(); }
std::optional<Ticket> RegionWriter::write(std::span<const std::span<const std::byte>> parts,
                                          const std::shared_ptr<const void>& owner) {
  return impl_->write(parts, owner);
}
void RegionWriter::release(const Release& release) { impl_->release(release); }
bool RegionWriter::is_broken() const { return impl_->is_broken(); }

}  // namespace starling::fabric
