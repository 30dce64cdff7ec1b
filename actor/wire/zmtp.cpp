#include "starling/actor/wire/zmtp.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "starling/actor/wire/framing.hpp"
#include "starling/base/tensor_pool.hpp"

namespace starling::wire {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t greeting_size = 64;
constexpr std::size_t signature_size = Signature{}.size();
/// At this offset, a signature has the bytes of `magic`, and then the version of the node's frames.
constexpr std::size_t named_version_offset = 6;
constexpr std::size_t mechanism_offset = 12;
constexpr std::size_t mechanism_size = 20;
/// The most bytes of a command. The longest command of a client is INITIATE.
constexpr std::size_t command_frame_bytes_max = 1024;
/// A part whose length was announced gets at most `announced_bytes_max` bytes of memory at first.
/// Whenever its memory is full, it gets `grown_bytes_min` bytes or twice the bytes received so far,
/// whichever is more.
constexpr std::size_t announced_bytes_max = std::size_t{64} << 10U;
constexpr std::size_t grown_bytes_min = (std::size_t{1} << 20U) + 4096;
/// If at least this many bytes of a part are missing, direct_buffer() offers its memory.
constexpr std::size_t direct_bytes_min = 4096;

constexpr unsigned more_flag = 1;
constexpr unsigned long_flag = 2;
constexpr unsigned command_flag = 4;

constexpr std::string_view null_ready = "\5READY"sv;
constexpr std::string_view metadata =
    "\13Socket-Type\0\0\0\6ROUTER"
    "\10Identity\0\0\0\0"sv;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}

std::string_view mechanism_of(const ZmtpRules& rules) {
  return rules.secret_key ? "CURVE" : "NULL";
}

}  // namespace

Signature own_signature() {
  Signature signature{};
  signature.front() = std::byte{0xff};
  signature.back() = std::byte{0x7f};
  auto* const out = std::ranges::copy(magic, signature.begin() + named_version_offset).out;
  *out = std::byte{version};
  return signature;
}

std::optional<unsigned> frame_version_of(const Signature& signature) {
  const auto named = std::span{signature}.subspan(named_version_offset);
  const bool names_version = signature.front() == std::byte{0xff} &&
                             signature.back() == std::byte{0x7f} &&
                             std::ranges::equal(named.first(magic.size()), magic);
  if (!names_version) return std::nullopt;
  return static_cast<unsigned>(named[magic.size()]);
}

PartBuffer::PartBuffer(std::size_t size, std::size_t offset)
    : size_(size), padding_((64 - offset % 64) % 64) {
  if (size == 0) return;
  capacity_ = padding_ + std::min(size, announced_bytes_max);
  block_ = static_cast<std::byte*>(tensor_pool::allocate(capacity_));
}

PartBuffer::PartBuffer(PartBuffer&& other) noexcept { *this = std::move(other); }

PartBuffer& PartBuffer::operator=(PartBuffer&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(capacity_, other.capacity_);
  std::swap(size_, other.size_);
  std::swap(padding_, other.padding_);
  std::swap(filled_, other.filled_);
  std::swap(dropped_, other.dropped_);
  return *this;
}

PartBuffer::~PartBuffer() {
  if (block_ != nullptr) tensor_pool::release(block_, capacity_);
}

std::span<std::byte> PartBuffer::free_space() {
  if (missing() > 0 && padding_ + filled_ == capacity_) grow();
  return {data() + filled_, std::min(missing(), capacity_ - padding_ - filled_)};
}

void PartBuffer::grow() {
  PartBuffer larger;
  larger.padding_ = padding_;
  larger.capacity_ = padding_ + std::min(size_, std::max(2 * filled_, grown_bytes_min));
  larger.block_ = static_cast<std::byte*>(tensor_pool::allocate(larger.capacity_));
  std::memcpy(larger.data(), data(), filled_);
  std::swap(block_, larger.block_);
  std::swap(capacity_, larger.capacity_);
}

std::size_t ZmtpReceiver::unfinished_bytes() const {
  return message_.head.received() + message_.body.received() + (frame_ ? frame_->received() : 0);
}

std::optional<ZmtpReceiver::Fault> ZmtpReceiver::take(std::span<const std::byte>& bytes) {
  while (!bytes.empty() && !is_message_complete_) {
    if (frame_) {
      const auto free_space = frame_->free_space();
      const std::size_t size = std::min(free_space.size(), bytes.size());
      std::memcpy(free_space.data(), bytes.data(), size);
      bytes = bytes.subspan(size);
      if (const auto fault = take_direct(size)) return fault;
      continue;
    }
    prefix_.at(prefix_size_++) = bytes.front();
    bytes = bytes.subspan(1);
    const bool is_greeting = stage_ == Stage::silent || stage_ == Stage::greeting;
    if (const auto fault = is_greeting ? receive_greeting() : begin_frame()) return fault;
  }
  return std::nullopt;
}

std::span<std::byte> ZmtpReceiver::direct_buffer() {
  if (!frame_ || frame_->missing() < direct_bytes_min) return {};
  return frame_->free_space();
}

std::optional<ZmtpReceiver::Fault> ZmtpReceiver::take_direct(std::size_t bytes) {
  frame_->fill(bytes);
  return frame_->missing() == 0 ? end_frame() : std::nullopt;
}

std::optional<InboundMessage> ZmtpReceiver::take_message() {
  if (!is_message_complete_) return std::nullopt;
  is_message_complete_ = false;
  message_.key = key_;
  return std::exchange(message_, {});
}

