/// Internal to actor/wire: the receiving side of ZMTP 3 (RFC 37), for one connection that a peer
/// has made. ZmtpReceiver answers the handshake, and divides the received bytes into messages of a
/// head and a body. It never holds more than one message: the memory of an announced part grows as
/// its bytes are received, and parts beyond the second are dropped. The caller does the input and
/// output. Not thread-safe.
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

/// The first bytes of each greeting. ZMTP gives 8 of them no meaning. A node names there the
/// version of its frames, so that programs of another version can tell why they get no answer.
using Signature = std::array<std::byte, 10>;
[[nodiscard]] Signature own_signature();
/// Returns the version of the frames that the sender of a signature uses; nullopt if the signature
/// names none.
[[nodiscard]] std::optional<unsigned> frame_version_of(const Signature& signature);

/// The bytes of a message part that is being received, in memory from tensor_pool.hpp.
class PartBuffer {
 public:
  PartBuffer() = default;
  /// Makes a buffer for a part of `size` bytes. The byte at `offset` gets an address that is a
  /// multiple of 64.
  PartBuffer(std::size_t size, std::size_t offset);
  PartBuffer(PartBuffer&& other) noexcept;
  PartBuffer& operator=(PartBuffer&& other) noexcept;
  ~PartBuffer();

  /// The received bytes, without those that drop_front() has removed.
  [[nodiscard]] std::span<std::byte> filled() { return {data() + dropped_, filled_ - dropped_}; }
  [[nodiscard]] std::span<const std::byte> filled() const {
    return {data() + dropped_, filled_ - dropped_};
  }
  /// Returns memory for the next missing bytes, which may be fewer than all that are missing.
  /// Allocates it if necessary.
  [[nodiscard]] std::span<std::byte> free_space();
  /// Counts as received `bytes` bytes that the caller has written to free_space().
  void fill(std::size_t bytes) { filled_ += bytes; }
  [[nodiscard]] std::size_t missing() const { return size_ - filled_; }
  [[nodiscard]] std::size_t received() const { return filled_; }
  /// Removes the first `bytes` bytes of the part from filled(). Call it once at most.
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

/// The rules by which a ZmtpReceiver accepts clients and messages.
struct ZmtpRules {
  /// The server's secret key. Absent: nothing is encrypted.
  std::optional<SecretKey> secret_key;
  /// Returns true if a client with this public key may connect. Null: no client may.
  std::function<bool(const Key&)> admits;
  /// The most bytes of a message part; a connection that announces a longer part is closed.
  std::size_t part_bytes_max = 0;
};

class ZmtpReceiver {
 public:
  /// The stages of a connection, in order. In stage `silent` the peer has not sent a byte yet.
  enum class Stage { silent, greeting, handshake, open };
  enum class Fault { protocol, not_admitted };

  /// The most parts beyond the second that are received and dropped. A message with more of them
  /// closes the connection.
  static constexpr std::size_t dropped_parts_max = 8;

  /// Requires: `rules` outlives this object.
  explicit ZmtpReceiver(const ZmtpRules& rules) : rules_(rules) {}

  /// Consumes bytes from the front of `bytes` until none is left or a message is complete. Returns
  /// a Fault if the caller must close the connection. May throw std::bad_alloc.
  [[nodiscard]] std::optional<Fault> take(std::span<const std::byte>& bytes);

  /// Returns the memory into which the caller may receive the next bytes of a long part, which
  /// saves a copy; empty if no long part is being received. After it has received bytes there, the
  /// caller calls take_direct() with their number, instead of take().
  [[nodiscard]] std::span<std::byte> direct_buffer();
  [[nodiscard]] std::optional<Fault> take_direct(std::size_t bytes);

  /// Returns the message, if take() or take_direct() has completed one.
  [[nodiscard]] std::optional<InboundMessage> take_message();
  /// Returns the bytes that are to be sent to the peer now.
  [[nodiscard]] Bytes take_answer() { return std::exchange(answer_, {}); }

  [[nodiscard]] Stage stage() const noexcept { return stage_; }
  /// The number of bytes held of a message that is not complete yet.
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
  /// The ZMTP frame (a message part or a command) that is being received, absent between frames,
  /// and its flags.
  std::optional<PartBuffer> frame_;
  unsigned flags_ = 0;
  std::unique_ptr<CurveServer> curve_;
  /// True once a valid HELLO was answered with WELCOME.
  bool is_welcomed_ = false;
  /// The client's public key, once the handshake has proved it.
  std::optional<Key> key_;
  /// The bytes that take_answer() will return.
  Bytes answer_;
  /// The number of complete parts of `message_`.
  std::size_t parts_ = 0;
  InboundMessage message_;
  bool is_message_complete_ = false;
};

}  // namespace starling::wire
