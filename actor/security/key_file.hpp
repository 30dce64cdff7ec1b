/// Parses and prints the text files that hold keys, certificates and revocations: a comment that
/// says what a file is, then lines `key = value`, with bytes in base64. The caller reads and writes
/// the disk. Any thread.
///
/// A parsed file is consistent: the halves of its keys belong together, and the cluster that the
/// file names has signed every certificate and revocation. verify() checks whether they are valid
/// now.
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
  /// Shared by the whole cluster: under these keys a newcomer hands in its certificate (see
  /// admission.hpp). Files call them `gate-public` and `gate-secret`.
  KeyPair handshake_keys{};
};

/// The secrets and certificates that a node or a client starts with.
struct NodeSecrets {
  ClusterPublic cluster{};
  KeyPair handshake_keys{};
  /// Its own key pair, which `certificate` is for.
  KeyPair keys{};
  Certificate certificate;
  /// Certificates that were issued before its own, so that it knows the keys of its seed nodes.
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

/// "a cluster's key file", "the key file of a node or a client" and so on.
[[nodiscard]] std::string kind_of(const KeyFile& file);
/// Whether nobody but its owner may read it.
[[nodiscard]] bool is_secret(const KeyFile& file);

[[nodiscard]] std::string print(const KeyFile& file);

/// Errors name the file by `path`, and the line.
[[nodiscard]] Result<KeyFile> parse_key_file(std::string_view text, const std::string& path);

}  // namespace starling::security
