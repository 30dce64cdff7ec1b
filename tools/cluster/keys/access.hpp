/// Connects commands to a cluster: reads their key file, and opens a client for the node that they
/// ask first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/cluster/cluster_client.hpp"
#include "starling/actor/security/key_file.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Reads the key file that the setting `keys` names; returns nothing if it is not set.
[[nodiscard]] Result<std::optional<security::NodeSecrets>> read_keys(const Settings& settings);

/// Parses `[NAME@]HOST:PORT` into addresses as wire::print writes them. There is more than one if
/// NAME has had several public keys.
[[nodiscard]] Result<std::vector<std::string>> parse_seeds(
    const Setting& setting, const std::optional<security::NodeSecrets>& secrets);

/// The way of a command into a cluster.
struct Access {
  /// The address of the seed node: the node that the command asks first.
  std::string seed;
  std::unique_ptr<actor::ClusterClient> client;
  /// True if the client has a key file.
  bool has_keys = false;

  /// Asks the seed node for its status. If it does not answer, the Error says why.
  [[nodiscard]] Result<wire::NodeStatus> ask_status() const;
};

/// Returns an Error that says why no node answered at `address`, tcp://HOST:PORT, as far as a
/// connection to it shows.
[[nodiscard]] Error explain_silence(const std::string& address, bool has_keys);

/// Returns the options `to`, `keys` and `insecure`, for the group `group` of the help.
[[nodiscard]] std::vector<KeyDescription> connection_options(const char* group);
/// Opens access to a cluster by the settings of the options connection_options().
[[nodiscard]] Result<Access> open_access(const Settings& settings);

/// Returns `address`, tcp://HOST:PORT, with its host as a numeric address.
[[nodiscard]] Result<std::string> resolve(const std::string& address);

/// Returns tcp://HOST:*, an address to listen at: HOST is the address of this machine from which it
/// reaches `address`, tcp://HOST:PORT.
[[nodiscard]] Result<std::string> local_address_towards(const std::string& address);

}  // namespace starling::program
