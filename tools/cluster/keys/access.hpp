/// Connects a command to a cluster: reads the command's key file, and opens a client for the seed
/// node, which the command asks first. Blocking.
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

/// Parses `[NAME@]HOST:PORT` and returns the addresses at which the node may be, in the form of
/// wire::print(): HOST as a numeric address, with the public key of NAME. If `secrets` know several
/// public keys of NAME, returns an address for each. An Error for an unknown NAME says how to issue
/// the key file anew, unless `is_administrator`: the administrator's secrets know all nodes.
[[nodiscard]] Result<std::vector<std::string>> parse_seeds(
    const Setting& setting, const std::optional<security::NodeSecrets>& secrets,
    bool is_administrator = false);

/// The connection of a command to a cluster.
struct Access {
  /// The address of the seed node, which the command asks first.
  std::string seed;
  std::unique_ptr<actor::ClusterClient> client;
  /// True if the client has a key file.
  bool has_keys = false;

  /// Asks the seed node for its status. If the node does not answer within about 3 s, returns an
  /// Error with the likely reasons.
  [[nodiscard]] Result<wire::NodeStatus> ask_status() const;
};

/// Returns an Error with the likely reasons why no node has answered at `address`, tcp://HOST:PORT.
/// Tries to connect, to tell an address at which nothing listens from a node that is busy or
/// refuses this client. `has_keys` is Access::has_keys.
[[nodiscard]] Error explain_silence(const std::string& address, bool has_keys);

/// Returns true if something accepts connections at `address`, tcp://HOST:PORT.
[[nodiscard]] bool accepts_connections(const std::string& address);

/// Returns the options `to`, `keys` and `insecure`, for the group `group` of the help.
[[nodiscard]] std::vector<KeyDescription> connection_options(const char* group);
/// Opens access to a cluster by the settings of these options. Does not check that the seed node
/// answers.
[[nodiscard]] Result<Access> open_access(const Settings& settings);

/// Looks up the host of `address`, tcp://HOST:PORT, and returns the address with the host in
/// numeric form.
[[nodiscard]] Result<std::string> resolve(const std::string& address);

/// Returns tcp://HOST:*, an address to listen at. HOST is the numeric address of this machine on
/// the interface through which it reaches `address`, which is tcp://HOST:PORT.
[[nodiscard]] Result<std::string> local_address_towards(const std::string& address);

}  // namespace starling::program
