/// Decodes certificates and revocations from unauthenticated peers and submits them to a node's
/// Admission. The first byte says which of the two follows.
#include "starling/actor/security/certificate.hpp"

#include <algorithm>
#include <array>

#include "starling/actor/security/admission.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/keys.hpp"

namespace starling::fuzz {
namespace {

using security::Admission;
using security::Certificate;
using security::Revocation;

const auto& signed_certificates() {
  static const std::array all{certificate(1), certificate(2, security::Role::client)};
  return all;
}
const auto& signed_revocations() {
  static const std::array all{revocation(1), revocation(3)};
  return all;
}

Admission admission() {
  static const auto cluster = cluster_key();
  static const auto handshake_keys = key_pair(9);
  return Admission{cluster.public_key, handshake_keys.public_key};
}

void hand_in(const Certificate& certificate) {
  Admission node = admission();
  const bool is_signed = std::ranges::count(signed_certificates(), certificate) > 0;
  require(node.learn(certificate, now).ok() == is_signed, "only what is signed is believed");
  require(
      node.admits(certificate.key, now) == (is_signed || certificate.key == key_pair(9).public_key),
      "only who is believed is admitted");
}

void hand_in(const Revocation& revocation) {
  Admission node = admission();
  for (const Certificate& known : signed_certificates()) (void)node.learn(known, now);
  const bool is_signed = std::ranges::count(signed_revocations(), revocation) > 0;
  const auto merged = node.merge({&revocation, 1}, now);
  require(merged.added.size() == (is_signed ? 1U : 0U), "only what is signed is believed");
  require(merged.revoked.size() == (is_signed && revocation.serial == 1001 ? 1U : 0U),
          "only who is revoked falls");
}

template <class Decode>
bool take(Input input, Decode decode) {
  const auto decoded = bounded(heap_bound(input.size()), [&] { return decode(input); });
  if (!decoded) return false;
  require(std::ranges::equal(encode(*decoded), input), "there is one way to write it");
  hand_in(*decoded);
  return true;
}

}  // namespace

bool read(Input input) {
  Feed feed{input};
  return feed.byte() == 0 ? take(feed.rest(), security::decode_certificate)
                          : take(feed.rest(), security::decode_revocation);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto add = [&](int kind, const Bytes& encoded) {
    all.push_back({static_cast<std::byte>(kind)});
    all.back().insert(all.back().end(), encoded.begin(), encoded.end());
  };
  for (const auto& one : signed_certificates()) add(0, encode(one));
  for (const auto& one : signed_revocations()) add(1, encode(one));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
