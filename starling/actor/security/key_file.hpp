/// The files in which keys, certificates and revocations lie, as text: a comment that says what a
/// file is, then lines `key = value`, with bytes in base64. Reads and prints; disks are for the
/// caller. Any thread.
///
/// What is read is whole: halves of keys belong together, and every certificate and revocation is
/// signed by the cluster that the file names. Whether they are valid now is for verify.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starling/actor/security/certificate.hpp"
#include "starling/base/result.hpp"

namespace starling::security {

/// What the administrator keeps: never on a node.
struct ClusterSecrets {
  ClusterKey key{};
  /// Shared by all of the cluster: under it someone new hands in a certificate (admission.hpp).
  KeyPair gate{};
};

/// What a node or a client starts with.
struct NodeSecrets {
  ClusterPublic cluster{};
  KeyPair gate{};
  /// Its own, which `certificate` is for.
  KeyPair keys{};
  Certificate certificate;
  /// Issued before its own, so that it knows the keys of the nodes it may join by.
  std::vector<Certificate> known;
  std::vector<Revocation> revocations;
};

/// All that were issued, oldest first. No secret.
struct CertificateList {
  ClusterPublic cluster{};
  std::vector<Certificate> certificates;
};

/// Given to any node, which tells the others. No secret.
struct RevocationList {
  ClusterPublic cluster{};
  std::vector<Revocation> revocations;
};

using KeyFile = std::variant<ClusterSecrets, NodeSecrets, CertificateList, RevocationList>;

/// "a cluster's key file", "the key file of a node or a client" and so on.
[[nodiscard]] std::string kind_of(const KeyFile& file);
/// Whether nobody but its owner may read it.
[[nodiscard]] bool is_secret(const KeyFile& file);

[[nodiscard]] std::string print(const KeyFile& file);

/// `path` is what errors call it; they name the line.
[[nodiscard]] Result<KeyFile> parse_key_file(std::string_view text, const std::string& path);

}  // namespace starling::security
