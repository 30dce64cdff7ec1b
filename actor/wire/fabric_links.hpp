/// Internal to Transport: the regions of other processes that this one writes to, and the regions
/// of this process that others write to. A region is memory that its process offers to one writer.
/// The transports agree on regions by frames over ZeroMQ:
///
///     writer    AskRegion      WriterBegun       Ticket (with the head of a message)
///     receiver           Offer            RegionReady                              Release
///
/// If the body of a message was written into a region, the message has this form:
///
///     magic "Sf", version, 0; then the ticket of the write, in 24 bytes; then the message's head
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/fabric/region_reader.hpp"
#include "starling/actor/fabric/region_writer.hpp"
#include "starling/actor/wire/frame.hpp"
#include "starling/actor/wire/peer.hpp"
#include "starling/actor/wire/transport.hpp"

namespace starling::wire {

/// Asks the receiver for a region.
struct AskRegion {
  /// The address, without a key, to which the receiver answers. The receiver takes the key from the
  /// connection on which this message has come.
  std::string address;
  /// The provider that the writer uses: `shm`, `tcp` or `verbs`.
  std::string provider;
  /// Identifies the sender's process, which will write into the region.
  fabric::ProcessClaim writer;

  static constexpr auto fields(auto& m) { return std::tie(m.address, m.provider, m.writer); }
};
/// Says that the receiver of AskRegion offers no region, and why.
struct RegionRefused {
  std::string why;
  static constexpr auto fields(auto& m) { return std::tie(m.why); }
};
/// Says that the writer has begun to connect.
struct WriterBegun {};
/// Says that the writer may write.
struct RegionReady {};

struct FabricMessage {
  /// Drawn by the writer when it asks.
  fabric::LinkId link = 0;
  std::variant<AskRegion, RegionRefused, fabric::Offer, WriterBegun, RegionReady, fabric::Release>
      body;

  static constexpr auto fields(auto& m) { return std::tie(m.link, m.body); }
};

[[nodiscard]] Frame encode(const FabricMessage& message);
[[nodiscard]] Result<FabricMessage> decode_fabric(const FrameView& frame);
/// Returns true if `head` is the head of a frame of this version with a FabricMessage.
[[nodiscard]] bool is_fabric_frame(std::span<const std::byte> head);

/// The bytes of a ticket with the four bytes before it.
inline constexpr std::size_t ticket_bytes = 28;
using TicketPrefix = std::array<std::byte, ticket_bytes>;
[[nodiscard]] TicketPrefix print_ticket(const fabric::Ticket& ticket);
/// Returns nothing if the message has no ticket.
[[nodiscard]] std::optional<fabric::Ticket> read_ticket(std::span<const std::byte> head);

/// Frames to be sent to peers.
using FabricFrames = std::vector<std::pair<Peer, Frame>>;

/// The regions that this process writes to. Not thread-safe.
class FabricWriters {
 public:
  /// Returns an Error if the provider cannot be used. Requires: options.provider.
  static Result<std::unique_ptr<FabricWriters>> open(FabricOptions options);

  /// Writes the parts into a region of the peer. Returns nothing if they must travel by ZeroMQ:
  /// they are short, or no slot is free, or the peer has not offered a region. If the peer has
  /// offered none, or its region is broken, asks it for a region.
  [[nodiscard]] std::optional<fabric::Ticket> write(const Peer& peer,
                                                    const std::vector<Attachment>& parts);
  /// Returns true if the peer has offered a region and the connection to it is complete.
  [[nodiscard]] bool is_ready(const Peer& peer) const;
  /// Handles a message from the holder of `key`.
  void on(const Key& key, const FabricMessage& message);
  void forget(const Peer& peer) { links_.erase(peer); }
  /// Returns the frames to be sent.
  [[nodiscard]] FabricFrames take_frames() { return std::exchange(frames_, {}); }
  [[nodiscard]] bool has_frames() const noexcept { return !frames_.empty(); }
  /// The number of writes. Thread-safe.
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Link {
    fabric::LinkId id = 0;
    /// When the peer was last asked for a region; a time in the future delays the next request.
    Clock::time_point asked_at{};
    /// Null until the peer has offered a region.
    std::unique_ptr<fabric::RegionWriter> writer = nullptr;
    bool is_ready = false;
    /// True if the last region could not be written to.
    bool has_failed = false;
  };

  FabricWriters(FabricOptions options, std::shared_ptr<fabric::Endpoint> endpoint)
      : options_(std::move(options)), endpoint_(std::move(endpoint)) {}
  void ask(const Peer& peer, Link& link);

