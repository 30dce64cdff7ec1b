/// Internal to Transport: the connections that others make, and the messages that come by them. It
/// decides which connections end where there are too many, or where they hold too much memory
/// together. One thread.
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
  /// `tcp://HOST:PORT`, where * is any.
  std::string listen;
  ZmtpRules rules;
  /// Bytes of messages that have begun to come, from all connections together.
  std::size_t unfinished_bytes_max = 0;
  /// Connections whose handshake is complete.
  std::size_t open_max = 0;
  /// Connections whose handshake is not, and how long it may take.
  std::size_t handshakes_max = 0;
  std::chrono::milliseconds handshake_max = std::chrono::seconds{3};
};

class Inbox {
 public:
  using Clock = std::chrono::steady_clock;

  /// An Error gives the system's reason.
  static Result<std::unique_ptr<Inbox>> open(InboxOptions options);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// A descriptor that is readable when something has come.
  [[nodiscard]] int descriptor() const noexcept { return epoll_; }

  /// Returns the next message, by turns from all connections; nothing where none has come.
  [[nodiscard]] std::optional<InboundMessage> next();
  /// Ends handshakes that take too long, and reads newcomers again (see newcomer_bytes_max).
  /// Returns the longest time until it must be called again.
  std::chrono::milliseconds tend();

  /// The number of connections that were closed for their key, for what they sent or held, for a
  /// slow handshake, or for want of capacity.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

 private:
  using Id = std::uint64_t;
  struct Connection;

  explicit Inbox(InboxOptions options);

  std::optional<InboundMessage> decode();
  bool read_more();
  bool read_current();
  bool find_ready();
  void accept_some();
  void add(int descriptor);
  void watch_listener();
  bool make_room();

  void after(Connection& connection, std::optional<ZmtpReceiver::Fault> fault);
  void answer(Connection& connection);
  void pause(const Connection& connection);
  void resume_newcomers(Clock::time_point now);
  void count_held(Connection& connection);
  void end(Id id);
  void refuse(Id id);
  void end_oldest_message();
  void end_a_handshake();
  void end_an_open_one();

  const InboxOptions options_;
  std::string address_;
  int epoll_ = -1;
  int listener_ = -1;
  bool is_listener_watched_ = false;

  Id last_id_ = 0;
  std::unordered_map<Id, std::unique_ptr<Connection>> connections_;
  /// Connections in handshake, in the order in which they were accepted; some have ended, or
  /// opened, since.
  std::deque<Id> handshakes_;
  std::minstd_rand random_{std::random_device{}()};
  std::size_t open_count_ = 0;
  std::size_t held_bytes_ = 0;
  std::uint64_t refused_ = 0;

  /// When the current period of newcomers began, the bytes that they have sent in it, and the
  /// newcomers that are not read until it ends.
  Clock::time_point period_began_{};
  std::size_t newcomer_bytes_ = 0;
  std::vector<Id> paused_;

  /// The connections that have something to read, as the system reported last.
  std::deque<Id> ready_;
  /// The connection whose turn it is, or null, and the bytes read from it that are not decoded.
  Connection* current_ = nullptr;
  std::span<const std::byte> read_;
  std::size_t turn_bytes_ = 0;
  int turns_left_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace starling::wire
