/// The command line of `starling keys` and of its commands.
#pragma once

#include "starling/tools/cluster/keys/keys_commands.hpp"
#include "starling/tools/program/command.hpp"

namespace starling::program {

class KeysArguments {
 public:
  explicit KeysArguments(CLI::App& program);
  /// Runs the chosen command. Requires: the user chose `keys`.
  [[nodiscard]] Result<int> run() const;

 private:
  [[nodiscard]] Result<int> run_chosen() const;

  Command keys_;
  Command init_;
  Command node_;
  Command revoke_;
  Command show_;
  std::string folder_ = "cluster";
  KeysNodeOptions node_options_;
  std::string cluster_ = "cluster";
  std::string name_or_serial_;
  std::string notified_node_;
  std::string file_;
  bool is_json_ = false;
};

}  // namespace starling::program
