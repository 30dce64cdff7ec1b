#include "starling/tools/cluster/keys/keys_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "starling/actor/security/endpoint.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/cluster/keys/access.hpp"
#include "starling/tools/cluster/keys/key_store.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;
using security::Certificate;
using security::Role;

constexpr security::UtcSeconds day_s = 86'400;
/// The most by which the clocks of machines may differ. A certificate becomes valid this long
/// before it is issued.
constexpr security::UtcSeconds clock_skew_s = 300;
constexpr std::uint64_t days_max = 36'500;
constexpr auto send_interval = 100ms;
constexpr int send_tries = 100;

Result<Role> parse_role(const std::string& text) {
  if (text == "node") return Role::node;
  if (text == "client") return Role::client;
  const std::vector<std::string> roles{"node", "client"};
  return Error{"--role: '" + text + "' is not a role; " + suggest(text, roles)};
}

Result<security::UtcSeconds> parse_days(const std::string& text) {
  const auto days = parse_count(text);
  if (!days || *days < 1 || *days > days_max)
    return Error{fmt::format("--days: '{}' must be a whole number >= 1 and <= {}", text, days_max)};
  return static_cast<security::UtcSeconds>(*days) * day_s;
}

std::string text_of(const Certificate& certificate) {
  return certificate.name + " (" + security::print_serial(certificate.serial) + ")";
}

/// Returns the certificate with a serial number, or all certificates of a name.
Result<std::vector<Certificate>> find_certificates(const ClusterFolder& cluster,
                                                   const std::string& name_or_serial) {
  std::vector<Certificate> found;
  const auto serial = security::parse_serial(name_or_serial);
  std::vector<std::string> names;
  for (const Certificate& c : cluster.issued().certificates) {
    if (serial ? c.serial == *serial : c.name == name_or_serial) found.push_back(c);
    names.push_back(c.name);
  }
  if (!found.empty()) return found;
  if (serial)
    return Error{"no certificate has the serial " + name_or_serial + " in " +
                 cluster.issued_path() + "; `" + program_name() + " keys show " +
                 cluster.issued_path() + "` lists them"};
  const std::string suggestion = nearest(name_or_serial, names);
  return Error{"no certificate has the name '" + name_or_serial + "' in " + cluster.issued_path() +
               "; " + (suggestion.empty() ? "" : "did you mean '" + suggestion + "'? ") + "`" +
               program_name() + " keys show " + cluster.issued_path() + "` lists them"};
}

bool is_revoked(const ClusterFolder& cluster, std::uint64_t serial) {
  return std::ranges::any_of(cluster.revoked().revocations,
                             [&](const auto& revocation) { return revocation.serial == serial; });
}

/// Returns the certificates that are neither expired nor revoked.
std::vector<Certificate> valid_certificates(const ClusterFolder& cluster,
                                            security::UtcSeconds now) {
  std::vector<Certificate> valid;
  for (const Certificate& c : cluster.issued().certificates)
    if (c.not_after >= now && !is_revoked(cluster, c.serial)) valid.push_back(c);
  return valid;
}

/// Makes the keys and the signed certificate of a new node or client. `known`, the certificates of
/// others, is still empty. The certificate is valid for `valid_s` seconds from `now` on.
security::NodeSecrets issue(const ClusterFolder& cluster, const std::string& name, Role role,
                            security::UtcSeconds now, security::UtcSeconds valid_s) {
  security::NodeSecrets secrets;
  secrets.cluster = cluster.secrets().key.public_key;
  secrets.handshake_keys = cluster.secrets().handshake_keys;
  secrets.keys = wire::make_key_pair();
  Certificate certificate;
  certificate.name = name;
  certificate.role = role;
  certificate.key = secrets.keys.public_key;
  certificate.serial = security::make_serial();
  certificate.not_before = now - clock_skew_s;
  certificate.not_after = now + valid_s;
  secrets.certificate = security::sign(certificate, cluster.secrets().key);
  secrets.revocations = cluster.revoked().revocations;
  return secrets;
}

/// Returns secrets with which the administrator of `cluster` can connect to its nodes for
/// clock_skew_s.
security::NodeSecrets issue_for_administrator(const ClusterFolder& cluster) {
  const security::UtcSeconds now = utc_now();
  security::NodeSecrets secrets = issue(cluster, "administrator", Role::client, now, clock_skew_s);
  secrets.known = valid_certificates(cluster, now);
  return secrets;
}

/// Sends all revocations to one node and waits until the node has them, for about 10 s at most.
/// `seeds` are the addresses at which the node may be.
Result<void> send_revocations(const ClusterFolder& cluster, const std::vector<std::string>& seeds) {
  auto listen = local_address_towards(wire::without_key(seeds.front()));
  if (!listen) return std::move(listen).error().within("--to");
  auto endpoint = security::Endpoint::open({.listen = *std::move(listen),
                                            .secrets = issue_for_administrator(cluster),
                                            .utc_now = utc_now},
                                           [](const wire::FrameView&, const security::Sender&) {});
  if (!endpoint) return std::move(endpoint).error();
  for (int i = 0; i < send_tries && (*endpoint)->digest_matches() == 0; ++i) {
    for (const std::string& seed : seeds) (*endpoint)->compare_revocations(seed);
    std::this_thread::sleep_for(send_interval);
  }
  if ((*endpoint)->digest_matches() == 0)
    return Error{"--to: " + explain_silence(wire::without_key(seeds.front()), true).message +
                 "; the revocations are written, and the same command sends them again"};
  return {};
}

