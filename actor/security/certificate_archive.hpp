/// Serialises certificates and revocations, alone or within a message. Loading one throws
/// wire::DecodeError for bytes that are not well-formed; verify() checks its signature.
#pragma once

#include "starling/actor/security/certificate.hpp"
#include "starling/actor/wire/archive.hpp"

namespace starling::security {

/// Encodes or decodes the first byte, which is the version of the encoding.
template <class A>
void put_or_get_version(A& archive) {
  std::uint8_t version = certificate_version;
  archive(version);
  if (version != certificate_version)
    throw wire::DecodeError{"is of version " + std::to_string(version) +
                            "; valid here: " + std::to_string(certificate_version)};
}

/// Encodes or decodes the fields that the signature covers.
template <class A>
void put_or_get_signed(A& archive, Certificate& c) {
  auto role = static_cast<std::uint8_t>(c.role);
  put_or_get_version(archive);
  wire::put_or_get_field(archive, c.cluster);
  archive(c.name, role);
  wire::put_or_get_field(archive, c.key);
  archive(c.serial, c.not_before, c.not_after);
  c.role = static_cast<Role>(role);
}
template <class A>
void put_or_get_signed(A& archive, Revocation& r) {
  put_or_get_version(archive);
  wire::put_or_get_field(archive, r.cluster);
  archive(r.serial, r.time, r.until);
}

inline bool is_valid_time(UtcSeconds time) { return time >= 0 && time <= utc_max; }

template <class A>
void serialize(A& archive, Certificate& c) {
  put_or_get_signed(archive, c);
  wire::put_or_get_field(archive, c.signature);
  if constexpr (!wire::is_encoder<A>) {
    if (!check_name(c.name)) throw wire::DecodeError{"has an invalid name"};
    if (c.role != Role::node && c.role != Role::client)
      throw wire::DecodeError{"is for an unknown role"};
    if (!is_valid_time(c.not_before) || !is_valid_time(c.not_after) || c.not_before > c.not_after)
      throw wire::DecodeError{"has impossible dates"};
  }
}
template <class A>
void serialize(A& archive, Revocation& r) {
  put_or_get_signed(archive, r);
  wire::put_or_get_field(archive, r.signature);
  if constexpr (!wire::is_encoder<A>)
    if (!is_valid_time(r.time) || !is_valid_time(r.until))
      throw wire::DecodeError{"has impossible dates"};
}

}  // namespace starling::security
