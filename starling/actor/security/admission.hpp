/// Which CURVE keys a node lets in: those of certificates that it has learned, that are valid now
/// and not revoked. It plugs into a transport:
///
///     options.admits = [&](const Key& key) { return admission.admits(key, utc_now()); };
///
/// The *gate* key, which every key file of the cluster holds, is let in too, but only as far as the
/// gate: whoever uses it may hand in a certificate, and the caller must take nothing else from it.
///
/// Thread-safe. Whatever is handed in, it holds no more than its bounds.
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

/// What may be done under a key.
enum class KeyAccess {
  /// Nothing.
  none,
  /// Handing in a certificate.
  gate,
  /// Whatever its certificate's role is for.
  member,
};

struct AdmissionOptions {
  /// Expired ones make room.
  std::size_t certificates_max = std::size_t{1} << 17U;
  /// Those of certificates that have expired make room.
  std::size_t revocations_max = std::size_t{1} << 16U;
};

/// A part of the revocations a node knows, and where the next part begins.
struct RevocationsPart {
  std::vector<Revocation> revocations;
  /// For revocations_since; holds for the Admission that gave it.
  std::uint64_t next = 0;
};

/// What came of a list of revocations.
struct Merged {
  /// Those that were new.
  std::vector<Revocation> added;
  /// Those that the cluster did not sign, or for which there is no room.
  std::size_t refused = 0;
  /// Keys that were let in before and are not any more: connections to them are to be closed.
  std::vector<Key> revoked;
};

class Admission {
 public:
  explicit Admission(const ClusterPublic& cluster, const Key& gate, AdmissionOptions options = {});

  /// Lets its key in while it is valid. Learning again what is known changes nothing. An Error says
  /// why not: it is forged, of another cluster, out of its time, revoked, or there is no room.
  Result<void> learn(const Certificate& certificate, UtcSeconds now);

  /// Ends a certificate, known already or not. Gives the keys that fall by it, none where it was
  /// known; an Error where the cluster did not sign it or there is no room.
  Result<std::vector<Key>> revoke(const Revocation& revocation, UtcSeconds now);
  /// Many; what is wrong with some keeps none of the others out.
  Merged merge(std::span<const Revocation> revocations, UtcSeconds now);

  [[nodiscard]] KeyAccess access_of(const Key& key, UtcSeconds now) const;
  /// Whether someone with this key may connect, if only to the gate.
  [[nodiscard]] bool admits(const Key& key, UtcSeconds now) const;
  /// The one that lets the key in; the longest valid of several.
  [[nodiscard]] std::optional<Certificate> certificate_of(const Key& key, UtcSeconds now) const;
  /// What its holder may do; none: no certificate lets it in.
  [[nodiscard]] std::optional<Role> role_of(const Key& key, UtcSeconds now) const;
  [[nodiscard]] bool is_revoked(std::uint64_t serial) const;

  /// Those that are valid at `now`, in no order: what someone new is told.
  [[nodiscard]] std::vector<Certificate> certificates(UtcSeconds now) const;
  /// At most `most` of the revocations that became known since; 0 begins at the first.
  [[nodiscard]] RevocationsPart revocations_since(std::uint64_t since, std::size_t most) const;
  /// Equal where the same revocations are known, and, as good as certainly, only there.
  [[nodiscard]] std::uint64_t revocations_digest() const;

 private:
  /// Strangers' keys are never stored.
  using Certificates = std::unordered_multimap<Key, Certificate, wire::KeyHash>;

  [[nodiscard]] const Certificate* find(const Key& key, UtcSeconds now) const;
  [[nodiscard]] bool knows(const Certificate& certificate) const;
  [[nodiscard]] std::vector<Key> drop(std::uint64_t serial, UtcSeconds now);
  void forget_revocations_before(UtcSeconds now);

  const ClusterPublic cluster_;
  const Key gate_;
  const AdmissionOptions options_;
  mutable std::shared_mutex mutex_;
  Certificates certificates_;
  /// By the number under which each became known, from 1 on.
  std::map<std::uint64_t, Revocation> revocations_;
  std::uint64_t revocation_last_ = 0;
  /// Serial to number.
  std::unordered_map<std::uint64_t, std::uint64_t> revoked_;
};

}  // namespace starling::security
