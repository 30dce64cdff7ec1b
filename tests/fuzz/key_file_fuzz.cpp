/// Reads files of secret and public keys, certificates and revocations.
#include "starling/actor/security/key_file.hpp"

#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/keys.hpp"

namespace starling::fuzz {

/// Reading a key file may take this many times its size.
constexpr std::size_t heap_factor = 128;

bool read(Input input) {
  const auto file = with_bounded_heap(heap_factor * input.size() + 65536, [&] {
    return security::parse_key_file(text_of(input), "FILE");
  });
  if (!file) return false;
  const std::string text = print(*file);
  const auto again = security::parse_key_file(text, "FILE");
  require(again.ok() && print(*again) == text, "parsing a printed key file gives the same text");
  return true;
}

std::vector<Bytes> seeds() {
  using namespace security;
  NodeSecrets node{.cluster = cluster_key().public_key,
                   .handshake_keys = key_pair(9),
                   .keys = key_pair(3),
                   .certificate = certificate(3),
                   .known = {certificate(1), certificate(2)},
                   .revocations = {revocation(7)}};
  std::vector<Bytes> all;
  for (const KeyFile& file : {KeyFile{ClusterSecrets{cluster_key(), key_pair(9)}}, KeyFile{node},
                              KeyFile{CertificateList{node.cluster, node.known}},
                              KeyFile{RevocationList{node.cluster, node.revocations}}})
    all.push_back(bytes_of(print(file)));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
