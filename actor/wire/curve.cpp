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

constexpr std::size_t short_nonce = 8;
constexpr std::size_t long_nonce = 16;
constexpr std::size_t mac_size = crypto_box_MACBYTES;
constexpr std::size_t cookie_size = 96;
/// HELLO is padded to at least the length of WELCOME, so that no peer can make us send more than it
/// sent.
constexpr std::size_t hello_padding = 72;
constexpr std::size_t signature_size = 64 + mac_size;
constexpr std::size_t vouch_size = 2 * sizeof(Key) + mac_size;
constexpr std::size_t hello_size =
    hello_name.size() + hello_padding + sizeof(Key) + short_nonce + signature_size;
constexpr std::size_t initiate_size_min = initiate_name.size() + cookie_size + short_nonce +
                                          mac_size + sizeof(Key) + long_nonce + vouch_size;

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

/// Makes a nonce of a fixed prefix and bytes of the message. Requires: together they fill it.
Nonce nonce_of(std::string_view prefix, std::span<const std::byte> said) {
  Nonce nonce{};
  std::memcpy(nonce.data(), prefix.data(), prefix.size());
  std::memcpy(nonce.data() + prefix.size(), said.data(), said.size());
  return nonce;
}

std::uint64_t number_of(std::span<const std::byte> nonce) {
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

CurveServer::CurveServer(const SecretKey& secret_key) : secret_(secret_key) {}

CurveServer::~CurveServer() {
  sodium_memzero(short_secret_.data(), short_secret_.size());
  sodium_memzero(shared_.data(), shared_.size());
}

std::optional<Bytes> CurveServer::welcome(std::span<const std::byte> hello) {
  if (hello.size() != hello_size || !begins_with(hello, hello_name)) return std::nullopt;
  auto rest = hello.subspan(hello_name.size() + hello_padding);
  std::memcpy(client_short_.data(), rest.data(), sizeof(Key));
  rest = rest.subspan(sizeof(Key));
  const Nonce nonce = nonce_of("CurveZMQHELLO---", rest.first(short_nonce));
  std::array<std::uint8_t, 64> zeros{};
  const auto box = rest.subspan(short_nonce);
  if (crypto_box_open_easy(zeros.data(), raw(box), box.size(), nonce.data(), client_short_.data(),
                           secret_.data()) != 0)
    return std::nullopt;

  crypto_box_keypair(short_public_.data(), short_secret_.data());
  if (crypto_box_beforenm(shared_.data(), client_short_.data(), short_secret_.data()) != 0)
    return std::nullopt;
  // The cookie is random: the client only returns it, and the state that it stands for is kept
  // here.
  randombytes_buf(cookie_.data(), cookie_.size());
  Bytes plain;
  append(plain, short_public_);
  append(plain, cookie_);
  std::array<std::uint8_t, long_nonce> said{};
  randombytes_buf(said.data(), said.size());
  const Nonce ours = nonce_of("WELCOME-", std::as_bytes(std::span{said}));
  std::array<std::uint8_t, sizeof(Key) + cookie_size + mac_size> sealed{};
  if (crypto_box_easy(sealed.data(), raw(std::span<const std::byte>{plain}), plain.size(),
                      ours.data(), client_short_.data(), secret_.data()) != 0)
    return std::nullopt;
  Bytes welcome;
  append(welcome, welcome_name);
  append(welcome, said);
  append(welcome, sealed);
  return welcome;
}

std::optional<Key> CurveServer::client_of(std::span<const std::byte> initiate) {
  if (initiate.size() < initiate_size_min || !begins_with(initiate, initiate_name))
    return std::nullopt;
  auto rest = initiate.subspan(initiate_name.size());
  if (sodium_memcmp(rest.data(), cookie_.data(), cookie_size) != 0) return std::nullopt;
  rest = rest.subspan(cookie_size);
  const Nonce nonce = nonce_of("CurveZMQINITIATE", rest.first(short_nonce));
  last_nonce_ = number_of(rest.first(short_nonce));
  const auto box = rest.subspan(short_nonce);
  Bytes plain(box.size() - mac_size);
  if (crypto_box_open_easy_afternm(raw_out(plain), raw(box), box.size(), nonce.data(),
                                   shared_.data()) != 0)
    return std::nullopt;
  Key client{};
  std::memcpy(client.data(), plain.data(), client.size());
  const std::span<const std::byte> vouch{plain.data() + sizeof(Key), long_nonce + vouch_size};
  return is_vouched(vouch, client) ? std::optional{client} : std::nullopt;
}

bool CurveServer::is_vouched(std::span<const std::byte> vouch, const Key& client) const {
  const Nonce nonce = nonce_of("VOUCH---", vouch.first(long_nonce));
  std::array<std::uint8_t, 2 * sizeof(Key)> said{};
  if (crypto_box_open_easy(said.data(), raw(vouch.subspan(long_nonce)), vouch_size, nonce.data(),
                           client.data(), short_secret_.data()) != 0)
    return false;
  Key own{};
  crypto_scalarmult_base(own.data(), secret_.data());
  return std::equal(client_short_.begin(), client_short_.end(), said.begin()) &&
         std::equal(own.begin(), own.end(), said.begin() + sizeof(Key));
}

Bytes CurveServer::ready(std::span<const std::byte> metadata) {
  // READY is the only message that we ever send under this key.
  constexpr std::array<std::uint8_t, short_nonce> said{0, 0, 0, 0, 0, 0, 0, 1};
  const Nonce nonce = nonce_of("CurveZMQREADY---", std::as_bytes(std::span{said}));
  std::vector<std::uint8_t> sealed(metadata.size() + mac_size);
  crypto_box_easy_afternm(sealed.data(), raw(metadata), metadata.size(), nonce.data(),
                          shared_.data());
  Bytes ready;
  append(ready, ready_name);
  append(ready, said);
  append(ready, sealed);
  return ready;
}

std::optional<CurveServer::Opened> CurveServer::open(std::span<std::byte> message) {
  if (message.size() < overhead || !begins_with(message, message_name)) return std::nullopt;
  const auto said = message.subspan(message_name.size(), short_nonce);
  const std::uint64_t number = number_of(said);
  if (number <= last_nonce_) return std::nullopt;
  const Nonce nonce = nonce_of("CurveZMQMESSAGEC", said);
  const auto mac = message.subspan(message_name.size() + short_nonce, mac_size);
  const auto sealed = message.subspan(message_name.size() + short_nonce + mac_size);
  if (crypto_box_open_detached_afternm(raw_out(sealed), raw(sealed), raw(mac), sealed.size(),
                                       nonce.data(), shared_.data()) != 0)
    return std::nullopt;
  last_nonce_ = number;
  const auto flags = static_cast<unsigned>(sealed[0]);
  return Opened{(flags & 1U) != 0, (flags & 2U) != 0, sealed.subspan(1)};
}

}  // namespace starling::wire
