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
/// Clocks of machines differ: a certificate holds from a little before it was issued.
constexpr security::UtcSeconds clocks_apart_s = 300;
constexpr std::uint64_t days_max = 36'500;
constexpr auto send_every = 100ms;
constexpr int send_tries = 100;

Result<Role> parse_role(const std::string& text) {
  if (text == "node") return Role::node;
  if (text == "client") return Role::client;
  const std::vector<std::string> roles{"node", "client"};
  return Error{"--role: '" + text + "' is no role; " + suggest(text, roles)};
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

/// Returns the certificates that `which`, a serial or a name, stands for.
Result<std::vector<Certificate>> named(const ClusterFolder& cluster, const std::string& which) {
  std::vector<Certificate> found;
  const auto serial = security::parse_serial(which);
  std::vector<std::string> names;
  for (const Certificate& c : cluster.issued().certificates) {
    if (serial ? c.serial == *serial : c.name == which) found.push_back(c);
    names.push_back(c.name);
  }
  if (!found.empty()) return found;
  if (serial)
    return Error{"no certificate has the serial " + which + " in " + cluster.issued_path() + "; `" +
                 program_name() + " keys show " + cluster.issued_path() + "` lists them"};
  const std::string meant = nearest(which, names);
  return Error{"nobody of the name '" + which + "' has a certificate in " + cluster.issued_path() +
               "; " + (meant.empty() ? "" : "did you mean '" + meant + "'? ") + "`" +
               program_name() + " keys show " + cluster.issued_path() + "` lists them"};
}

bool is_revoked(const ClusterFolder& cluster, std::uint64_t serial) {
  return std::ranges::any_of(cluster.revoked().revocations,
                             [&](const auto& r) { return r.serial == serial; });
}

/// Returns the certificates that a new holder should know: neither expired nor revoked.
std::vector<Certificate> still_valid(const ClusterFolder& cluster, security::UtcSeconds now) {
  std::vector<Certificate> valid;
  for (const Certificate& c : cluster.issued().certificates)
    if (c.not_after >= now && !is_revoked(cluster, c.serial)) valid.push_back(c);
  return valid;
}

/// Issues the secrets of a new holder, without other holders' certificates yet.
security::NodeSecrets issue(const ClusterFolder& cluster, const std::string& name, Role role,
                            security::UtcSeconds now, security::UtcSeconds valid_s) {
  security::NodeSecrets secrets;
  secrets.cluster = cluster.secrets().key.public_key;
  secrets.handshake_keys = cluster.secrets().handshake_keys;
  secrets.keys = wire::make_keys();
  Certificate own;
  own.name = name;
  own.role = role;
  own.key = secrets.keys.public_key;
  own.serial = security::make_serial();
  own.not_before = now - clocks_apart_s;
  own.not_after = now + valid_s;
  secrets.certificate = security::sign(own, cluster.secrets().key);
  secrets.revocations = cluster.revoked().revocations;
  return secrets;
}

/// Returns the secrets that the administrator connects with, valid for 300 s only.
security::NodeSecrets speak_for(const ClusterFolder& cluster) {
  const security::UtcSeconds now = utc_now();
  security::NodeSecrets secrets =
      issue(cluster, "administrator", Role::client, now, clocks_apart_s);
  secrets.known = still_valid(cluster, now);
  return secrets;
}

/// Sends all revocations to the node at `seeds`, and waits until it knows them.
Result<void> send_revocations(const ClusterFolder& cluster, const std::vector<std::string>& seeds) {
  auto listen = own_address(wire::place_of(seeds.front()));
  if (!listen) return std::move(listen).error().within("--to");
  auto endpoint = security::Endpoint::open(
      {.listen = *std::move(listen), .secrets = speak_for(cluster), .utc_now = utc_now},
      [](const wire::FrameView&, const security::Sender&) {});
  if (!endpoint) return std::move(endpoint).error();
  for (int i = 0; i < send_tries && (*endpoint)->agreements() == 0; ++i) {
    for (const std::string& seed : seeds) (*endpoint)->compare_revocations(seed);
    std::this_thread::sleep_for(send_every);
  }
  if ((*endpoint)->agreements() == 0)
    return Error{"--to: " + silence_of(wire::place_of(seeds.front()), true).message +
                 "; what is revoked is written, and the same command tells it again"};
  return {};
}

/// Returns the path of each name's key file.
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
                 " names; valid: without it, where each has its NAME.key"};
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
  const std::vector<Certificate> known = still_valid(*cluster, now);
  // Written before the key files: a certificate that is not listed could not be revoked by its
  // name.
  const security::CertificateList before = cluster->issued();
  security::CertificateList after = before;
  std::vector<security::NodeSecrets> nodes;
  for (const std::string& name : options.names) {
    nodes.push_back(issue(*cluster, name, *role, now, *valid_s));
    after.certificates.push_back(nodes.back().certificate);
  }
  for (auto& node : nodes) {
    node.known = known;
    for (const auto& other : nodes)
      if (&other != &node) node.known.push_back(other.certificate);
  }
  if (auto listed = cluster->put(after); !listed) return std::move(listed).error();
  std::string text;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (auto written = create_secret_file((*files)[i], security::print(nodes[i])); !written) {
      for (std::size_t made = 0; made < i; ++made) std::filesystem::remove((*files)[made]);
      (void)cluster->put(before);
      return std::move(written).error().within("--out");
    }
    const Certificate& own = nodes[i].certificate;
    text += fmt::format(
        "issued {}, valid until {}\n"
        "  {} is its key file: copy it to its machine by a safe way, and keep it nowhere else\n",
        text_of(own), security::print_utc(own.not_after), (*files)[i]);
  }
  return write_stdout(text, done);
}

Result<int> keys_revoke_command(const std::string& which, const std::string& folder,
                                const std::string& to) {
  auto cluster = ClusterFolder::open(folder);
  if (!cluster) return std::move(cluster).error().within("--cluster");
  const auto certificates = named(*cluster, which);
  if (!certificates) return certificates.error();
  std::vector<std::string> seeds;
  if (!to.empty()) {
    auto parsed = parse_seeds({"to", to, "--to"}, speak_for(*cluster));
    if (!parsed) return std::move(parsed).error();
    seeds = *std::move(parsed);
  }
  security::RevocationList list = cluster->revoked();
  std::string text;
  for (const Certificate& c : *certificates) {
    if (is_revoked(*cluster, c.serial)) {
      text += "was revoked before: " + text_of(c) + "\n";
      continue;
    }
    security::Revocation revocation;
    revocation.serial = c.serial;
    revocation.time = utc_now();
    revocation.until = c.not_after;
    list.revocations.push_back(security::sign(revocation, cluster->secrets().key));
    text += "revoked " + text_of(c) + "\n";
  }
  if (auto listed = cluster->put(list); !listed) return std::move(listed).error();
  if (to.empty())
    return write_stdout(text +
                            "  no node knows: the same command with --to NAME@HOST:PORT tells one, "
                            "and it tells the others\n",
                        done);
  if (auto told = send_revocations(*cluster, seeds); !told) {
    print_error(told.error().message);
    return write_stdout(text, job_failed);
  }
  return write_stdout(text + "  told the node at " + to + ", which tells the others\n", done);
}

}  // namespace starling::program
