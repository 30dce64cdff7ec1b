/// Certificates decide which keys belong to a cluster. The cluster's key (Ed25519) signs
/// certificates, each of which binds a CURVE key to a name, a role and a time, and revocations,
/// each of which ends a certificate early. Plain values and functions; any thread. Time is passed
/// in, and only keys and serials are random.
///
/// Sources: Ed25519 is RFC 8032, the hash of a cluster's id is BLAKE2b (RFC 7693), both
/// libsodium's.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "starling/actor/wire/archive.hpp"
#include "starling/actor/wire/transport.hpp"
#include "starling/base/result.hpp"

namespace starling::security {

using wire::Key;
using wire::KeyPair;

/// Seconds since 1970-01-01 00:00 UTC.
using UtcSeconds = std::int64_t;
/// 9999-12-31 23:59:59, the last that a certificate may name.
inline constexpr UtcSeconds utc_max = 253'402'300'799;

/// The public half of a cluster's key, against which its signatures are checked.
using ClusterPublic = std::array<std::uint8_t, 32>;
using Signature = std::array<std::uint8_t, 64>;
/// The hash of a cluster's public key.
using ClusterId = std::array<std::uint8_t, 32>;

/// A cluster's key pair. Its holder decides which keys belong to the cluster.
struct ClusterKey {
  ClusterPublic public_key;
  wire::SecretBytes<64> secret_key;
};

enum class Role : std::uint8_t {
  /// Holds members of jobs.
  node = 0,
  /// Submits and watches jobs.
  client = 1,
};

inline constexpr std::uint8_t certificate_version = 1;
inline constexpr std::size_t name_size_max = 64;

struct Certificate {
  ClusterId cluster{};
  /// See check_name.
  std::string name;
  Role role = Role::node;
  /// The CURVE public key that its holder connects with and is reached under.
  Key key{};
  /// Drawn at random: no two certificates of a cluster share one.
  std::uint64_t serial = 0;
  /// The first and the last second at which it is valid.
  UtcSeconds not_before = 0;
  UtcSeconds not_after = 0;
  Signature signature{};
  bool operator==(const Certificate&) const = default;
};

/// Ends the certificate with that serial.
struct Revocation {
  ClusterId cluster{};
  std::uint64_t serial = 0;
  /// When it was signed. A node applies it as soon as it knows it.
  UtcSeconds time = 0;
  /// The `not_after` of the certificate; afterwards the revocation may be forgotten.
  UtcSeconds until = 0;
  Signature signature{};
  bool operator==(const Revocation&) const = default;
};

/// New keys and serials, from the system's randomness.
[[nodiscard]] ClusterKey make_cluster_key();
[[nodiscard]] std::uint64_t make_serial();

[[nodiscard]] ClusterId id_of(const ClusterPublic& cluster);
/// Whether the halves belong together.
[[nodiscard]] bool is_pair(const ClusterKey& key);
[[nodiscard]] bool is_pair(const KeyPair& keys);

/// A name has 1 to 64 letters, digits, '.', '-' and '_', begins with a letter or a digit, and is
/// not written like a serial.
[[nodiscard]] Result<void> check_name(std::string_view name);

/// 16 hexadecimal digits, as parse_serial reads them.
[[nodiscard]] std::string print_serial(std::uint64_t serial);
[[nodiscard]] Result<std::uint64_t> parse_serial(std::string_view text);
/// Two lower-case hexadecimal digits a byte.
[[nodiscard]] std::string print_hex(std::span<const std::uint8_t> bytes);
/// The first 8 hexadecimal digits of a cluster's id, for people.
[[nodiscard]] std::string short_id(const ClusterId& id);
/// `2026-11-21 10:21:08 UTC`. Requires: 0 <= time <= utc_max.
[[nodiscard]] std::string print_utc(UtcSeconds time);

/// Fills in the cluster and the signature. Requires: a good name,
/// 0 <= not_before <= not_after <= utc_max; for a revocation 0 <= time, until <= utc_max.
[[nodiscard]] Certificate sign(Certificate certificate, const ClusterKey& key);
[[nodiscard]] Revocation sign(Revocation revocation, const ClusterKey& key);

/// An Error where the cluster did not sign it.
[[nodiscard]] Result<void> check_signature(const Certificate& certificate,
                                           const ClusterPublic& cluster);
[[nodiscard]] Result<void> check_signature(const Revocation& revocation,
                                           const ClusterPublic& cluster);
/// An Error where the certificate is not valid at `now`.
[[nodiscard]] Result<void> check_time(const Certificate& certificate, UtcSeconds now);
/// Checks the signature and the time.
[[nodiscard]] Result<void> verify(const Certificate& certificate, const ClusterPublic& cluster,
                                  UtcSeconds now);

/// Authenticates `what`: only the holders of the two keys can compute the proof, a hash (BLAKE2b)
/// under the key that they share (X25519). So the holder of `other_public` can tell that the holder
/// of `own_secret` sent `what`. Zeros where the keys share none.
using Proof = std::array<std::uint8_t, 32>;
[[nodiscard]] Proof prove(std::string_view what, const wire::SecretKey& own_secret,
                          const Key& other_public);

/// Each value has one encoding. A decoded value is well-formed but not yet verified.
[[nodiscard]] wire::Bytes encode(const Certificate& certificate);
[[nodiscard]] wire::Bytes encode(const Revocation& revocation);
[[nodiscard]] Result<Certificate> decode_certificate(std::span<const std::byte> bytes);
[[nodiscard]] Result<Revocation> decode_revocation(std::span<const std::byte> bytes);

}  // namespace starling::security