/// Called after each byte of the greeting, because ZeroMQ's clients send its first 10 bytes and
/// then wait for the answer.
std::optional<ZmtpReceiver::Fault> ZmtpReceiver::receive_greeting() {
  const std::size_t size = prefix_size_;
  stage_ = Stage::greeting;
  if (size == 1 && prefix_[0] != std::byte{0xff}) return Fault::protocol;
  if (size == signature_size) {
    if ((prefix_[signature_size - 1] & std::byte{1}) == std::byte{0}) return Fault::protocol;
    std::array<std::byte, greeting_size> own_greeting{};
    std::ranges::copy(own_signature(), own_greeting.begin());
    own_greeting[signature_size] = std::byte{3};
    std::ranges::copy(bytes_of(mechanism_of(rules_)), own_greeting.begin() + mechanism_offset);
    own_greeting[mechanism_offset + mechanism_size] = std::byte{rules_.secret_key.has_value()};
    answer_.insert(answer_.end(), own_greeting.begin(), own_greeting.end());
  }
  if (size == signature_size + 1 && prefix_[signature_size] < std::byte{3}) return Fault::protocol;
  if (size < greeting_size) return std::nullopt;
  std::array<char, mechanism_size> own_mechanism{};
  std::ranges::copy(mechanism_of(rules_), own_mechanism.begin());
  if (std::memcmp(prefix_.data() + mechanism_offset, own_mechanism.data(), mechanism_size) != 0)
    return Fault::protocol;
  if (rules_.secret_key)
    curve_ = std::make_unique<CurveServer>(*rules_.secret_key);
  else
    answer_command([] {
      Bytes ready{bytes_of(null_ready).begin(), bytes_of(null_ready).end()};
      ready.insert(ready.end(), bytes_of(metadata).begin(), bytes_of(metadata).end());
      return ready;
    }());
  stage_ = Stage::handshake;
  prefix_size_ = 0;
  return std::nullopt;
}

/// Called after each byte of a frame's prefix: its flags, and its size in 1 or 8 bytes.
std::optional<ZmtpReceiver::Fault> ZmtpReceiver::begin_frame() {
  flags_ = static_cast<unsigned>(prefix_[0]);
  if ((flags_ & ~(more_flag | long_flag | command_flag)) != 0) return Fault::protocol;
  const std::size_t size_bytes = (flags_ & long_flag) != 0 ? 8 : 1;
  if (prefix_size_ < 1 + size_bytes) return std::nullopt;
  std::uint64_t size = 0;
  for (std::size_t i = 1; i <= size_bytes; ++i)
    size = size << 8U | static_cast<std::uint64_t>(prefix_.at(i));
  if (size > frame_bytes_max()) return Fault::protocol;
  prefix_size_ = 0;
  frame_.emplace(static_cast<std::size_t>(size), curve_ ? CurveServer::overhead : 0);
  return size == 0 ? end_frame() : std::nullopt;
}

std::size_t ZmtpReceiver::frame_bytes_max() const {
  const bool is_command = (flags_ & command_flag) != 0;
  if (stage_ != Stage::open || (is_command && !curve_)) return command_frame_bytes_max;
  return rules_.part_bytes_max;
}

std::optional<ZmtpReceiver::Fault> ZmtpReceiver::end_frame() {
  if (stage_ != Stage::open) return receive_handshake();
  PartBuffer part = *std::move(frame_);
  frame_.reset();
  bool has_more = (flags_ & more_flag) != 0;
  bool is_command = (flags_ & command_flag) != 0;
  if (curve_) {
    const auto decrypted = curve_->decrypt(part.filled());
    if (!decrypted) return Fault::protocol;
    has_more = decrypted->has_more;
    is_command = decrypted->is_command;
    part.drop_front(CurveServer::overhead);
  }
  // After the handshake a command is a heartbeat. Starling's own clients do not send any, and this
  // side ignores them.
  if (is_command) return std::nullopt;
  return end_part(std::move(part), has_more);
}

std::optional<ZmtpReceiver::Fault> ZmtpReceiver::receive_handshake() {
  const PartBuffer command = *std::move(frame_);
  frame_.reset();
  const auto body = command.filled();
  if ((flags_ & command_flag) == 0) return Fault::protocol;
  if (!curve_) {
    const auto ready = bytes_of(null_ready);
    if (body.size() < ready.size() || !std::ranges::equal(body.first(ready.size()), ready))
      return Fault::protocol;
    stage_ = Stage::open;
    return std::nullopt;
  }
  if (!is_welcomed_) {
    const auto welcome = curve_->welcome(body);
    if (!welcome) return Fault::protocol;
    answer_command(*welcome);
    is_welcomed_ = true;
    return std::nullopt;
  }
  key_ = curve_->client_key_of(body);
  if (!key_) return Fault::protocol;
  if (!rules_.admits || !rules_.admits(*key_)) return Fault::not_admitted;
  answer_command(curve_->ready(bytes_of(metadata)));
  stage_ = Stage::open;
  return std::nullopt;
}

void ZmtpReceiver::answer_command(std::span<const std::byte> body) {
  answer_.push_back(std::byte{command_flag});
  answer_.push_back(static_cast<std::byte>(body.size()));
  answer_.insert(answer_.end(), body.begin(), body.end());
}

std::optional<ZmtpReceiver::Fault> ZmtpReceiver::end_part(PartBuffer part, bool has_more) {
  ++parts_;
  if (parts_ == 1) {
    message_.head = std::move(part);
  } else if (parts_ == 2) {
    message_.body = std::move(part);
  } else {
    message_ = {};
    message_.is_valid = false;
    if (parts_ > 2 + dropped_parts_max) return Fault::protocol;
  }
  if (!has_more) {
    is_message_complete_ = true;
    parts_ = 0;
  }
  return std::nullopt;
}

}  // namespace starling::wire
