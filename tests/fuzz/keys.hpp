/// Makes keys that are the same in each run, and certificates and revocations that are signed with
/// them. Not thread-safe.
#pragma once

#include <sodium.h>

#include <string>

#include "starling/actor/security/certificate.hpp"

namespace starling::fuzz {

/// 2026-11-21 10:21:08 UTC.
inline constexpr security::UtcSeconds now = 1'795'256'468;

/// Returns the cluster key with this number. Different numbers give different keys.
inline security::ClusterKey cluster_key(std::uint8_t number = 1) {
  std::array<std::uint8_t, crypto_sign_SEEDBYTES> seed{};
  seed.fill(number);
  security::ClusterKey key{};
  crypto_sign_seed_keypair(key.public_key.data(), key.secret_key.data(), seed.data());
  return key;
}

inline security::KeyPair key_pair(std::uint8_t number) {
  security::KeyPair keys{};
  keys.secret_key.fill(number);
  crypto_scalarmult_base(keys.public_key.data(), keys.secret_key.data());
  return keys;
}

/// Returns a certificate for key_pair(number), valid for a year, signed with cluster_key(1).
inline security::Certificate certificate(std::uint8_t number,
                                         security::Role role = security::Role::node) {
  security::Certificate certificate;
  certificate.name = "worker-" + std::to_string(number);
  certificate.role = role;
  certificate.key = key_pair(number).public_key;
  certificate.serial = 1000U + number;
  certificate.not_before = now - 300;
  certificate.not_after = now + 365 * security::UtcSeconds{86400};
  return security::sign(certificate, cluster_key());
}

/// Returns the revocation of certificate(number), signed with cluster_key(1).
inline security::Revocation revocation(std::uint8_t number) {
  security::Revocation revocation;
  revocation.serial = 1000U + number;
  revocation.time = now;
  revocation.until = now + 365 * security::UtcSeconds{86400};
  return security::sign(revocation, cluster_key());
}

}  // namespace starling::fuzz
