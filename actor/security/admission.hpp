/// Decides which CURVE keys a node admits: the keys of certificates that the node has learned, that
/// are valid now and that are not revoked. An Admission plugs into a transport:
///
///     options.admits = [&](const Key& key) { return admission.admits(key, utc_now()); };
///
/// The *handshake key*, which every key file of the cluster holds (as `gate-public` and
/// `gate-secret`), is admitted too, but for handshakes only: a peer that uses it may hand in a
/// certificate, and the caller must take nothing else from that peer.
///
/// Thread-safe. Its memory stays within AdmissionOptions, whatever is handed in.
#pragma once

#include <map>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "starling/actor/security/certificate.hpp"
#include "starling/base/result.hpp"

namespace starling::security {

/// The access that a key gives.
enum class KeyAccess {
  /// Nothing.
  none,
  /// Handing in a certificate.
  handshake,
  /// Everything that its certificate's role allows.
  member,
};

struct AdmissionOptions {
  /// The most certificates kept. When it is reached, expired ones are dropped.
  std::size_t certificates_max = std::size_t{1} << 17U;
  /// The most revocations kept. When it is reached, those of expired certificates are dropped.
  std::size_t revocations_max = std::size_t{1} << 16U;
};

/// A part of the revocations that a node knows, and where the next part begins.
struct RevocationsPart {
  std::vector<Revocation> revocations;
  /// The argument for the next call of revocations_since(), on the same Admission.
  std::uint64_t next = 0;
};

/// The result of merging a list of revocations.
struct Merged {
  /// The revocations that were new.
  std::vector<Revocation> added;
  /// The number of revocations that the cluster did not sign or for which there was no capacity.
  std::size_t refused = 0;
  /// Keys that were admitted before and no longer are: connections to them are to be closed.
  std::vector<Key> revoked;
};

class Admission {
 public:
  explicit Admission(const ClusterPublic& cluster, const Key& handshake_key,
                     AdmissionOptions options = {});

  /// Admits the certificate's key while the certificate is valid. Learning a known certificate
  /// again changes nothing. An Error says why it is refused: it is forged, of another cluster, out
  /// of its time, revoked, for the handshake key, or there is no capacity.
  Result<void> learn(const Certificate& certificate, UtcSeconds now);

  /// Ends a certificate, whether or not the certificate is known. Returns the keys that are no
  /// longer admitted, none if the revocation was known; an Error if the cluster did not sign it or
  /// there is no capacity.
  Result<std::vector<Key>> revoke(const Revocation& revocation, UtcSeconds now);
  /// Revokes many; a refused revocation does not keep the others out.
  Merged merge(std::span<const Revocation> revocations, UtcSeconds now);

  [[nodiscard]] KeyAccess access_of(const Key& key, UtcSeconds now) const;
  /// Whether a peer with this key may connect, if only to hand in a certificate.
  [[nodiscard]] bool admits(const Key& key, UtcSeconds now) const;
  /// The certificate that admits the key; of several, the one that is valid longest.
  [[nodiscard]] std::optional<Certificate> certificate_of(const Key& key, UtcSeconds now) const;
  /// The role of the key's holder; nullopt if no certificate admits the key.
  [[nodiscard]] std::optional<Role> role_of(const Key& key, UtcSeconds now) const;
  [[nodiscard]] bool is_revoked(std::uint64_t serial) const;

  /// The certificates that are valid at `now`, in no order.
  [[nodiscard]] std::vector<Certificate> certificates(UtcSeconds now) const;
  /// At most `most` of the revocations that became known after number `since`; 0 begins at the
  /// first.
  [[nodiscard]] RevocationsPart revocations_since(std::uint64_t since, std::size_t most) const;
  /// Equal on nodes that know the same revocations, and almost certainly different on others.
  [[nodiscard]] std::uint64_t revocations_digest() const;

 private:
  /// Keys of unauthenticated peers are never stored.
  using Certificates = std::unordered_multimap<Key, Certificate, wire::KeyHash>;

  [[nodiscard]] const Certificate* find(const Key& key, UtcSeconds now) const;
  [[nodiscard]] bool knows(const Certificate& certificate) const;
  [[nodiscard]] std::vector<Key> drop(std::uint64_t serial, UtcSeconds now);
  void forget_revocations_before(UtcSeconds now);

  const ClusterPublic cluster_;
  const Key handshake_key_;
  const AdmissionOptions options_;
  mutable std::shared_mutex mutex_;
  Certificates certificates_;
  /// Revocations by the number under which each became known, from 1 on.
  std::map<std::uint64_t, Revocation> revocations_;
  std::uint64_t revocation_last_ = 0;
  /// Serial to number.
  std::unordered_map<std::uint64_t, std::uint64_t> revoked_;
};

}  // namespace starling::security