/// Returns the path of the key file to write for each name.
Result<std::vector<std::string>> key_files(const KeysNodeOptions& options) {
  std::vector<std::string> files;
  for (const std::string& name : options.names) {
    if (auto valid = security::check_name(name); !valid)
      return std::move(valid).error().within("NAME");
    files.push_back(options.out.empty() ? name + ".key" : options.out);
    if (std::ranges::count(options.names, name) > 1)
      return Error{"NAME: '" + name + "' is given twice; valid: each once"};
  }
  if (files.size() > 1 && !options.out.empty())
    return Error{"--out: names one file for " + std::to_string(files.size()) +
                 " names; valid: no --out, which writes NAME.key for each"};
  return files;
}

}  // namespace

Result<int> keys_init_command(const std::string& folder) {
  if (folder.empty()) return Error{"DIR: is empty; valid: the name of a folder"};
  const auto cluster = ClusterFolder::create(folder);
  if (!cluster) return cluster.error();
  return write_stdout(
      fmt::format("made the cluster {}\n"
                  "  {} signs its certificates: keep it on no node, and keep a copy\n"
                  "  next, for each machine: {} keys node NAME --cluster {}\n",
                  security::short_id(security::id_of(cluster->secrets().key.public_key)),
                  cluster->key_path(), program_name(), folder),
      done);
}

Result<int> keys_node_command(const KeysNodeOptions& options) {
  const auto files = key_files(options);
  if (!files) return files.error();
  const auto role = parse_role(options.role);
  if (!role) return role.error();
  const auto valid_s = parse_days(options.days);
  if (!valid_s) return valid_s.error();
  for (const std::string& file : *files)
    if (auto is_new = check_new(file); !is_new) return std::move(is_new).error().within("--out");
  auto cluster = ClusterFolder::open(options.cluster);
  if (!cluster) return std::move(cluster).error().within("--cluster");

  const security::UtcSeconds now = utc_now();
  const std::vector<Certificate> known = valid_certificates(*cluster, now);
  const security::CertificateList old_list = cluster->issued();
  security::CertificateList new_list = old_list;
  std::vector<security::NodeSecrets> issued;
  for (const std::string& name : options.names) {
    issued.push_back(issue(*cluster, name, *role, now, *valid_s));
    new_list.certificates.push_back(issued.back().certificate);
  }
  for (auto& secrets : issued) {
    secrets.known = known;
    for (const auto& other : issued)
      if (&other != &secrets) secrets.known.push_back(other.certificate);
  }
  // The list is written before the key files, because a certificate that is not listed could not be
  // revoked by its name.
  if (auto listed = cluster->replace(new_list); !listed) return std::move(listed).error();
  std::string text;
  for (std::size_t i = 0; i < issued.size(); ++i) {
    if (auto written = create_secret_file((*files)[i], security::print(issued[i])); !written) {
      std::error_code ignored;
      for (std::size_t created = 0; created < i; ++created)
        std::filesystem::remove((*files)[created], ignored);
      (void)cluster->replace(old_list);
      return std::move(written).error().within("--out");
    }
    const Certificate& certificate = issued[i].certificate;
    text += fmt::format(
        "issued {}, valid until {}\n"
        "  {} is its key file: copy it to its machine over a safe channel, and keep it nowhere "
        "else\n",
        text_of(certificate), security::print_utc(certificate.not_after), (*files)[i]);
  }
  return write_stdout(text, done);
}

Result<int> keys_revoke_command(const std::string& name_or_serial, const std::string& folder,
                                const std::string& to) {
  auto cluster = ClusterFolder::open(folder);
  if (!cluster) return std::move(cluster).error().within("--cluster");
  const auto certificates = find_certificates(*cluster, name_or_serial);
  if (!certificates) return certificates.error();
  security::RevocationList list = cluster->revoked();
  std::string text;
  for (const Certificate& c : *certificates) {
    if (is_revoked(*cluster, c.serial)) {
      text += "was already revoked: " + text_of(c) + "\n";
      continue;
    }
    security::Revocation revocation;
    revocation.serial = c.serial;
    revocation.time = utc_now();
    revocation.until = c.not_after;
    list.revocations.push_back(security::sign(revocation, cluster->secrets().key));
    text += "revoked " + text_of(c) + "\n";
  }
  std::vector<std::string> seeds;
  if (!to.empty()) {
    // The administrator cannot connect to a node that this command revokes.
    security::NodeSecrets administrator = issue_for_administrator(*cluster);
    administrator.revocations = list.revocations;
    auto parsed = parse_seeds({"to", to, "--to"}, administrator, true);
    if (!parsed) return std::move(parsed).error();
    seeds = *std::move(parsed);
  }
  if (auto listed = cluster->replace(list); !listed) return std::move(listed).error();
  if (to.empty())
    return write_stdout(text +
                            "  no node knows this yet: the same command with --to NAME@HOST:PORT "
                            "notifies one, which notifies the others\n",
                        done);
  if (auto sent = send_revocations(*cluster, seeds); !sent) {
    print_error(sent.error().message);
    return write_stdout(text, job_failed);
  }
  return write_stdout(text + "  notified the node at " + to + ", which notifies the others\n",
                      done);
}

}  // namespace starling::program
