/// How commands reach the nodes of a cluster: key files, and the node that a command asks first, by
/// name and address.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/security/key_file.hpp"
#include "starling/app/keys.hpp"
#include "starling/app/settings.hpp"
#include "starling/engine/live/cluster_client.hpp"

namespace starling::app {

/// Of the setting `keys`; nothing where there is none.
[[nodiscard]] Result<std::optional<security::NodeSecrets>> read_keys(const Settings& settings);

/// `[NAME@]HOST:PORT`, as wire::print has it: more than one where NAME has had several keys.
[[nodiscard]] Result<std::vector<std::string>> parse_seeds(
    const Setting& setting, const std::optional<security::NodeSecrets>& secrets);

/// A node of the cluster, and how to ask it.
struct Access {
  std::string seed;
  std::unique_ptr<live::ClusterClient> client;
  bool has_keys = false;

  /// Asks the seed node for its status. Fails, saying why, if it does not answer.
  [[nodiscard]] Result<wire::NodeStatus> ask_status() const;
};

/// Why whoever is at tcp://HOST:PORT gave no answer, as far as a connection to it tells.
[[nodiscard]] Error silence_of(const std::string& place, bool has_keys);

/// The keys `to`, `keys` and `insecure`, in a group of the help.
[[nodiscard]] std::vector<KeyForm> access_keys(const char* group);
/// By the settings of these.
[[nodiscard]] Result<Access> open_access(const Settings& settings);

/// tcp://HOST:PORT with the host in figures.
[[nodiscard]] Result<std::string> resolve(const std::string& place);

/// This machine's address as the way to `place`, tcp://HOST:PORT, has it, with a free port.
[[nodiscard]] Result<std::string> own_address(const std::string& place);

}  // namespace starling::app
