/// Internal to actor/wire: the receiving side of ZMTP 3 (RFC 37), for one connection that a peer
/// has made. It answers the handshake, and divides the received bytes into messages of a head and a
/// body. It never holds more than one message: the memory of an announced part grows as its bytes
/// are received, and parts beyond the second are dropped. No input or output; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "starling/actor/wire/archive.hpp"
#include "starling/actor/wire/curve.hpp"
#include "starling/actor/wire/peer.hpp"

namespace starling::wire {

/// The bytes of a message part that is being received, in memory of tensor_pool.hpp.
class PartBuffer {
 public:
  PartBuffer() = default;
  /// Makes a buffer for `size` bytes. The byte at `offset` gets an address that is a multiple
  /// of 64.
  PartBuffer(std::size_t size, std::size_t offset);
  PartBuffer(PartBuffer&& other) noexcept;
  PartBuffer& operator=(PartBuffer&& other) noexcept;
  ~PartBuffer();

  /// The received bytes, without those that drop_front() removed.
  [[nodiscard]] std::span<std::byte> filled() { return {data() + dropped_, filled_ - dropped_}; }
  [[nodiscard]] std::span<const std::byte> filled() const {
    return {data() + dropped_, filled_ - dropped_};
  }
  /// Memory for the missing bytes, or for the first of them.
  [[nodiscard]] std::span<std::byte> free_space();
  /// Counts `bytes` bytes as received, which the caller has written to free_space().
  void fill(std::size_t bytes) { filled_ += bytes; }
  [[nodiscard]] std::size_t missing() const { return size_ - filled_; }
  [[nodiscard]] std::size_t received() const { return filled_; }
  void drop_front(std::size_t bytes) { dropped_ = bytes; }

 private:
  /// Null if the buffer is for 0 bytes.
  [[nodiscard]] std::byte* data() const { return block_ == nullptr ? nullptr : block_ + padding_; }
  void grow();

  std::byte* block_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  /// Unused bytes at the start of the block, which align the byte at `offset`.
  std::size_t padding_ = 0;
  std::size_t filled_ = 0;
  std::size_t dropped_ = 0;
};

/// A received message.
struct InboundMessage {
  PartBuffer head;
  PartBuffer body;
  /// The sender's public key; absent if nothing is encrypted.
  std::optional<Key> key;
  /// False if the message had more than two parts. Then head and body are empty.
  bool is_valid = true;
};

struct ZmtpRules {
  /// The server's secret key. Absent: nothing is encrypted.
  std::optional<SecretKey> secret_key;
  /// Whether a client with this public key may connect.
  std::function<bool(const Key&)> admits;
  std::size_t part_bytes_max = 0;
};

class ZmtpReceiver {
 public:
  /// The stages of a connection, in order. A silent one has not sent a byte yet.
  enum class Stage { silent, greeting, handshake, open };
  enum class Fault { protocol, not_admitted };

  /// The most parts beyond the second that are received and dropped. A message with more of them
  /// closes the connection.
  static constexpr std::size_t dropped_parts_max = 8;

  /// Requires: `rules` outlive this object.
  explicit ZmtpReceiver(const ZmtpRules& rules) : rules_(rules) {}

  /// Takes bytes from the front of `bytes` until they are used up or a message is complete. Returns
  /// a Fault if the connection is to be closed. May throw std::bad_alloc.
  [[nodiscard]] std::optional<Fault> take(std::span<const std::byte>& bytes);

  /// The memory into which the caller may receive the next bytes of a long part, which saves a
  /// copy; empty if no long part is being received. The caller then passes the number of received
  /// bytes to take_direct(), instead of calling take().
  [[nodiscard]] std::span<std::byte> direct_buffer();
  [[nodiscard]] std::optional<Fault> take_direct(std::size_t bytes);

  /// Returns the message, if take() or take_direct() has completed one.
  [[nodiscard]] std::optional<InboundMessage> take_message();
  /// Returns the bytes that are to be sent to the peer now.
  [[nodiscard]] Bytes take_answer() { return std::exchange(answer_, {}); }

  [[nodiscard]] Stage stage() const noexcept { return stage_; }
  /// The number of bytes held of a message that is not complete.
  [[nodiscard]] std::size_t unfinished_bytes() const;

 private:
  std::optional<Fault> receive_greeting();
  std::optional<Fault> begin_frame();
  std::optional<Fault> end_frame();
  std::optional<Fault> receive_handshake();
  std::optional<Fault> end_part(PartBuffer part, bool has_more);
  void answer_command(std::span<const std::byte> body);
  [[nodiscard]] std::size_t frame_bytes_max() const;

  const ZmtpRules& rules_;
  Stage stage_ = Stage::silent;
  /// The greeting, or the prefix of a frame.
  std::array<std::byte, 64> prefix_{};
  std::size_t prefix_size_ = 0;
  /// The frame that is being received; absent between frames.
  std::optional<PartBuffer> frame_;
  unsigned flags_ = 0;
  std::unique_ptr<CurveServer> curve_;
  bool is_welcomed_ = false;
  std::optional<Key> key_;
  Bytes answer_;
  /// The number of complete parts of `message_`.
  std::size_t parts_ = 0;
  InboundMessage message_;
  bool is_message_complete_ = false;
};

}  // namespace starling::wire
