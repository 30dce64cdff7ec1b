#include "starling/actor/security/certificate.hpp"

#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "starling/actor/security/certificate_archive.hpp"
#include "starling/base/check.hpp"

namespace starling::security {
namespace {

static_assert(std::tuple_size_v<ClusterPublic> == crypto_sign_PUBLICKEYBYTES);
static_assert(decltype(ClusterKey::secret_key)::size() == crypto_sign_SECRETKEYBYTES);
static_assert(std::tuple_size_v<Signature> == crypto_sign_BYTES);
static_assert(std::tuple_size_v<Key> == crypto_scalarmult_BYTES);

/// Initialises libsodium. Call it before libsodium draws random bytes or signs.
void initialise_sodium() {
  static const bool works = sodium_init() >= 0;
  STARLING_CHECK(works);
}

/// The text that precedes the signed bytes, so that the signature of a certificate is never valid
/// for a revocation, nor the reverse.
constexpr std::string_view purpose_of(const Certificate&) { return "Starling certificate\n"; }
constexpr std::string_view purpose_of(const Revocation&) { return "Starling revocation\n"; }

template <class T>
wire::Bytes signed_bytes(T value) {
  wire::Bytes bytes;
  wire::Encoder encoder{bytes};
  const std::string_view purpose = purpose_of(value);
  encoder.put(purpose.data(), purpose.size());
  put_or_get_signed(encoder, value);
  return bytes;
}

const unsigned char* data_of(const wire::Bytes& bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

template <class T>
T sign_value(T value, const ClusterKey& key) {
  initialise_sodium();
  value.cluster = id_of(key.public_key);
  const wire::Bytes bytes = signed_bytes(value);
  crypto_sign_detached(value.signature.data(), nullptr, data_of(bytes), bytes.size(),
                       key.secret_key.data());
  return value;
}

template <class T>
Result<void> check_signed(const T& value, const ClusterPublic& cluster, const std::string& what) {
  const ClusterId id = id_of(cluster);
  if (value.cluster != id)
    return Error{what + " is of another cluster, " + short_id(value.cluster) + "; valid here: of " +
                 short_id(id)};
  const wire::Bytes bytes = signed_bytes(value);
  if (crypto_sign_verify_detached(value.signature.data(), data_of(bytes), bytes.size(),
                                  cluster.data()) != 0)
    return Error{"the signature of " + what + " does not match: it is forged or damaged"};
  return {};
}

std::string describe(const Certificate& certificate) {
  return "the certificate of " + certificate.name + " (" + print_serial(certificate.serial) + ")";
}

template <class T>
wire::Bytes encode_value(const T& value) {
  wire::Bytes bytes;
  wire::Encoder encoder{bytes};
  encoder(value);
  return bytes;
}

template <class T>
Result<T> decode_value(std::span<const std::byte> bytes, const char* what) {
  try {
    wire::Decoder decoder{bytes};
    T value;
    decoder(value);
    decoder.finish();
    return value;
  } catch (const wire::DecodeError& fault) {
    return Error{std::string{what} + " " + fault.what()};
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

constexpr std::size_t serial_digits = 16;

bool is_serial(std::string_view text) {
  return text.size() == serial_digits && std::ranges::all_of(text, is_hex);
}

}  // namespace

ClusterKey make_cluster_key() {
  initialise_sodium();
  ClusterKey key{};
  crypto_sign_keypair(key.public_key.data(), key.secret_key.data());
  return key;
}

std::uint64_t make_serial() {
  initialise_sodium();
  std::uint64_t serial = 0;
  randombytes_buf(&serial, sizeof serial);
  return serial;
}

ClusterId id_of(const ClusterPublic& cluster) {
  ClusterId id{};
  crypto_generichash(id.data(), id.size(), cluster.data(), cluster.size(), nullptr, 0);
  return id;
}

bool is_pair(const ClusterKey& key) {
  // A secret key of libsodium is a seed, followed by the public key that is derived from it.
  ClusterKey derived{};
  crypto_sign_seed_keypair(derived.public_key.data(), derived.secret_key.data(),
                           key.secret_key.data());
  return derived.public_key == key.public_key && derived.secret_key == key.secret_key;
}

bool is_pair(const KeyPair& keys) {
  Key derived{};
  return crypto_scalarmult_base(derived.data(), keys.secret_key.data()) == 0 &&
         derived == keys.public_key;
}

Result<void> check_name(std::string_view name) {
  const auto is_valid = [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
  };
  const bool has_valid_start = !name.empty() && (is_letter(name[0]) || is_digit(name[0]));
  if (!has_valid_start || name.size() > name_size_max || !std::ranges::all_of(name, is_valid))
    return Error{"'" + std::string{name} + "' is not a valid name; valid: 1 to " +
                 std::to_string(name_size_max) +
                 " letters, digits, '.', '-' and '_', the first a letter or a digit"};
  if (is_serial(name))
    return Error{"'" + std::string{name} +
                 "' is not a valid name: it is written like a serial; valid: anything but 16 "
                 "hexadecimal digits"};
  return {};
}

std::string print_serial(std::uint64_t serial) {
  std::array<char, serial_digits + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(serial));
  return text.data();
}

Result<std::uint64_t> parse_serial(std::string_view text) {
  if (!is_serial(text))
    return Error{"'" + std::string{text} + "' is not a serial; valid: 16 hexadecimal digits"};
  return static_cast<std::uint64_t>(std::stoull(std::string{text}, nullptr, 16));
}

std::string print_hex(std::span<const std::uint8_t> bytes) {
  std::string text(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  text.pop_back();  // the closing zero
  return text;
}

std::string short_id(const ClusterId& id) { return print_hex(std::span{id}.first(4)); }

std::string print_utc(UtcSeconds time) {
  using namespace std::chrono;
  STARLING_CHECK(is_valid_time(time));
  const sys_seconds at{seconds{time}};
  const sys_days day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss clock{at - day};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u %02d:%02d:%02d UTC",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

Proof prove(std::string_view text, const wire::SecretKey& own_secret, const Key& other_public) {
  Proof proof{};
  std::array<std::uint8_t, crypto_box_BEFORENMBYTES> shared{};
  if (crypto_box_beforenm(shared.data(), other_public.data(), own_secret.data()) == 0)
    crypto_generichash(proof.data(), proof.size(),
                       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                       shared.data(), shared.size());
  sodium_memzero(shared.data(), shared.size());
  return proof;
}

Certificate sign(Certificate certificate, const ClusterKey& key) {
  STARLING_CHECK(check_name(certificate.name));
  STARLING_CHECK(is_valid_time(certificate.not_before) && is_valid_time(certificate.not_after));
  STARLING_CHECK(certificate.not_before <= certificate.not_after);
  return sign_value(std::move(certificate), key);
}

Revocation sign(Revocation revocation, const ClusterKey& key) {
  STARLING_CHECK(is_valid_time(revocation.time) && is_valid_time(revocation.until));
  return sign_value(revocation, key);
}

Result<void> check_signature(const Certificate& certificate, const ClusterPublic& cluster) {
  return check_signed(certificate, cluster, describe(certificate));
}

Result<void> check_signature(const Revocation& revocation, const ClusterPublic& cluster) {
  return check_signed(revocation, cluster, "the revocation of " + print_serial(revocation.serial));
}

Result<void> check_time(const Certificate& certificate, UtcSeconds now) {
  if (now < certificate.not_before)
    return Error{describe(certificate) + " is not yet valid: it is from " +
                 print_utc(certificate.not_before) + " on"};
  if (now > certificate.not_after)
    return Error{describe(certificate) + " expired on " + print_utc(certificate.not_after)};
  return {};
}

Result<void> verify(const Certificate& certificate, const ClusterPublic& cluster, UtcSeconds now) {
  if (auto valid = check_signature(certificate, cluster); !valid) return valid;
  return check_time(certificate, now);
}

wire::Bytes encode(const Certificate& certificate) { return encode_value(certificate); }
wire::Bytes encode(const Revocation& revocation) { return encode_value(revocation); }

Result<Certificate> decode_certificate(std::span<const std::byte> bytes) {
  return decode_value<Certificate>(bytes, "a certificate");
}
Result<Revocation> decode_revocation(std::span<const std::byte> bytes) {
  return decode_value<Revocation>(bytes, "a revocation");
}

}  // namespace starling::security
