#include "starling/tools/cluster/keys/keys_arguments.hpp"

namespace starling::program {
namespace {

constexpr const char* cluster_help = "the folder of the cluster's key [cluster]";

}  // namespace

KeysArguments::KeysArguments(CLI::App& program)
    : keys_(program, "keys", "make, issue, revoke and show the keys of a cluster"),
      init_(keys_.app(), "init-cluster", "make a new cluster: the key that signs certificates"),
      node_(keys_.app(), "node", "issue certificates, each in a key file for one machine"),
      revoke_(keys_.app(), "revoke", "end certificates before their time"),
      show_(keys_.app(), "show", "print a key file or a list, but no secret") {
  keys_.allow_one_subcommand();
  keys_.set_footer(
      "\nA cluster's key signs certificates; a node accepts messages only from holders of one.\n"
      "Exit codes: 0 done, 1 done but not printed or not sent to a node, 2 not done, nothing "
      "was\nwritten.");

  init_.add_argument("DIR", folder_,
                     "the folder of the new cluster, made if there is none [cluster]");

  node_.add_arguments("NAME", node_options_.names,
                      "one or more names, each of letters, digits, '.', '-' and '_'");
  node_.add_value("--role", node_options_.role,
                  "node: holds members of jobs; client: submits jobs [node]", "ROLE");
  node_.add_value("--days", node_options_.days, "how many days it is valid [365]", "N");
  node_.add_value("--cluster", node_options_.cluster, cluster_help, "DIR");
  node_.add_value("--out", node_options_.out, "the key file to write, for a single NAME [NAME.key]",
                  "FILE");
  node_.set_footer(
      "\nA key file is secret: copy it to its machine over a safe channel, and keep no "
      "other\ncopy. It knows the names of certificates issued before it or with it, by which "
      "its node\njoins others. To renew a certificate, issue another of the same name.");

  revoke_.add_argument("WHICH", name_or_serial_,
                       "a name, for all of its certificates, or the serial of one");
  revoke_.add_value("--cluster", cluster_, cluster_help, "DIR");
  revoke_.add_value("--to", notified_node_,
                    "a running node to notify, which notifies the others; may be repeated later",
                    "[NAME@]HOST:PORT");

  show_.add_argument("FILE", file_, "a file that one of these commands wrote");
  show_.add_flag("--json", is_json_, "one JSON object");
  node_options_.cluster = "cluster";
}

Result<int> KeysArguments::run() const {
  if (!keys_.has_chosen_subcommand())
    return keys_.missing_command_error("what to do with keys is missing",
                                       "; `" + keys_.call() + " --help` says what they do",
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