  const FabricOptions options_;
  const std::shared_ptr<fabric::Endpoint> endpoint_;
  std::unordered_map<Peer, Link, PeerHash> links_;
  FabricFrames frames_;
  std::atomic<std::uint64_t> written_ = 0;
};

/// The regions that others write to. Not thread-safe, except that payloads may be released on any
/// thread.
class FabricReaders {
 public:
  /// `own_key` is the public key of this transport. `wake` is called if the release of a payload
  /// gives take_frames() a frame to send, on the thread that released the payload. `wake` must be
  /// callable as long as a payload is held.
  FabricReaders(FabricOptions options, const Key& own_key, std::function<void()> wake)
      : options_(std::move(options)), own_key_(own_key), wake_(std::move(wake)) {}

  /// Handles a message from the holder of `key`.
  void on(const Key& key, const FabricMessage& message);
  /// Returns the body of a message from the holder of `key`; nothing if the ticket is not valid.
  [[nodiscard]] std::optional<fabric::Payload> take(const Key& key, const fabric::Ticket& ticket);
  /// Returns the frames to be sent. Removes the regions of processes that have ended.
  [[nodiscard]] FabricFrames take_frames();

 private:
  struct Reader {
    fabric::LinkId id = 0;
    Peer peer;
    std::unique_ptr<fabric::RegionReader> region;
  };

  Result<fabric::Offer> offer(const Peer& peer, fabric::LinkId link, const AskRegion& ask);
  void answer(const Peer& peer, const FabricMessage& message) {
    frames_.emplace_back(peer, encode(message));
  }

  const FabricOptions options_;
  const Key own_key_;
  const std::function<void()> wake_;
  std::unordered_map<Key, Reader, KeyHash> readers_;
  FabricFrames frames_;
  std::chrono::steady_clock::time_point next_check_at_{};
};

/// One-sided writes in both directions. The transport's thread calls these functions. Other threads
/// use writers(), if they hold the transport's lock, and the counts.
class FabricLinks {
 public:
  /// `address` is where the transport listens, `mutex` its lock. Returns an Error that says why the
  /// provider cannot be used.
  static Result<std::unique_ptr<FabricLinks>> open(const TransportOptions& options,
                                                   const std::string& address, std::mutex& mutex,
                                                   std::function<void()> wake) {
    if (!options.keys) return Error{"one-sided tensors need keys; valid: a key file, or no fabric"};
    FabricOptions fabric = options.fabric;
    if (fabric.address.empty()) fabric.address = address;
    auto writers = FabricWriters::open(fabric);
    if (!writers) return std::move(writers).error();
    return std::unique_ptr<FabricLinks>{
        new FabricLinks{options, mutex, *std::move(writers), std::move(fabric), std::move(wake)}};
  }

  [[nodiscard]] FabricWriters& writers() const noexcept { return *writers_; }
  [[nodiscard]] std::uint64_t read_count() const noexcept { return read_count_; }

  /// Puts the body that a ticket names, and the head behind the ticket, into `incoming`. Returns
  /// false if the ticket is not valid.
  [[nodiscard]] bool take(const fabric::Ticket& ticket, IncomingFrame& incoming) {
    if (!is_from_member(incoming)) return false;
    auto payload = readers_.take(*incoming.key, ticket);
    if (!payload) return false;
    ++read_count_;
    incoming.frame.head = incoming.frame.head.subspan(ticket_bytes);
    incoming.frame.body = payload->bytes;
    incoming.frame.body_owner = std::move(payload->owner);
    return true;
  }

  /// Handles a frame with a FabricMessage.
  void receive(const IncomingFrame& incoming) {
    if (!is_from_member(incoming)) return;
    const auto message = decode_fabric(incoming.frame);
    if (!message) return;
    readers_.on(*incoming.key, *message);
    const std::lock_guard lock{mutex_};
    writers_->on(*incoming.key, *message);
  }

  /// Returns the frames to be sent. Requires: the lock is held.
  [[nodiscard]] FabricFrames take_frames() {
    auto frames = readers_.take_frames();
    std::ranges::move(writers_->take_frames(), std::back_inserter(frames));
    return frames;
  }

 private:
  FabricLinks(const TransportOptions& options, std::mutex& mutex,
              std::unique_ptr<FabricWriters> writers, FabricOptions fabric,
              std::function<void()> wake)
      : options_(options),
        mutex_(mutex),
        writers_(std::move(writers)),
        readers_(std::move(fabric), options.keys->public_key, std::move(wake)) {}

  /// True if the sender has a key other than the handshake key, which every key file holds.
  [[nodiscard]] bool is_from_member(const IncomingFrame& incoming) const {
    return incoming.key &&
           !(options_.handshake_keys && *incoming.key == options_.handshake_keys->public_key);
  }

  const TransportOptions& options_;
  std::mutex& mutex_;
  const std::unique_ptr<FabricWriters> writers_;
  FabricReaders readers_;
  std::atomic<std::uint64_t> read_count_ = 0;
};

}  // namespace starling::wire
