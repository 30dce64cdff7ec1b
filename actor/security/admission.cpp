#include "starling/actor/security/admission.hpp"

#include <algorithm>
#include <mutex>

namespace starling::security {

Admission::Admission(const ClusterPublic& cluster, const Key& handshake_key,
                     AdmissionOptions options)
    : cluster_(cluster), handshake_key_(handshake_key), options_(options) {}

Result<void> Admission::learn(const Certificate& certificate, UtcSeconds now) {
  if (certificate.key == handshake_key_)
    return Error{"the certificate of " + certificate.name + " is for the handshake key"};
  {
    const std::shared_lock lock{mutex_};
    // The signature of a known certificate was checked when it was learned.
    if (knows(certificate)) return check_time(certificate, now);
  }
  if (auto valid = verify(certificate, cluster_, now); !valid) return valid;
  const std::unique_lock lock{mutex_};
  if (revocation_numbers_.contains(certificate.serial))
    return Error{"the certificate of " + certificate.name + " (" +
                 print_serial(certificate.serial) + ") is revoked"};
  if (knows(certificate)) return {};
  if (certificates_.size() >= options_.certificates_max)
    std::erase_if(certificates_, [&](const auto& c) { return c.second.not_after < now; });
  if (certificates_.size() >= options_.certificates_max)
    return Error{"there is no capacity for the certificate of " + certificate.name +
                 ": the limit is " + std::to_string(options_.certificates_max)};
  certificates_.emplace(certificate.key, certificate);
  return {};
}

Result<std::vector<Key>> Admission::revoke(const Revocation& revocation, UtcSeconds now) {
  if (is_revoked(revocation.serial)) return std::vector<Key>{};
  if (auto valid = check_signature(revocation, cluster_); !valid) return std::move(valid).error();
  const std::unique_lock lock{mutex_};
  if (revocation_numbers_.contains(revocation.serial)) return std::vector<Key>{};
  if (revocation_numbers_.size() >= options_.revocations_max) forget_expired_revocations(now);
  if (revocation_numbers_.size() >= options_.revocations_max)
    return Error{"there is no capacity for the revocation of " + print_serial(revocation.serial) +
                 ": the limit is " + std::to_string(options_.revocations_max)};
  revocation_numbers_.emplace(revocation.serial, ++last_revocation_number_);
  revocations_.emplace(last_revocation_number_, revocation);
  return remove(revocation.serial, now);
}

MergeResult Admission::merge(std::span<const Revocation> revocations, UtcSeconds now) {
  MergeResult merged;
  for (const Revocation& revocation : revocations) {
    const bool is_new = !is_revoked(revocation.serial);
    const auto removed = revoke(revocation, now);
    if (!removed) {
      ++merged.refused;
      continue;
    }
    if (is_new) merged.added.push_back(revocation);
    merged.removed_keys.insert(merged.removed_keys.end(), removed->begin(), removed->end());
  }
  return merged;
}

KeyAccess Admission::access_of(const Key& key, UtcSeconds now) const {
  if (key == handshake_key_) return KeyAccess::handshake;
  const std::shared_lock lock{mutex_};
  return find(key, now) != nullptr ? KeyAccess::certified : KeyAccess::none;
}

bool Admission::admits(const Key& key, UtcSeconds now) const {
  return access_of(key, now) != KeyAccess::none;
}

std::optional<Certificate> Admission::certificate_of(const Key& key, UtcSeconds now) const {
  const std::shared_lock lock{mutex_};
  const Certificate* found = find(key, now);
  return found != nullptr ? std::optional{*found} : std::nullopt;
}

std::optional<Role> Admission::role_of(const Key& key, UtcSeconds now) const {
  const std::shared_lock lock{mutex_};
  const Certificate* found = find(key, now);
  return found != nullptr ? std::optional{found->role} : std::nullopt;
}

bool Admission::is_revoked(std::uint64_t serial) const {
  const std::shared_lock lock{mutex_};
  return revocation_numbers_.contains(serial);
}

std::vector<Certificate> Admission::certificates(UtcSeconds now) const {
  const std::shared_lock lock{mutex_};
  std::vector<Certificate> all;
  for (const auto& [key, certificate] : certificates_)
    if (check_time(certificate, now)) all.push_back(certificate);
  return all;
}

RevocationsPart Admission::revocations_since(std::uint64_t number, std::size_t count_max) const {
  const std::shared_lock lock{mutex_};
  RevocationsPart part{{}, number};
  for (auto at = revocations_.upper_bound(number);
       at != revocations_.end() && part.revocations.size() < count_max; ++at) {
    part.revocations.push_back(at->second);
    part.next = at->first;
  }
  return part;
}

std::uint64_t Admission::revocations_digest() const {
  const std::shared_lock lock{mutex_};
  // An exclusive or suffices as a hash, because serials are drawn at random.
  std::uint64_t digest = 0;
  for (const auto& [serial, number] : revocation_numbers_) digest ^= serial;
  return digest;
}

const Certificate* Admission::find(const Key& key, UtcSeconds now) const {
  const Certificate* found = nullptr;
  const auto [first, last] = certificates_.equal_range(key);
  for (auto at = first; at != last; ++at) {
    const Certificate& c = at->second;
    if (now < c.not_before || now > c.not_after) continue;
    if (found == nullptr || c.not_after > found->not_after) found = &c;
  }
  return found;
}

bool Admission::knows(const Certificate& certificate) const {
  const auto [first, last] = certificates_.equal_range(certificate.key);
  return std::any_of(first, last, [&](const auto& c) { return c.second == certificate; });
}

std::vector<Key> Admission::remove(std::uint64_t serial, UtcSeconds now) {
  std::vector<Key> removed;
  for (auto at = certificates_.begin(); at != certificates_.end();) {
    if (at->second.serial != serial) {
      ++at;
      continue;
    }
    const Key key = at->first;
    at = certificates_.erase(at);
    if (find(key, now) == nullptr) removed.push_back(key);
  }
  return removed;
}

void Admission::forget_expired_revocations(UtcSeconds now) {
  std::erase_if(revocations_, [&](const auto& entry) { return entry.second.until < now; });
  std::erase_if(revocation_numbers_,
                [&](const auto& entry) { return !revocations_.contains(entry.second); });
}

}  // namespace starling::security
