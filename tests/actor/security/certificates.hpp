/// Makes certificates and revocations for tests, at a fixed time.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "starling/actor/security/certificate.hpp"

namespace starling::security {

/// 2026-11-21 10:21:08 UTC.
inline constexpr UtcSeconds now = 1'795'256'468;

/// Makes a certificate that is valid from 10 minutes before to 10 minutes after `now`.
inline Certificate certificate_for(const std::string& name, const Key& key,
                                   const ClusterKey& cluster, Role role = Role::node) {
  Certificate certificate;
  certificate.name = name;
  certificate.role = role;
  certificate.key = key;
  certificate.serial = make_serial();
  certificate.not_before = now - 600;
  certificate.not_after = now + 600;
  return sign(certificate, cluster);
}

/// Makes a revocation of the certificate with this serial number.
inline Revocation revocation_of(std::uint64_t serial, const ClusterKey& cluster,
                                UtcSeconds until = now + 600) {
  Revocation revocation;
  revocation.serial = serial;
  revocation.time = now;
  revocation.until = until;
  return sign(revocation, cluster);
}

template <std::size_t N>
std::array<std::uint8_t, N> bytes_of_hex(std::string_view hex) {
  std::array<std::uint8_t, N> bytes{};
  for (std::size_t i = 0; i < N; ++i)
    bytes.at(i) =
        static_cast<std::uint8_t>(std::stoul(std::string{hex.substr(2 * i, 2)}, nullptr, 16));
  return bytes;
}

}  // namespace starling::security
