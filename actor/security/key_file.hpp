/// Parses and prints the text files that hold key pairs, certificates and revocations: a comment
/// that describes the file, then lines `field = value`, with bytes in base64. The caller reads and
/// writes the disk. Thread-safe.
///
/// A parsed file is consistent: the keys of each pair belong together, and the cluster that the
/// file names has signed every certificate and revocation. The certificates may have expired;
/// verify() checks this.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starling/actor/security/certificate.hpp"
#include "starling/base/result.hpp"

namespace starling::security {

/// The administrator's secrets, which are never kept on a node.
struct ClusterSecrets {
  ClusterKey key{};
  /// The whole cluster shares these keys. A newcomer uses them to present its certificate (see
  /// admission.hpp). In files their names are `gate-public` and `gate-secret`.
  KeyPair handshake_keys{};
};

/// The secrets and certificates that a node or a client starts with.
struct NodeSecrets {
  ClusterPublic cluster{};
  KeyPair handshake_keys{};
  /// The node's own key pair; `certificate` is for its public key.
  KeyPair keys{};
  Certificate certificate;
  /// Certificates that were issued before `certificate`. The node takes the public keys of its seed
  /// nodes from them.
  std::vector<Certificate> known;
  std::vector<Revocation> revocations;
};

/// All certificates that were issued, oldest first. They are not secret.
struct CertificateList {
  ClusterPublic cluster{};
  std::vector<Certificate> certificates;
};

/// Revocations that are given to any node, which passes them on. They are not secret.
struct RevocationList {
  ClusterPublic cluster{};
  std::vector<Revocation> revocations;
};

using KeyFile = std::variant<ClusterSecrets, NodeSecrets, CertificateList, RevocationList>;

/// Returns a description of the file for messages, such as "a cluster's key file".
[[nodiscard]] std::string kind_of(const KeyFile& file);
/// True if the file has secret keys, so that nobody but its owner may read it.
[[nodiscard]] bool is_secret(const KeyFile& file);

[[nodiscard]] std::string print(const KeyFile& file);

/// Parses the text of a file. Errors name `path` and the line.
[[nodiscard]] Result<KeyFile> parse_key_file(std::string_view text, const std::string& path);

}  // namespace starling::security
