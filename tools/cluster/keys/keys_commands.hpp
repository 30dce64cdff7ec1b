/// The commands of `starling keys`, one function each. Each returns an exit code. If it returns an
/// Error instead, its input is invalid and it has written nothing.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

/// Makes the key of a new cluster in `folder`, and the folder if there is none.
[[nodiscard]] Result<int> keys_init_command(const std::string& folder);

struct KeysNodeOptions {
  /// The names of nodes or clients; each of them gets a certificate and a key file.
  std::vector<std::string> names;
  /// `node` or `client`.
  std::string role = "node";
  /// The number of days for which the certificates are valid.
  std::string days = "365";
  /// The folder of the cluster's key.
  std::string cluster;
  /// The key file to write for a single name; NAME.key if empty.
  std::string out;
};
/// Issues certificates and writes a key file for each. A key file also has all valid certificates
/// that were issued before it or together with it.
[[nodiscard]] Result<int> keys_node_command(const KeysNodeOptions& options);

/// Revokes the certificate with a serial number, or all certificates of a name. Then sends all
/// revocations to the node at `to`, [NAME@]HOST:PORT, unless that is empty.
[[nodiscard]] Result<int> keys_revoke_command(const std::string& name_or_serial,
                                              const std::string& cluster, const std::string& to);

/// Prints the content of a key file without its secrets, as text or, if `is_json`, as one JSON
/// object.
[[nodiscard]] Result<int> keys_show_command(const std::string& file, bool is_json);

}  // namespace starling::program
