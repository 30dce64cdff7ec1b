#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "starling/base/json_text.hpp"
#include "starling/tools/cluster/keys/key_store.hpp"
#include "starling/tools/cluster/keys/keys_commands.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using security::Certificate;
using security::Revocation;
using Json = nlohmann::ordered_json;

constexpr std::array kinds{"cluster-key", "node-key", "certificates", "revocations"};

std::string role_of(const Certificate& c) {
  return c.role == security::Role::node ? "node" : "client";
}

/// Returns the state of a certificate at `now`; `revocations` are the known revocations.
std::string state_of(const Certificate& c, security::UtcSeconds now,
                     const std::vector<Revocation>& revocations) {
  if (std::ranges::any_of(revocations, [&](const auto& r) { return r.serial == c.serial; }))
    return "revoked";
  if (now < c.not_before) return "not yet valid";
  return now > c.not_after ? "expired" : "valid";
}

/// Returns a line of the text form.
std::string row(const char* name, const std::string& value) {
  return fmt::format("  {:<14}{}\n", name, value);
}

/// Describes a key file, as text and as JSON.
class Description {
 public:
  /// `revoked` is used for a list of certificates only: it comes from the file `revocations` beside
  /// the list.
  Description(const std::string& path, const security::KeyFile& file,
              std::vector<Revocation> revoked)
      : now_(utc_now()), revoked_(std::move(revoked)) {
    text_ = path + ": " + kind_of(file) + "\n";
    json_["file"] = path;
    json_["kind"] = kinds.at(file.index());
    std::visit([this](const auto& content) { describe(content); }, file);
  }

  [[nodiscard]] std::string text() const { return text_; }
  [[nodiscard]] std::string json() const { return json_text(json_, 2) + "\n"; }

 private:
  void describe(const security::ClusterSecrets& file) {
    describe_cluster(file.key.public_key);
    text_ += row("holds", "the key that signs certificates (secret), and the handshake key");
  }
  void describe(const security::NodeSecrets& file) {
    describe_cluster(file.cluster);
    const Certificate& c = file.certificate;
    text_ += row("name", c.name) + row("role", role_of(c)) +
             row("serial", security::print_serial(c.serial)) +
             row("public key", security::print_hex(c.key)) +
             row("valid from", security::print_utc(c.not_before)) +
             row("valid until", security::print_utc(c.not_after)) +
             row("state", state_of(c, now_, file.revocations)) +
             row("knows", fmt::format("{} certificates, {} revocations", file.known.size(),
                                      file.revocations.size()));
    json_["certificate"] = as_json(c, file.revocations);
    add_certificates(file.known, file.revocations);
    add_revocations(file.revocations);
  }
  void describe(const security::CertificateList& file) {
    describe_cluster(file.cluster);
    for (const Certificate& c : file.certificates)
      text_ += fmt::format("  {}  {:<6}  until {}  {:<13}  {}\n", security::print_serial(c.serial),
                           role_of(c), security::print_utc(c.not_after),
                           state_of(c, now_, revoked_), c.name);
    text_ +=
        row("in all", fmt::format("{} (the file `revocations` beside it lists the revoked ones)",
                                  file.certificates.size()));
    add_certificates(file.certificates, revoked_);
  }
  void describe(const security::RevocationList& file) {
    describe_cluster(file.cluster);
    for (const Revocation& r : file.revocations)
      text_ += fmt::format("  {}  revoked {}\n", security::print_serial(r.serial),
                           security::print_utc(r.time));
    text_ += row("in all", std::to_string(file.revocations.size()));
    add_revocations(file.revocations);
  }

  void describe_cluster(const security::ClusterPublic& key) {
    const std::string id = security::print_hex(security::id_of(key));
    text_ += row("cluster", id);
    json_["cluster"] = id;
  }
  void add_certificates(const std::vector<Certificate>& certificates,
                        const std::vector<Revocation>& revocations) {
    json_["certificates"] = Json::array();
    for (const Certificate& c : certificates)
      json_["certificates"].push_back(as_json(c, revocations));
  }
  void add_revocations(const std::vector<Revocation>& revocations) {
    json_["revocations"] = Json::array();
    for (const Revocation& r : revocations)
      json_["revocations"].push_back(
          {{"serial", security::print_serial(r.serial)}, {"time", r.time}, {"until", r.until}});
  }
  [[nodiscard]] Json as_json(const Certificate& c,
                             const std::vector<Revocation>& revocations) const {
    return {{"name", c.name},
            {"role", role_of(c)},
            {"serial", security::print_serial(c.serial)},
            {"public_key", security::print_hex(c.key)},
            {"not_before", c.not_before},
            {"not_after", c.not_after},
            {"state", state_of(c, now_, revocations)}};
  }

  security::UtcSeconds now_;
  std::vector<Revocation> revoked_;
  std::string text_;
  Json json_;
};

/// Returns the revocations in the file `revocations` beside the list of certificates at `path`;
/// empty if there is no such file or it is of another cluster.
Result<std::vector<Revocation>> read_revocations_beside(const std::string& path,
                                                        const security::CertificateList& list) {
  const std::string beside = (std::filesystem::path{path}.parent_path() / "revocations").string();
  if (!std::filesystem::exists(beside)) return std::vector<Revocation>{};
  auto revoked = read_key_file_as<security::RevocationList>(beside);
  if (!revoked) return std::move(revoked).error();
  if (revoked->cluster != list.cluster) return std::vector<Revocation>{};
  return std::move(revoked->revocations);
}

}  // namespace

Result<int> keys_show_command(const std::string& file, bool is_json) {
  auto read = read_key_file(file);
  if (!read) return std::move(read).error();
  std::vector<Revocation> revoked;
  if (auto* node = std::get_if<security::NodeSecrets>(&*read)) {
    auto received = read_received_revocations(file, node->cluster);
    if (!received) return std::move(received).error();
    for (const Revocation& r : received->revocations)
      if (std::ranges::count(node->revocations, r.serial, &Revocation::serial) == 0)
        node->revocations.push_back(r);
  }
  if (const auto* issued = std::get_if<security::CertificateList>(&*read)) {
    auto known = read_revocations_beside(file, *issued);
    if (!known) return std::move(known).error();
    revoked = *std::move(known);
  }
  const Description description{file, *read, std::move(revoked)};
  return write_stdout(is_json ? description.json() : description.text(), done);
}

}  // namespace starling::program
