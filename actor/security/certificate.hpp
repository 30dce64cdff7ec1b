/// Certificates and their revocations. They decide which public keys belong to a cluster. The
/// secret key of the cluster (Ed25519) signs both. A certificate binds a public CURVE key to a
/// name, a role and a time; a revocation ends a certificate early. Plain values and pure functions;
/// thread-safe to read and call. The caller passes the time.
///
/// Sources: Ed25519 is RFC 8032, the hash in a cluster's id is BLAKE2b (RFC 7693); libsodium has
/// both.
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
/// 9999-12-31 23:59:59, the latest time in a certificate.
inline constexpr UtcSeconds utc_max = 253'402'300'799;

/// The public key of a cluster, which verifies its signatures.
using ClusterPublic = std::array<std::uint8_t, 32>;
using Signature = std::array<std::uint8_t, 64>;
/// The hash of a cluster's public key.
using ClusterId = std::array<std::uint8_t, 32>;

/// The key pair of a cluster. Its holder decides which nodes and clients belong to the cluster.
struct ClusterKey {
  ClusterPublic public_key;
  wire::SecretBytes<64> secret_key;
};

enum class Role : std::uint8_t {
  /// Runs members of jobs.
  node = 0,
  /// Submits and watches jobs.
  client = 1,
};

inline constexpr std::uint8_t certificate_version = 1;
inline constexpr std::size_t name_size_max = 64;

/// Binds the public key of a node or client to its name and role, for a time.
struct Certificate {
  ClusterId cluster{};
  /// A name that check_name() accepts.
  std::string name;
  Role role = Role::node;
  /// The public CURVE key of the holder, for connections in both directions.
  Key key{};
  /// Drawn at random: no two certificates of a cluster share one.
  std::uint64_t serial = 0;
  /// The first and the last second at which the certificate is valid.
  UtcSeconds not_before = 0;
  UtcSeconds not_after = 0;
  Signature signature{};
  bool operator==(const Certificate&) const = default;
};

/// Ends the certificate with the same serial.
struct Revocation {
  ClusterId cluster{};
  std::uint64_t serial = 0;
  /// When it was signed. Nodes apply it as soon as they know it, whatever this time is.
  UtcSeconds time = 0;
  /// The `not_after` of the certificate. After that time, nodes may forget the revocation.
  UtcSeconds until = 0;
  Signature signature{};
  bool operator==(const Revocation&) const = default;
};

/// These functions make a new key pair or serial from the system's random generator.
[[nodiscard]] ClusterKey make_cluster_key();
[[nodiscard]] std::uint64_t make_serial();

[[nodiscard]] ClusterId id_of(const ClusterPublic& cluster);
/// True if the public and the secret key belong together.
[[nodiscard]] bool is_pair(const ClusterKey& key);
[[nodiscard]] bool is_pair(const KeyPair& keys);

/// Returns an Error unless `name` has 1 to 64 letters, digits, '.', '-' and '_', begins with a
/// letter or a digit, and is not written like a serial.
[[nodiscard]] Result<void> check_name(std::string_view name);

/// Prints 16 hexadecimal digits. parse_serial() reads them.
[[nodiscard]] std::string print_serial(std::uint64_t serial);
[[nodiscard]] Result<std::uint64_t> parse_serial(std::string_view text);
/// Prints two lower-case hexadecimal digits for each byte.
[[nodiscard]] std::string print_hex(std::span<const std::uint8_t> bytes);
/// The first 8 hexadecimal digits of a cluster's id, as messages to people name the cluster.
[[nodiscard]] std::string short_id(const ClusterId& id);
/// Prints a time like `2026-11-21 10:21:08 UTC`. Requires: 0 <= time <= utc_max.
[[nodiscard]] std::string print_utc(UtcSeconds time);

/// These functions return the value with the cluster's id and the signature filled in. Requires for
/// a certificate: a valid name, and 0 <= not_before <= not_after <= utc_max; for a revocation:
/// `time` and `until` from 0 to utc_max.
[[nodiscard]] Certificate sign(Certificate certificate, const ClusterKey& key);
[[nodiscard]] Revocation sign(Revocation revocation, const ClusterKey& key);

/// Returns an Error if the cluster did not sign the value.
[[nodiscard]] Result<void> check_signature(const Certificate& certificate,
                                           const ClusterPublic& cluster);
[[nodiscard]] Result<void> check_signature(const Revocation& revocation,
                                           const ClusterPublic& cluster);
/// Returns an Error if the certificate is not valid at `now`.
[[nodiscard]] Result<void> check_time(const Certificate& certificate, UtcSeconds now);
/// Checks both the signature and the time.
[[nodiscard]] Result<void> verify(const Certificate& certificate, const ClusterPublic& cluster,
                                  UtcSeconds now);

/// A message authentication code.
using Proof = std::array<std::uint8_t, 32>;
/// Authenticates `text`: the proof is a keyed hash (BLAKE2b) of `text` under the shared secret
/// (X25519) of two key pairs, which only a holder of one of the two secret keys can compute. It
/// shows the holder of `other_public` that the holder of `own_secret` sent `text`. Returns all
/// zeros if `other_public` is not a valid key.
[[nodiscard]] Proof prove(std::string_view text, const wire::SecretKey& own_secret,
                          const Key& other_public);

/// Each value has exactly one encoding. A decoded value is well-formed, but its signature is not
/// verified.
[[nodiscard]] wire::Bytes encode(const Certificate& certificate);
[[nodiscard]] wire::Bytes encode(const Revocation& revocation);
[[nodiscard]] Result<Certificate> decode_certificate(std::span<const std::byte> bytes);
[[nodiscard]] Result<Revocation> decode_revocation(std::span<const std::byte> bytes);

}  // namespace starling::security
