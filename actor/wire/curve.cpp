#include "starling/actor/wire/curve.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace starling::wire {
namespace {

using namespace std::string_view_literals;

static_assert(crypto_box_PUBLICKEYBYTES == sizeof(Key) && crypto_box_BEFORENMBYTES == sizeof(Key));

constexpr std::string_view hello_name = "\5HELLO\1\0"sv;
constexpr std::string_view welcome_name = "\7WELCOME"sv;
constexpr std::string_view initiate_name = "\10INITIATE"sv;
constexpr std::string_view ready_name = "\5READY"sv;
constexpr std::string_view message_name = "\7MESSAGE"sv;

constexpr std::size_t short_nonce_size = 8;
constexpr std::size_t long_nonce_size = 16;
constexpr std::size_t mac_size = crypto_box_MACBYTES;
constexpr std::size_t cookie_size = 96;
/// Pads HELLO to at least the length of WELCOME, so that no peer can make this server send more
/// than the peer sent.
constexpr std::size_t hello_padding = 72;
constexpr std::size_t signature_size = 64 + mac_size;
constexpr std::size_t vouch_size = 2 * sizeof(Key) + mac_size;
constexpr std::size_t hello_size =
    hello_name.size() + hello_padding + sizeof(Key) + short_nonce_size + signature_size;
constexpr std::size_t initiate_size_min = initiate_name.size() + cookie_size + short_nonce_size +
                                          mac_size + sizeof(Key) + long_nonce_size + vouch_size;

using Nonce = std::array<std::uint8_t, crypto_box_NONCEBYTES>;

const std::uint8_t* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
std::uint8_t* raw_out(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

bool begins_with(std::span<const std::byte> bytes, std::string_view name) {
  return bytes.size() >= name.size() && std::memcmp(bytes.data(), name.data(), name.size()) == 0;
}

/// Makes a nonce of a prefix, which the RFC fixes, and a suffix, which the message holds. Requires:
/// prefix and suffix together have the size of a nonce.
Nonce nonce_of(std::string_view prefix, std::span<const std::byte> suffix) {
  Nonce nonce{};
  std::memcpy(nonce.data(), prefix.data(), prefix.size());
  std::memcpy(nonce.data() + prefix.size(), suffix.data(), suffix.size());
  return nonce;
}

/// Reads a short nonce as a big-endian number.
std::uint64_t nonce_number(std::span<const std::byte> nonce) {
  std::uint64_t number = 0;
  for (const std::byte byte : nonce) number = number << 8U | static_cast<std::uint64_t>(byte);
  return number;
}

void append(Bytes& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span{text});
  out.insert(out.end(), bytes.begin(), bytes.end());
}
void append(Bytes& out, std::span<const std::uint8_t> numbers) {
  const auto bytes = std::as_bytes(numbers);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

CurveServer::CurveServer(const SecretKey& secret_key) : secret_key_(secret_key) {}

CurveServer::~CurveServer() {
  sodium_memzero(transient_secret_key_.data(), transient_secret_key_.size());
  sodium_memzero(shared_secret_.data(), shared_secret_.size());
}

std::optional<Bytes> CurveServer::welcome(std::span<const std::byte> hello) {
  if (hello.size() != hello_size || !begins_with(hello, hello_name)) return std::nullopt;
  auto rest = hello.subspan(hello_name.size() + hello_padding);
  std::memcpy(client_transient_key_.data(), rest.data(), sizeof(Key));
  rest = rest.subspan(sizeof(Key));
  const Nonce hello_nonce = nonce_of("CurveZMQHELLO---", rest.first(short_nonce_size));
  std::array<std::uint8_t, 64> zeros{};
  const auto box = rest.subspan(short_nonce_size);
  if (crypto_box_open_easy(zeros.data(), raw(box), box.size(), hello_nonce.data(),
                           client_transient_key_.data(), secret_key_.data()) != 0)
    return std::nullopt;

  crypto_box_keypair(transient_public_key_.data(), transient_secret_key_.data());
  if (crypto_box_beforenm(shared_secret_.data(), client_transient_key_.data(),
                          transient_secret_key_.data()) != 0)
    return std::nullopt;
  // RFC 26 lets a server encrypt its state into the cookie. This server keeps its state, so its
  // cookie is random bytes that the client returns.
  randombytes_buf(cookie_.data(), cookie_.size());
  Bytes plain;
  append(plain, transient_public_key_);
  append(plain, cookie_);
  std::array<std::uint8_t, long_nonce_size> suffix{};
  randombytes_buf(suffix.data(), suffix.size());
  const Nonce welcome_nonce = nonce_of("WELCOME-", std::as_bytes(std::span{suffix}));
  std::array<std::uint8_t, sizeof(Key) + cookie_size + mac_size> sealed{};
  if (crypto_box_easy(sealed.data(), raw(std::span<const std::byte>{plain}), plain.size(),
                      welcome_nonce.data(), client_transient_key_.data(), secret_key_.data()) != 0)
    return std::nullopt;
  Bytes welcome;
  append(welcome, welcome_name);
  append(welcome, suffix);
  append(welcome, sealed);
  return welcome;
}

std::optional<Key> CurveServer::client_key_of(std::span<const std::byte> initiate) {
  if (initiate.size() < initiate_size_min || !begins_with(initiate, initiate_name))
    return std::nullopt;
  auto rest = initiate.subspan(initiate_name.size());
  if (sodium_memcmp(rest.data(), cookie_.data(), cookie_size) != 0) return std::nullopt;
  rest = rest.subspan(cookie_size);
  const Nonce nonce = nonce_of("CurveZMQINITIATE", rest.first(short_nonce_size));
  last_nonce_ = nonce_number(rest.first(short_nonce_size));
  const auto box = rest.subspan(short_nonce_size);
  Bytes plain(box.size() - mac_size);
  if (crypto_box_open_easy_afternm(raw_out(plain), raw(box), box.size(), nonce.data(),
                                   shared_secret_.data()) != 0)
    return std::nullopt;
  Key client{};
  std::memcpy(client.data(), plain.data(), client.size());
  const std::span<const std::byte> vouch{plain.data() + sizeof(Key), long_nonce_size + vouch_size};
  return is_vouched(vouch, client) ? std::optional{client} : std::nullopt;
}

bool CurveServer::is_vouched(std::span<const std::byte> vouch, const Key& client) const {
  const Nonce nonce = nonce_of("VOUCH---", vouch.first(long_nonce_size));
  std::array<std::uint8_t, 2 * sizeof(Key)> vouched{};
  if (crypto_box_open_easy(vouched.data(), raw(vouch.subspan(long_nonce_size)), vouch_size,
                           nonce.data(), client.data(), transient_secret_key_.data()) != 0)
    return false;
  Key server_key{};
  crypto_scalarmult_base(server_key.data(), secret_key_.data());
  return std::equal(client_transient_key_.begin(), client_transient_key_.end(), vouched.begin()) &&
         std::equal(server_key.begin(), server_key.end(), vouched.begin() + sizeof(Key));
}

Bytes CurveServer::ready(std::span<const std::byte> metadata) {
  // A constant nonce is safe: READY is the only message that the server encrypts with
  // `shared_secret_`.
  constexpr std::array<std::uint8_t, short_nonce_size> suffix{0, 0, 0, 0, 0, 0, 0, 1};
  const Nonce nonce = nonce_of("CurveZMQREADY---", std::as_bytes(std::span{suffix}));
  std::vector<std::uint8_t> sealed(metadata.size() + mac_size);
  crypto_box_easy_afternm(sealed.data(), raw(metadata), metadata.size(), nonce.data(),
                          shared_secret_.data());
  Bytes ready;
  append(ready, ready_name);
  append(ready, suffix);
  append(ready, sealed);
  return ready;
}

std::optional<CurveServer::Decrypted> CurveServer::decrypt(std::span<std::byte> message) {
  if (message.size() < overhead || !begins_with(message, message_name)) return std::nullopt;
  const auto suffix = message.subspan(message_name.size(), short_nonce_size);
  const std::uint64_t number = nonce_number(suffix);
  if (number <= last_nonce_) return std::nullopt;
  const Nonce nonce = nonce_of("CurveZMQMESSAGEC", suffix);
  const auto mac = message.subspan(message_name.size() + short_nonce_size, mac_size);
  const auto sealed = message.subspan(message_name.size() + short_nonce_size + mac_size);
  if (crypto_box_open_detached_afternm(raw_out(sealed), raw(sealed), raw(mac), sealed.size(),
                                       nonce.data(), shared_secret_.data()) != 0)
    return std::nullopt;
  last_nonce_ = number;
  const auto flags = static_cast<unsigned>(sealed[0]);
  return Decrypted{(flags & 1U) != 0, (flags & 2U) != 0, sealed.subspan(1)};
}

}  // namespace starling::wire
