/// Decodes certificates and revocations from unauthenticated peers, and passes them to a node's
/// Admission. The first byte of an input chooses: 0 for a certificate, else a revocation.
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

void submit(const Certificate& certificate) {
  Admission node = admission();
  const bool is_signed = std::ranges::count(signed_certificates(), certificate) > 0;
  require(node.learn(certificate, now).ok() == is_signed,
          "Admission accepts exactly the signed certificates");
  require(
      node.admits(certificate.key, now) == (is_signed || certificate.key == key_pair(9).public_key),
      "Admission admits exactly the keys with an accepted certificate");
}

void submit(const Revocation& revocation) {
  Admission node = admission();
  for (const Certificate& known : signed_certificates()) (void)node.learn(known, now);
  const bool is_signed = std::ranges::count(signed_revocations(), revocation) > 0;
  const auto merged = node.merge({&revocation, 1}, now);
  require(merged.added.size() == (is_signed ? 1U : 0U),
          "Admission accepts exactly the signed revocations");
  require(merged.removed_keys.size() == (is_signed && revocation.serial == 1001 ? 1U : 0U),
          "Admission revokes exactly the revoked certificate");
}

/// Returns true if the input is valid.
template <class Decode>
bool decode_and_submit(Input input, Decode decode) {
  const auto decoded = with_bounded_heap(heap_bound(input.size()), [&] { return decode(input); });
  if (!decoded) return false;
  require(std::ranges::equal(encode(*decoded), input),
          "encoding a decoded value gives the same bytes");
  submit(*decoded);
  return true;
}

}  // namespace

bool read(Input input) {
  InputReader reader{input};
  return reader.byte() == 0 ? decode_and_submit(reader.rest(), security::decode_certificate)
                            : decode_and_submit(reader.rest(), security::decode_revocation);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto add = [&](int kind, const Bytes& encoded) {
    all.push_back({static_cast<std::byte>(kind)});
    all.back().insert(all.back().end(), encoded.begin(), encoded.end());
  };
  for (const auto& item : signed_certificates()) add(0, encode(item));
  for (const auto& item : signed_revocations()) add(1, encode(item));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
