/// The commands of `starling keys`, one function each. A function returns an exit code, or an error
/// of its input: then nothing was written.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

/// Makes a cluster: its key, in a folder that is made where there is none.
[[nodiscard]] Result<int> keys_init_command(const std::string& folder);

struct KeysNodeOptions {
  /// The names of the holders, each of whom gets a certificate.
  std::vector<std::string> names;
  /// node or client.
  std::string role = "node";
  /// The number of days that it is valid.
  std::string days = "365";
  /// The folder of the cluster's key.
  std::string cluster;
  /// The file to write for a single name. Empty: NAME.key.
  std::string out;
};
/// Issues certificates and writes the key files of their holders, each of whom knows all others.
[[nodiscard]] Result<int> keys_node_command(const KeysNodeOptions& options);

/// Revokes the certificate of a serial, or all of a name, and notifies the node at `to`,
/// `[NAME@]HOST:PORT`, unless that is empty.
[[nodiscard]] Result<int> keys_revoke_command(const std::string& which, const std::string& cluster,
                                              const std::string& to);

/// Prints the content of a key file, but no secret.
[[nodiscard]] Result<int> keys_show_command(const std::string& file, bool json);

}  // namespace starling::program
