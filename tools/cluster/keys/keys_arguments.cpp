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
      show_(keys_.app(), "show", "say what is in a key file or a list, but no secret") {
  keys_.app().require_subcommand(0, 1);
  keys_.app().footer(
      "\nA cluster's key signs certificates; a node accepts messages only from holders of one.\n"
      "Exit codes: 0 done, 1 done but not printed or not told to a node, 2 not done, nothing "
      "was\nwritten.");

  init_.app()
      .add_option("DIR", folder_, "where to: a folder, made if need be [cluster]")
      ->type_name("");

  CLI::App& node = node_.app();
  node.add_option("NAME", node_options_.names,
                  "of whom, one or more: letters, digits, '.', '-' and '_'")
      ->type_name("");
  node.add_option("--role", node_options_.role,
                  "node: holds members of jobs; client: submits jobs [node]")
      ->type_name("ROLE");
  node.add_option("--days", node_options_.days, "how long it is valid [365]")->type_name("N");
  node.add_option("--cluster", node_options_.cluster, cluster_help)->type_name("DIR");
  node.add_option("--out", node_options_.out, "the key file of one name, a new one [NAME.key]")
      ->type_name("FILE");
  node.footer(
      "\nA key file is secret: copy it to the machine by a safe way, and keep it nowhere else. It\n"
      "knows the names that were issued before, and those issued with it: its node joins by "
      "these.\n"
      "To renew, issue another of the same name.");

  revoke_.app()
      .add_option("WHICH", revoked_, "a name, with all its certificates, or the serial of one")
      ->type_name("");
  revoke_.app().add_option("--cluster", cluster_, cluster_help)->type_name("DIR");
  revoke_.app()
      .add_option("--to", to_, "tell a node that runs, which tells the others; again if need be")
      ->type_name("[NAME@]HOST:PORT");

  show_.app().add_option("FILE", shown_, "what one of these commands wrote")->type_name("");
  show_.app().add_flag("--json", json_, "one JSON object");
  node_options_.cluster = "cluster";
}

Result<int> KeysArguments::run() const {
  if (keys_.app().get_subcommands().empty())
    return keys_.without_command("what to do with keys is missing",
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
    if (revoked_.empty()) return missing(revoke_, "the NAME|SERIAL");
    return keys_revoke_command(revoked_, cluster_, to_);
  }
  if (shown_.empty()) return missing(show_, "the FILE");
  return keys_show_command(shown_, json_);
}

}  // namespace starling::program
