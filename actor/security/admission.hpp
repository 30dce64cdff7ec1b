/// Decides which public CURVE keys a node admits: the keys of the certificates that the node has
/// learned, that are valid now and that are not revoked. A transport asks an Admission like this:
///
///     options.admits = [&](const Key& key) { return admission.admits(key, utc_now()); };
///
/// The *handshake key*, which every key file of the cluster holds, is admitted too, but for
/// handshakes only: a peer that uses it may present a certificate, and the caller must accept
/// nothing else from that peer. In key files its two halves have the names `gate-public` and
/// `gate-secret`.
///
/// An Admission is thread-safe. AdmissionOptions bound its memory.
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

/// The access that a public key gives to its holder.
enum class KeyAccess {
  /// Nothing.
  none,
  /// Presenting a certificate.
  handshake,
  /// Everything that the Role in the key's certificate (node or client) allows.
  certified,
};

struct AdmissionOptions {
  /// The most certificates kept. At this limit, expired certificates are dropped.
  std::size_t certificates_max = std::size_t{1} << 17U;
  /// The most revocations kept. At this limit, revocations of expired certificates are dropped.
  std::size_t revocations_max = std::size_t{1} << 16U;
};

/// A part of the revocations that a node knows.
struct RevocationsPart {
  std::vector<Revocation> revocations;
  /// The number to pass to the next call of revocations_since(), on the same Admission.
  std::uint64_t next = 0;
};

/// The result of merging a list of revocations.
struct MergeResult {
  /// The revocations that were new.
  std::vector<Revocation> added;
  /// The number of revocations that the cluster did not sign, or for which there was no capacity.
  std::size_t refused = 0;
  /// The keys that were admitted before and no longer are. The caller closes connections to them.
  std::vector<Key> removed_keys;
};

class Admission {
 public:
  explicit Admission(const ClusterPublic& cluster, const Key& handshake_key,
                     AdmissionOptions options = {});

  /// Admits the certificate's key from now on, while the certificate is valid. Learning a known
  /// certificate again changes nothing. An Error says why the certificate is refused: it is forged,
  /// of another cluster, not valid at `now`, revoked or for the handshake key, or there is no
  /// capacity.
  Result<void> learn(const Certificate& certificate, UtcSeconds now);

  /// Revokes a certificate, even if the certificate is not known yet. Returns the keys that are no
  /// longer admitted; no keys if the revocation was known. Returns an Error if the cluster did not
  /// sign the revocation, or if there is no capacity.
  Result<std::vector<Key>> revoke(const Revocation& revocation, UtcSeconds now);
  /// Applies many revocations. A refused one does not affect the others.
  MergeResult merge(std::span<const Revocation> revocations, UtcSeconds now);

  [[nodiscard]] KeyAccess access_of(const Key& key, UtcSeconds now) const;
  /// True if a peer with this key may connect, if only to present a certificate.
  [[nodiscard]] bool admits(const Key& key, UtcSeconds now) const;
  /// The certificate that admits the key; if there are several, the one that expires last.
  [[nodiscard]] std::optional<Certificate> certificate_of(const Key& key, UtcSeconds now) const;
  /// The Role of the key's holder, node or client; nullopt if no certificate admits the key.
  [[nodiscard]] std::optional<Role> role_of(const Key& key, UtcSeconds now) const;
  [[nodiscard]] bool is_revoked(std::uint64_t serial) const;

  /// The certificates that are valid at `now`, in any order.
  [[nodiscard]] std::vector<Certificate> certificates(UtcSeconds now) const;
  /// Returns at most `count_max` revocations: those that became known after revocation number
  /// `number`, oldest first. 0 begins at the first.
  [[nodiscard]] RevocationsPart revocations_since(std::uint64_t number,
                                                  std::size_t count_max) const;
  /// A hash of the known revocations: equal on nodes that know the same ones, and almost certainly
  /// different on others.
  [[nodiscard]] std::uint64_t revocations_digest() const;

 private:
  /// The certificates by their public keys. Keys of unauthenticated peers are never stored.
  using Certificates = std::unordered_multimap<Key, Certificate, wire::KeyHash>;

  /// See certificate_of(). Requires, like the functions below: the lock is held.
  [[nodiscard]] const Certificate* find(const Key& key, UtcSeconds now) const;
  [[nodiscard]] bool knows(const Certificate& certificate) const;
  /// Removes the certificates with that serial. Returns the keys that are no longer admitted.
  [[nodiscard]] std::vector<Key> remove(std::uint64_t serial, UtcSeconds now);
  void forget_expired_revocations(UtcSeconds now);

  const ClusterPublic cluster_;
  const Key handshake_key_;
  const AdmissionOptions options_;
  mutable std::shared_mutex mutex_;
  Certificates certificates_;
  /// Revocations by the number under which each became known, from 1 on.
  std::map<std::uint64_t, Revocation> revocations_;
  std::uint64_t last_revocation_number_ = 0;
  /// The number of each known revocation in revocations_, by the serial of its certificate.
  std::unordered_map<std::uint64_t, std::uint64_t> revocation_numbers_;
};

}  // namespace starling::security
