/// What `starling keys` does, one function a command. Each returns an exit code, or an error of its
/// input: then nothing was written.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::app {

/// Makes a cluster: its key, in a folder that is made where there is none.
[[nodiscard]] Result<int> keys_init_command(const std::string& folder);

struct KeysNodeOptions {
  /// Of one holder each.
  std::vector<std::string> names;
  /// node or client.
  std::string role = "node";
  /// How long it is valid, a whole number.
  std::string days = "365";
  /// The folder of the cluster's key.
  std::string cluster;
  /// Of one name alone. Empty: NAME.key.
  std::string out;
};
/// Issues certificates and writes the key files of their holders, each of whom knows all others.
[[nodiscard]] Result<int> keys_node_command(const KeysNodeOptions& options);

/// Revokes the certificate of a serial, or all of a name, and tells the node at `to`,
/// `[NAME@]HOST:PORT`, unless that is empty.
[[nodiscard]] Result<int> keys_revoke_command(const std::string& which, const std::string& cluster,
                                              const std::string& to);

/// Says what is in a file, but no secret.
[[nodiscard]] Result<int> keys_show_command(const std::string& file, bool json);

}  // namespace starling::app
