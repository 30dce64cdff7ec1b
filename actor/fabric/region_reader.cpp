#include "starling/actor/fabric/region_reader.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "starling/actor/fabric/endpoint.hpp"
#include "starling/actor/fabric/region.hpp"

namespace starling::fabric {
namespace {

/// The longest time that the thread waits for connections and writes before it checks whether it
/// has to stop.
constexpr std::chrono::milliseconds wait_time{20};

/// The region, and the slots that payloads have freed and that collect() has not returned yet. Each
/// payload shares this object, so the region lives as long as a payload is held.
struct Slots {
  std::unique_ptr<Region> region;
  std::function<void()> on_free;
  /// Once this many slots are freed, on_free() is called and collect() returns a Release.
  int release_slots_min = 1;
  /// One bit for each slot.
  std::atomic<std::uint64_t> freed = 0;

  void free(std::uint16_t slot) {
    const std::uint64_t bit = std::uint64_t{1} << slot;
    if (std::popcount(freed.fetch_or(bit) | bit) >= release_slots_min) on_free();
  }
};

}  // namespace

class RegionReader::Impl {
 public:
  explicit Impl(RegionReaderOptions options) : options_(std::move(options)) {}

  ~Impl() {
    is_stopping_ = true;
    if (thread_.joinable()) thread_.join();
    // If the writer is in this process, both ends of shm use the same memory, and the writer may
    // still use it. So these endpoints are never closed.
    static std::mutex kept_mutex;
    static auto* const kept = new std::vector<std::unique_ptr<Endpoint>>;  // never destroyed
    const std::lock_guard lock{kept_mutex};
    if (options_.provider == Provider::shm && options_.writer &&
        options_.writer->pid == own_claim().pid)
      std::ranges::move(endpoints_, std::back_inserter(*kept));
  }

  Result<void> open() {
    if (!options_.layout.is_valid()) return Error{"the layout of the slots is not valid"};
    std::optional<Process> writer;
    if (options_.writer) {
      auto found = Process::find(*options_.writer);
      if (!found) return std::move(found).error();
      writer.emplace(*std::move(found));
    } else if (options_.provider == Provider::shm) {
      return Error{"provider shm needs a writer on this host"};
    }
    slots_->region = Region::map(options_.layout.bytes(), std::move(writer));
    if (!slots_->region)
      return Error{"no memory for a region of " + std::to_string(options_.layout.bytes()) +
                   " bytes"};
    slots_->on_free = options_.on_free;
    slots_->release_slots_min = std::max<int>(1, static_cast<int>(options_.layout.slots) / 4);
    const bool is_shm = options_.provider == Provider::shm;
    for (std::size_t i = 0; i < (is_shm ? entries_max : 1); ++i) {
      auto endpoint = Endpoint::open(options_.provider, options_.host);
      if (!endpoint) return std::move(endpoint).error();
      auto memory = (*endpoint)->register_memory(slots_->region->bytes());
      if (!memory) return std::move(memory).error();
      entries_.push_back({(*endpoint)->name(), memory->address, memory->key});
      endpoints_.push_back(*std::move(endpoint));
    }
    // The providers other than shm need a thread of this process that makes progress.
    if (!is_shm)
      thread_ = std::thread{[this] {
        while (!is_stopping_) endpoints_.front()->progress(wait_time);
      }};
    return {};
  }

  [[nodiscard]] Offer offer() const {
    return {std::string{print(options_.provider)}, own_claim(), options_.layout, entries_};
  }

  void connect() {
    if (thread_.joinable() || is_connected_) return;
    is_connected_ = true;
    for (const auto& endpoint : endpoints_) {
      endpoint->progress();
      endpoint->hide_name();
    }
  }

  Result<Payload> take(const Ticket& ticket) {
    const auto refuse = [&](const std::string& what) {
      return Error{"a ticket names " + what + ", which is not valid"};
    };
    if (ticket.slot >= options_.layout.slots) return refuse("slot " + std::to_string(ticket.slot));
    if (ticket.entry >= entries_.size()) return refuse("entry " + std::to_string(ticket.entry));
    if (ticket.length == 0 || ticket.length > options_.layout.slot_bytes)
      return refuse("a length of " + std::to_string(ticket.length) + " bytes");
    const std::uint64_t bit = std::uint64_t{1} << ticket.slot;
    if ((held_ & bit) != 0)
      return refuse("slot " + std::to_string(ticket.slot) + " before it was given back");
    std::byte* const memory = slots_->region->bytes().data();
    auto& flag = *reinterpret_cast<std::uint64_t*>(memory + SlotLayout::flag_offset(ticket.slot));
    if (ticket.sequence <= last_sequence_ ||
        std::atomic_ref{flag}.load(std::memory_order_acquire) != ticket.sequence)
      return refuse("write " + std::to_string(ticket.sequence));
    last_sequence_ = ticket.sequence;
    held_ |= bit;
    if (ticket.entry != entry_) left_entry_ = std::exchange(entry_, ticket.entry);
    const std::byte* const payload = memory + options_.layout.payload_offset(ticket.slot);
    return Payload{
        {payload, ticket.length},
        {payload, [slots = slots_, slot = ticket.slot](const void*) { slots->free(slot); }}};
  }

  std::optional<Release> collect() {
    const std::uint64_t freed = slots_->freed.load(std::memory_order_acquire);
    if (std::popcount(freed) < slots_->release_slots_min) return std::nullopt;
    slots_->freed.fetch_and(~freed);
    held_ &= ~freed;
    Release release{freed, entries_max};
    if (left_entry_) {
      release.drained = *left_entry_;
      if (options_.provider == Provider::shm) endpoints_[*left_entry_]->progress();
      left_entry_.reset();
    }
    return release;
  }

  [[nodiscard]] bool is_writer_alive() const { return slots_->region->is_writer_alive(); }
  [[nodiscard]] std::size_t bytes() const { return options_.layout.bytes(); }

 private:
  const RegionReaderOptions options_;
  const std::shared_ptr<Slots> slots_ = std::make_shared<Slots>();
  /// The entries of the offer, and the endpoint of each of them, in the same order.
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  bool is_connected_ = false;
  /// The slots, one bit for each, whose payloads take() has returned and that collect() has not
  /// released since.
  std::uint64_t held_ = 0;
  std::uint64_t last_sequence_ = 0;
  /// The entry of the last ticket.
  std::uint16_t entry_ = 0;
  /// The entry that the writer used before, until collect() drains it.
  std::optional<std::uint16_t> left_entry_;
  std::atomic<bool> is_stopping_ = false;
  /// Makes progress at the only endpoint; does not run if the provider is shm.
  std::thread thread_;
};

Result<std::unique_ptr<RegionReader>> RegionReader::open(RegionReaderOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto opened = impl->open(); !opened) return std::move(opened).error();
  return std::unique_ptr<RegionReader>{new RegionReader{std::move(impl)}};
}

RegionReader::RegionReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RegionReader::~RegionReader() = default;

Offer RegionReader::offer() const { return impl_->offer(); }
void RegionReader::connect() { impl_->connect(); }
Result<Payload> RegionReader::take(const Ticket& ticket) { return impl_->take(ticket); }
std::optional<Release> RegionReader::collect() { return impl_->collect(); }
bool RegionReader::is_writer_alive() const { return impl_->is_writer_alive(); }
std::size_t RegionReader::bytes() const { return impl_->bytes(); }

}  // namespace starling::fabric
