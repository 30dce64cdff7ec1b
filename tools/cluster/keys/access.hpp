/// How commands reach the nodes of a cluster: key files, and the node that a command asks first, by
/// name and address.
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

/// Reads the key file that the setting `keys` names; nothing where it is not set.
[[nodiscard]] Result<std::optional<security::NodeSecrets>> read_keys(const Settings& settings);

/// Parses `[NAME@]HOST:PORT` into addresses as wire::print writes them: more than one where NAME
/// has had several keys.
[[nodiscard]] Result<std::vector<std::string>> parse_seeds(
    const Setting& setting, const std::optional<security::NodeSecrets>& secrets);

/// The node of the cluster that a command asks first, and the client that asks it.
struct Access {
  std::string seed;
  std::unique_ptr<actor::ClusterClient> client;
  bool has_keys = false;

  /// Asks the seed node for its status. Fails, saying why, if it does not answer.
  [[nodiscard]] Result<wire::NodeStatus> ask_status() const;
};

/// Returns why no node answered at tcp://HOST:PORT, as far as a connection to it tells.
[[nodiscard]] Error silence_of(const std::string& place, bool has_keys);

/// The keys `to`, `keys` and `insecure`, in a group of the help.
[[nodiscard]] std::vector<KeyForm> connection_options(const char* group);
/// Opens access to a cluster by the settings of connection_options().
[[nodiscard]] Result<Access> open_access(const Settings& settings);

/// Returns tcp://HOST:PORT with the host as a numeric address.
[[nodiscard]] Result<std::string> resolve(const std::string& place);

/// Returns the address from which this machine reaches `place`, tcp://HOST:PORT, with a free port.
[[nodiscard]] Result<std::string> own_address(const std::string& place);

}  // namespace starling::program
