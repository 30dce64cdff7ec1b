/// Internal to the wire: the receiving end of ZMTP 3 (RFC 37), for one connection that a peer has
/// made. It answers the handshake, and cuts what comes into messages of a head and a body. Whatever
/// bytes come, it holds no more than one message: a part that is announced takes memory as it
/// comes, and parts beyond the second take none. No input or output; one thread.
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

/// The bytes of a part that is being received, in memory of tensor_pool.hpp.
class PartBuffer {
 public:
  PartBuffer() = default;
  /// Holds `size` bytes, of which those from `offset` on lie at an address that is a multiple of
  /// 64.
  PartBuffer(std::size_t size, std::size_t offset);
  PartBuffer(PartBuffer&& other) noexcept;
  PartBuffer& operator=(PartBuffer&& other) noexcept;
  ~PartBuffer();

  /// Its filled bytes, without those that drop_first() took away.
  [[nodiscard]] std::span<std::byte> filled() { return {at() + dropped_, filled_ - dropped_}; }
  [[nodiscard]] std::span<const std::byte> filled() const {
    return {at() + dropped_, filled_ - dropped_};
  }
  /// Memory for the missing bytes, or for some of them.
  [[nodiscard]] std::span<std::byte> room();
  void fill(std::size_t bytes) { filled_ += bytes; }
  [[nodiscard]] std::size_t missing() const { return size_ - filled_; }
  [[nodiscard]] std::size_t received() const { return filled_; }
  void drop_first(std::size_t bytes) { dropped_ = bytes; }

 private:
  /// Null where the buffer is for 0 bytes.
  [[nodiscard]] std::byte* at() const { return block_ == nullptr ? nullptr : block_ + lead_; }
  void grow();

  std::byte* block_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  /// Bytes of the block before the first.
  std::size_t lead_ = 0;
  std::size_t filled_ = 0;
  std::size_t dropped_ = 0;
};

/// A message as it came.
struct InboundMessage {
  PartBuffer head;
  PartBuffer body;
  /// The sender's key; absent where nothing is encrypted.
  std::optional<Key> key;
  /// It has no more than these two parts. Else both are empty.
  bool fits = true;
};

struct ZmtpRules {
  /// Absent: nothing is encrypted.
  std::optional<SecretKey> secret_key;
  /// Whether a client of that key may connect.
  std::function<bool(const Key&)> admits;
  std::size_t part_bytes_max = 0;
};

class ZmtpReceiver {
 public:
  /// How far a connection has come.
  enum class Stage { silent, greeting, handshake, open };
  enum class Fault { protocol, not_admitted };

  /// Parts of a message that are read and thrown away; with more the connection ends.
  static constexpr std::size_t excess_parts_max = 8;

  /// `rules` outlive it.
  explicit ZmtpReceiver(const ZmtpRules& rules) : rules_(rules) {}

  /// Takes some of `bytes` and removes them there; stops where a message is whole. Nothing: go on;
  /// a Fault: the connection is to be closed. May throw std::bad_alloc.
  [[nodiscard]] std::optional<Fault> take(std::span<const std::byte>& bytes);

  /// Where the next bytes of a long part may be put, which spares a copy; empty where there is
  /// none. Then take_placed() with their number, instead of take().
  [[nodiscard]] std::span<std::byte> place();
  [[nodiscard]] std::optional<Fault> take_placed(std::size_t bytes);

  /// The message that take() has made whole.
  [[nodiscard]] std::optional<InboundMessage> take_message();
  /// Bytes to send to the other end.
  [[nodiscard]] Bytes take_answer() { return std::exchange(answer_, {}); }

  [[nodiscard]] Stage stage() const noexcept { return stage_; }
  /// Bytes that it holds of a message that is not whole.
  [[nodiscard]] std::size_t unfinished_bytes() const;

 private:
  using Step = std::optional<Fault>;

  Step receive_greeting();
  Step begin_frame();
  Step end_frame();
  Step handshake();
  Step end_part(PartBuffer part, bool has_more);
  void answer_command(std::span<const std::byte> body);
  [[nodiscard]] std::size_t frame_bytes_max() const;

  const ZmtpRules& rules_;
  Stage stage_ = Stage::silent;
  /// The greeting, or the prefix of a frame.
  std::array<std::byte, 64> prefix_{};
  std::size_t prefix_size_ = 0;
  /// The frame that comes; absent between frames.
  std::optional<PartBuffer> frame_;
  unsigned flags_ = 0;
  std::unique_ptr<CurveServer> curve_;
  bool is_welcomed_ = false;
  std::optional<Key> key_;
  Bytes answer_;
  std::size_t parts_ = 0;
  InboundMessage next_;
  bool is_whole_ = false;
};

}  // namespace starling::wire
