/// Internal to Transport: the connections that peers make to this node, and the messages that are
/// received on them. An Inbox closes connections if there are too many, or if together they hold
/// too much memory. Not thread-safe.
///
/// A newcomer is an open connection that has never sent a whole message. Open means that the
/// handshake is complete.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "starling/actor/wire/zmtp.hpp"
#include "starling/base/result.hpp"

namespace starling::wire {

struct InboxOptions {
  /// Where to listen: `tcp://HOST:PORT`. Host `*` is every interface, port `*` a free port.
  std::string listen;
  ZmtpRules rules;
  /// The most bytes held of unfinished messages, over all connections.
  std::size_t unfinished_bytes_max = 0;
  /// The most open connections.
  std::size_t open_max = 0;
  /// The most connections whose handshake is not complete, and how long a handshake may take.
  std::size_t handshakes_max = 0;
  std::chrono::milliseconds handshake_time_max = std::chrono::seconds{3};
};

class Inbox {
 public:
  using Clock = std::chrono::steady_clock;

  /// Makes an inbox that listens. Returns an Error with the system's reason if it cannot.
  static Result<std::unique_ptr<Inbox>> open(InboxOptions options);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// A descriptor that is readable when next() has something to read.
  [[nodiscard]] int descriptor() const noexcept { return epoll_; }

  /// Accepts connections and reads from them, in turns, until a message is complete. Returns it, or
  /// nothing if no message became complete.
  [[nodiscard]] std::optional<InboundMessage> next();
  /// Closes connections whose handshake takes too long, and resumes reading from suspended
  /// newcomers. Returns the time after which it must be called again at the latest.
  std::chrono::milliseconds maintain();

  /// The number of connections that were closed because their key is not admitted, because of the
  /// bytes that they sent or held, because of a slow handshake, or for lack of capacity.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

 private:
  using Id = std::uint64_t;
  struct Connection;

  explicit Inbox(InboxOptions options);

  std::optional<InboundMessage> decode();
  bool read_more();
  bool read_current();
  bool select_ready();
  void accept_some();
  void add_connection(int descriptor);
  void watch_listener();
  bool free_descriptor();

  void handle_input(Connection& connection, std::optional<ZmtpReceiver::Fault> fault);
  void send_answer(Connection& connection);
  void suspend(const Connection& connection);
  void resume_newcomers(Clock::time_point now);
  void update_held_bytes(Connection& connection);
  void close(Id id);
  /// Closes the connection, and counts it in refused().
  void refuse(Id id);
  void close_oldest_unfinished();
  void close_random_handshake();
  void close_idlest();

  const InboxOptions options_;
  std::string address_;
  int epoll_ = -1;
  int listener_ = -1;
  bool is_listener_watched_ = false;

  Id last_id_ = 0;
  std::unordered_map<Id, std::unique_ptr<Connection>> connections_;
  /// Connections whose handshake was not complete, in the order in which they were accepted. Some
  /// have been closed, or have completed it, since.
  std::deque<Id> handshakes_;
  std::minstd_rand random_{std::random_device{}()};
  std::size_t open_count_ = 0;
  /// The bytes held of unfinished messages, over all connections.
  std::size_t held_bytes_ = 0;
  std::uint64_t refused_ = 0;

  /// The start of the current period, the bytes read from newcomers in it, and the newcomers that
  /// are suspended: they are not read until the period ends.
  Clock::time_point period_started_at_{};
  std::size_t newcomer_bytes_ = 0;
  std::vector<Id> suspended_;

  /// The connections, and the listener, that had something to read at the last epoll_wait().
  std::deque<Id> ready_;
  /// The connection whose turn it is, or null, the bytes that were read from it but not decoded,
  /// and the number of bytes that were read in this turn.
  Connection* current_ = nullptr;
  std::span<const std::byte> undecoded_;
  std::size_t turn_bytes_ = 0;
  /// The turns that the present call of next() may still give.
  int turns_left_ = 0;
  std::vector<std::byte> read_buffer_;
};

}  // namespace starling::wire
