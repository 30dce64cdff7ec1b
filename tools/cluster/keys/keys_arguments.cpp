#include "starling/tools/cluster/keys/keys_arguments.hpp"

namespace starling::program {
namespace {

constexpr const char* cluster_help = "the folder of the cluster's key [cluster]";

}  // namespace

KeysArguments::KeysArguments(CLI::App& program)
    : keys_(program, "keys", "make, issue, revoke and show the keys of a cluster"),
      init_(keys_.app(), "init-cluster", "make a new cluster: the key that signs certificates"),
      node_(keys_.app(), "node", "issue certificates, each in a key file for one machine"),
      revoke_(keys_.app(), "revoke", "revoke certificates before they expire"),
      show_(keys_.app(), "show",
            "show a key file, or the issued or revoked certificates; prints no secrets") {
  keys_.allow_one_subcommand();
  keys_.set_footer(
      "\nA cluster's key signs certificates. A node accepts messages only from programs that have "
      "one.\nExit codes: 0 done; 1 done, but the result could not be printed or no node could be "
      "notified;\n2 not done, and nothing was written.");

  init_.add_argument("DIR", folder_,
                     "the folder of the new cluster, made if there is none [cluster]");

  node_.add_arguments("NAME", node_options_.names,
                      "one or more names, each of letters, digits, '.', '-' and '_'");
  node_.add_value(
      "--role", node_options_.role,
      "node: runs members of jobs; client: submits jobs and asks for their status [node]", "ROLE");
  node_.add_value("--days", node_options_.days, "how many days it is valid [365]", "N");
  node_.add_value("--cluster", node_options_.cluster, cluster_help, "DIR");
  node_.add_value("--out", node_options_.out, "the key file to write, for a single NAME [NAME.key]",
                  "FILE");
  node_.set_footer(
      "\nA key file is secret: copy it to its machine over a safe channel, and keep no "
      "other\ncopy. It lists the certificates issued before it or with it: its node can join "
      "only these nodes\n(--join NAME@HOST:PORT). To renew a certificate, issue another of the "
      "same "
      "name.");

  revoke_.add_argument("NAME|SERIAL", name_or_serial_,
                       "a name, for all of its certificates, or the serial of one");
  revoke_.add_value("--cluster", cluster_, cluster_help, "DIR");
  revoke_.add_value(
      "--to", notified_node_,
      "a running node to notify, which notifies the others; if that fails, run it again",
      "[NAME@]HOST:PORT");

  show_.add_argument("FILE", file_, "a file that one of these commands wrote");
  show_.add_flag("--json", is_json_, "one JSON object");
  node_options_.cluster = "cluster";
}

Result<int> KeysArguments::run() const {
  if (!keys_.has_chosen_subcommand())
    return keys_.missing_command_error("the command is missing",
                                       "; `" + keys_.call() + " --help` says what each does",
                                       "unknown command 'keys {}'");
  for (const Command* command : {&keys_, &init_, &node_, &revoke_, &show_})
    if (command->is_chosen())
      if (auto known = command->refuse_extras(); !known) return std::move(known).error();
  return run_chosen();
}

Result<int> KeysArguments::run_chosen() const {
  const auto missing = [](const Command& command, const std::string& what) {
    return Error{what + " is missing; valid: " + command.call() + " " +
                 what.substr(what.rfind(' ') + 1)};
  };
  if (init_.is_chosen()) return keys_init_command(folder_);
  if (node_.is_chosen()) {
    if (node_options_.names.empty()) return missing(node_, "the NAME");
    return keys_node_command(node_options_);
  }
  if (revoke_.is_chosen()) {
    if (name_or_serial_.empty()) return missing(revoke_, "the NAME|SERIAL");
    return keys_revoke_command(name_or_serial_, cluster_, notified_node_);
  }
  if (file_.empty()) return missing(show_, "the FILE");
  return keys_show_command(file_, is_json_);
}

}  // namespace starling::program
