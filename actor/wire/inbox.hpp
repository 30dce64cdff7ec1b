/// Internal to Transport: the connections that peers make to this node, and the messages that are
/// received on them. It decides which connections to close if there are too many, or if together
/// they hold too much memory. One thread.
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
  /// `tcp://HOST:PORT`. Host `*` is every interface, port `*` a free port.
  std::string listen;
  ZmtpRules rules;
  /// The most bytes held of unfinished messages, over all connections.
  std::size_t unfinished_bytes_max = 0;
  /// The most connections whose handshake is complete.
  std::size_t open_max = 0;
  /// The most connections whose handshake is not complete, and how long a handshake may take.
  std::size_t handshakes_max = 0;
  std::chrono::milliseconds handshake_max = std::chrono::seconds{3};
};

class Inbox {
 public:
  using Clock = std::chrono::steady_clock;

  /// Listens. An Error gives the system's reason.
  static Result<std::unique_ptr<Inbox>> open(InboxOptions options);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// A descriptor that becomes readable when next() has something to do.
  [[nodiscard]] int descriptor() const noexcept { return epoll_; }

  /// Returns the next message, or nothing if no message is complete. The connections take turns.
  [[nodiscard]] std::optional<InboundMessage> next();
  /// Closes connections whose handshake takes too long, and lets suspended newcomers be read again.
  /// Returns the time after which it must be called again at the latest.
  ///
  /// A newcomer is an open connection that has never sent a whole message.
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
  void add(int descriptor);
  void watch_listener();
  bool free_descriptor();

  void handle_input(Connection& connection, std::optional<ZmtpReceiver::Fault> fault);
  void send_answer(Connection& connection);
  void suspend(const Connection& connection);
  void resume_newcomers(Clock::time_point now);
  void count_unfinished(Connection& connection);
  void close(Id id);
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
  /// Connections that were in handshake, in the order in which they were accepted. Some have been
  /// closed, or have completed it, since.
  std::deque<Id> handshakes_;
  std::minstd_rand random_{std::random_device{}()};
  std::size_t open_count_ = 0;
  std::size_t held_bytes_ = 0;
  std::uint64_t refused_ = 0;

  /// The start of the current period, the bytes that newcomers have sent in it, and the newcomers
  /// that are suspended, which means not read, until it ends.
  Clock::time_point period_started_at_{};
  std::size_t newcomer_bytes_ = 0;
  std::vector<Id> suspended_;

  /// The connections that had something to read when the system was last asked.
  std::deque<Id> ready_;
  /// The connection whose turn it is, or null, and the bytes that were read from it but not
  /// decoded.
  Connection* current_ = nullptr;
  std::span<const std::byte> undecoded_;
  std::size_t turn_bytes_ = 0;
  int turns_left_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace starling::wire
