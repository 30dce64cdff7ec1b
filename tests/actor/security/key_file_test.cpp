#include "starling/actor/security/key_file.hpp"

#include <gtest/gtest.h>

#include "tests/actor/security/certificates.hpp"

namespace starling::security {
namespace {

ClusterSecrets example_cluster() { return {make_cluster_key(), wire::make_key_pair()}; }

NodeSecrets example_node(const ClusterSecrets& cluster) {
  NodeSecrets node;
  node.cluster = cluster.key.public_key;
  node.handshake_keys = cluster.handshake_keys;
  node.keys = wire::make_key_pair();
  node.certificate = certificate_for("worker-1", node.keys.public_key, cluster.key);
  for (const char* name : {"worker-2", "worker-3"})
    node.known.push_back(certificate_for(name, wire::make_key_pair().public_key, cluster.key));
  node.revocations.push_back(revocation_of(7, cluster.key));
  return node;
}

/// Returns a key file of each kind.
std::vector<KeyFile> all_files(const ClusterSecrets& cluster) {
  const NodeSecrets node = example_node(cluster);
  return {cluster, node, CertificateList{node.cluster, node.known},
          RevocationList{node.cluster, node.revocations}};
}

std::string error_of(const std::string& text) {
  const auto parsed = parse_key_file(text, "FILE");
  return parsed ? "" : parsed.error().message;
}

/// Returns `text` with another value in the first line of the field `key`.
std::string with_value(std::string text, const std::string& key, const std::string& value) {
  const auto at = text.find("\n" + key + " = ") + key.size() + 4;
  return text.replace(at, text.find('\n', at) - at, value);
}

/// Returns the value in the first line of a field.
std::string value_of(const std::string& text, const std::string& key) {
  const auto at = text.find("\n" + key + " = ") + key.size() + 4;
  return text.substr(at, text.find('\n', at) - at);
}

/// Returns the number of the first line of a field.
std::size_t line_of(const std::string& text, const std::string& key) {
  const auto at = text.find("\n" + key + " = ");
  return 2 + static_cast<std::size_t>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

TEST(KeyFile, SurvivesPrintingAndParsing) {
  const ClusterSecrets cluster = example_cluster();
  const auto files = all_files(cluster);
  for (const KeyFile& file : files) {
    const std::string text = print(file);
    const auto parsed = parse_key_file(text, "FILE");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->index(), file.index());
    EXPECT_EQ(print(*parsed), text);
    EXPECT_TRUE(text.starts_with("# ")) << "a file begins with its description";
  }
  const auto node = std::get<NodeSecrets>(*parse_key_file(print(files[1]), "FILE"));
  const auto& sent = std::get<NodeSecrets>(files[1]);
  EXPECT_EQ(node.keys.secret_key, sent.keys.secret_key);
  EXPECT_EQ(node.handshake_keys.secret_key, cluster.handshake_keys.secret_key);
  EXPECT_EQ(node.certificate, sent.certificate);
  EXPECT_EQ(node.known, sent.known);
  EXPECT_EQ(node.revocations, sent.revocations);
}

TEST(KeyFile, IsSecretIfItHasSecretKeys) {
  const auto files = all_files(example_cluster());
  EXPECT_TRUE(is_secret(files[0]));
  EXPECT_TRUE(is_secret(files[1]));
  EXPECT_FALSE(is_secret(files[2]));
  EXPECT_FALSE(is_secret(files[3]));
  for (const KeyFile& file : files)
    EXPECT_EQ(print(file).find("SECRET") != std::string::npos, is_secret(file));
}

TEST(KeyFile, OfANodeDoesNotContainTheClustersSecretKey) {
  const ClusterSecrets cluster = example_cluster();
  const std::string secret = value_of(print(cluster), "cluster-secret");
  EXPECT_EQ(print(example_node(cluster)).find(secret.substr(0, 42)), std::string::npos);
}

/// Removes each line that is not part of a list. The error names the file and the missing field.
TEST(KeyFile, IsRefusedIfALineIsMissing) {
  const ClusterSecrets cluster = example_cluster();
  for (const KeyFile& file : {KeyFile{cluster}, KeyFile{example_node(cluster)}}) {
    const std::string text = print(file);
    for (const char* key : {"kind", "format", "cluster-public", "cluster-secret", "gate-public",
                            "gate-secret", "own-public", "own-secret", "own-certificate"}) {
      const auto at = text.find(std::string{"\n"} + key + " = ");
      if (at == std::string::npos) continue;
      std::string text_without_line = text;
      text_without_line.erase(at, text.find('\n', at + 1) - at);
      EXPECT_EQ(error_of(text_without_line),
                "FILE: has no line `" + std::string{key} + " = ...`: it is not a whole key file");
    }
  }
}

/// Returns true if the character is in a secret CURVE key. Five bits of such a key have no effect
/// (RFC 7748, section 5), so a change of one of them is not detected.
bool is_curve_secret(const std::string& text, std::size_t at) {
  const auto line = text.rfind('\n', at) + 1;
  const std::string key = text.substr(line, text.find(' ', line) - line);
  return key == "gate-secret" || key == "own-secret";
}

TEST(KeyFile, IsRefusedIfACharacterIsChanged) {
  const ClusterSecrets cluster = example_cluster();
  for (const KeyFile& file : all_files(cluster)) {
    std::string text = print(file);
    for (std::size_t at = text.find("\ncluster-public"); at < text.size(); ++at) {
      const char original = text[at];
      if (original == '\n' || original == ' ') continue;
      text[at] = original == 'A' ? 'B' : 'A';
      EXPECT_TRUE(!error_of(text).empty() || is_curve_secret(text, at))
          << "character " << at << " of " << kind_of(file);
      text[at] = original;
    }
    EXPECT_EQ(error_of(text), "");
  }
}

TEST(KeyFile, ErrorsNameTheLine) {
  const ClusterSecrets cluster = example_cluster();
  const std::string text = print(example_node(cluster));
  const auto at = [&](const std::string& key) {
    return "FILE:" + std::to_string(line_of(text, key)) + ": " + key + ": ";
  };
  EXPECT_EQ(error_of(with_value(text, "own-public", "AAAA")),
            at("own-public") + "is not 32 bytes in base64: the file is damaged");
  EXPECT_EQ(error_of(with_value(text, "certificate", "no base64")),
            at("certificate") + "is not base64: the file is damaged");
  EXPECT_EQ(error_of(with_value(text, "own-certificate", "AAAA")),
            at("own-certificate") + "a certificate is of version 0; valid here: 1");
  EXPECT_NE(error_of(with_value(text, "certificate", value_of(text, "own-certificate") + "!")), "");
  EXPECT_EQ(error_of(text + "own-public = AAAA\n"),
            "FILE:" + std::to_string(1 + std::count(text.begin(), text.end(), '\n')) +
                ": 'own-public' is unknown or given twice in the key file of a node or a client");
  EXPECT_EQ(error_of("kind = node-key\nnonsense\n"),
            "FILE:2: is not a line of a key file; valid: `field = value`, or # and a comment");
  EXPECT_EQ(error_of("kind = cake\nformat = 1\n"),
            "FILE: kind: 'cake' is unknown; valid: cluster-key, node-key, certificates, "
            "revocations");
  EXPECT_EQ(error_of("kind = node-key\nformat = 2\n"),
            "FILE: format: '2' is unknown; valid here: 1");
  EXPECT_NE(error_of(""), "");
}

TEST(KeyFile, IsRefusedIfKeysOrCertificatesDoNotBelongTogether) {
  const ClusterSecrets cluster = example_cluster();
  const ClusterSecrets other = example_cluster();
  const std::string text = print(example_node(cluster));
  const std::string others = print(example_node(other));
  EXPECT_EQ(error_of(with_value(text, "gate-secret", value_of(others, "gate-secret"))),
            "FILE: gate-public and gate-secret do not belong together: the file is damaged");
  EXPECT_EQ(error_of(with_value(text, "own-certificate", value_of(text, "certificate"))),
            "FILE: own-certificate is not for own-public: the file is damaged");
  for (const char* key : {"own-certificate", "certificate", "revocation"})
    EXPECT_NE(
        error_of(with_value(text, key, value_of(others, key))).find(" is of another cluster, "),
        std::string::npos);
  EXPECT_EQ(error_of(with_value(print(cluster), "cluster-secret",
                                value_of(print(other), "cluster-secret"))),
            "FILE: cluster-public and cluster-secret do not belong together: the file is damaged");
}

TEST(KeyFile, IsRefusedIfAValueIsMissing) {
  const std::string text = print(example_node(example_cluster()));
  EXPECT_EQ(error_of(with_value(text, "gate-secret", "")),
            "FILE:" + std::to_string(line_of(text, "gate-secret")) +
                ": gate-secret: is not 32 bytes in base64: the file is damaged");
  EXPECT_EQ(error_of(with_value(text, "certificate", "")),
            "FILE:" + std::to_string(line_of(text, "certificate")) +
                ": certificate: a certificate ends too early");
}

TEST(KeyFile, MayHaveFurtherCommentsAndWhiteSpace) {
  std::string text = print(example_cluster());
  text.insert(0, "\n  # mine\r\n\r\n");
  std::string spaced;
  for (const char c : text) spaced += c == '\n' ? "  \r\n" : std::string(1, c);
  EXPECT_EQ(error_of(spaced), "");
}

}  // namespace
}  // namespace starling::security
