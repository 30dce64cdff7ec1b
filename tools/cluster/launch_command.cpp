#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "starling/actor/security/certificate.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/keys/address.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/program/shell_word.hpp"
#include "starling/tools/program/subprocess.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

constexpr const char* default_port = "7400";

/// One line of a hosts file.
struct Host {
  /// [USER@]HOST, as ssh takes it.
  std::string login;
  /// The name of the node.
  std::string name;
  /// HOST:PORT, the address at which the node listens.
  std::string address;
};

/// Parses `[USER@]HOST[:PORT] [NAME]`.
Result<Host> parse_host(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string_view word : split(line, ' '))
    if (!word.empty()) words.emplace_back(word);
  const Error invalid{"'" + line + "' is no host; valid: [USER@]HOST[:PORT] [NAME]"};
  if (words.empty() || words.size() > 2 || words[0].starts_with('-')) return invalid;
  const auto at = words[0].find('@');
  std::string address = words[0].substr(at == std::string::npos ? 0 : at + 1);
  if (address.find(':') == std::string::npos || address.ends_with(']'))
    address += std::string{":"} + default_port;
  if (auto valid = parse_address(address, false); !valid) return std::move(valid).error();
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  if (host.starts_with('-')) return invalid;  // ssh would take it for a flag
  const std::string user = at == std::string::npos ? "" : words[0].substr(0, at + 1);
  const std::string name = words.size() > 1 ? words[1] : host;
  if (auto valid = security::check_name(name); !valid)
    return std::move(valid).error().within("NAME of '" + line + "'");
  return Host{user + host, name, address};
}

/// Reads a hosts file: one host per line, `#` begins a comment. Returns an Error if two hosts have
/// the same name or address, or if the file names no host.
Result<std::vector<Host>> read_hosts(const std::string& path) {
  std::ifstream file{path};
  if (!file) return Error{path + ": " + std::strerror(errno)};
  if (std::filesystem::is_directory(path)) return Error{path + ": is a folder; valid: a file"};
  std::vector<Host> hosts;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line = line.substr(0, line.find('#'));
    std::ranges::replace(line, '\t', ' ');
    std::ranges::replace(line, '\r', ' ');
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    const std::string location = path + ":" + std::to_string(number);
    auto host = parse_host(line);
    if (!host) return std::move(host).error().within(location);
    for (const Host& other : hosts)
      if (other.address == host->address || other.name == host->name)
        return Error{location + ": " + host->name + " at " + host->address +
                     " has the name or the address of " + other.name + " at " + other.address +
                     "; valid: a name and an address of its own for each"};
    hosts.push_back(*std::move(host));
  }
  if (file.bad()) return Error{path + ": cannot be read to its end"};
  if (hosts.empty()) return Error{path + ": names no host; valid: one a line"};
  return hosts;
}

struct LaunchOptions {
  std::string hosts_file;
  std::string program = program_name();
  std::string key_file;
  std::string ssh = "ssh";
  std::string log_file = "starling-NAME.log";
  std::string pid_file = "starling-NAME.pid";
  bool insecure = false;
  bool must_stop = false;
};

/// Exit codes of stop_script(), beside 0 for a node that it has ended: there is no pid file, the
/// node had ended before, it did not end within 10 s, or the process in the pid file is not the
/// node.
enum StopCode { no_pid_file = 3, had_ended = 4, still_runs = 5, is_other_process = 6 };
/// The exit code of start_script() if the node runs already.
constexpr int runs_already = 7;

/// Replaces each NAME in `text` by `name`.
std::string with_name(std::string text, const std::string& name) {
  for (auto at = text.find("NAME"); at != std::string::npos; at = text.find("NAME", at))
    text.replace(at, 4, name), at += name.size();
  return text;
}

/// Returns the beginning of a shell script: a `case` on the command line of process $p, up to the
/// pattern that matches the node of `host`. The caller appends the commands for that pattern. If
/// there is no process $p, the command line is ''.
std::string case_of_node(const Host& host) {
  return "case \"$(tr '\\000' ' ' 2>/dev/null </proc/${p:-none}/cmdline)\" in *' node --listen '" +
         quoted_for_shell(host.address) + "' '*) ";
}

/// Returns a shell script that starts the node of `host` in the background and writes its process
/// number to the pid file, unless the process in the pid file is the node (runs_already). It
/// appends to the log, because another node may write to it. It fails if the node ends within 1 s,
/// and then prints the end of the log. It ends the node and fails if the pid file cannot be
/// written. The node joins that of `seed`, unless `host` is `seed`.
std::string start_script(const LaunchOptions& options, const Host& host, const Host& seed) {
  const bool is_keyed = !options.key_file.empty();
  std::string node =
      quoted_for_shell(options.program) + " node --listen " + quoted_for_shell(host.address);
  if (is_keyed) node += " --keys " + quoted_for_shell(with_name(options.key_file, host.name));
  if (!is_keyed) node += " --name " + quoted_for_shell(host.name);
  if (options.insecure) node += " --insecure";
  if (&host != &seed)
    node +=
        " --join " + quoted_for_shell((is_keyed ? seed.name + "@" : std::string{}) + seed.address);
  const std::string log = quoted_for_shell(with_name(options.log_file, host.name));
  const std::string pid = quoted_for_shell(with_name(options.pid_file, host.name));
  return "p=$(cat " + pid + " 2>/dev/null); " + case_of_node(host) + "exit 7;; esac; nohup " +
         node + " >>" + log +
         " 2>&1 </dev/null & p=$!; sleep 1; if kill -0 $p 2>/dev/null; then (echo $p >" + pid +
         ") || { kill -TERM $p; exit 1; }; else tail -n 20 " + log + " >&2; exit 1; fi";
}

/// Returns a shell script that sends SIGTERM to the node of `host`, waits up to 10 s until it has
/// ended, and removes the pid file. The script knows the node by the command line of the process in
/// the pid file. If another process has that number now, the script touches neither this process
/// nor the pid file. If no process has that number, the command line is empty, and the node had
/// ended before. Unlike `kill -0`, the command line also shows that a process runs if this user may
/// not send signals to it, and that a zombie process has ended.
std::string stop_script(const LaunchOptions& options, const Host& host) {
  const std::string pid = quoted_for_shell(with_name(options.pid_file, host.name));
  return "p=$(cat " + pid + " 2>/dev/null) || exit 3; " + case_of_node(host) + ";; '') rm -f " +
         pid +
         "; exit 4;; *) exit 6;; esac; kill -TERM $p; i=0; "
         "while grep -q . /proc/$p/cmdline 2>/dev/null; do i=$((i+1)); "
         "if [ $i -gt 100 ]; then exit 5; fi; sleep 0.1; done; rm -f " +
         pid;
}

/// Stops the node of `host` and reports the outcome. Returns true if the node has ended. Returns an
/// Error if ssh could not be run.
Result<bool> stop(const LaunchOptions& options, const Host& host) {
  auto code = run_program({options.ssh, host.login, stop_script(options, host)});
  if (!code) return std::move(code).error().within("--ssh");
  const std::string node = host.name + " at " + host.address;
  const std::string pid = with_name(options.pid_file, host.name);
  if (*code == done || *code == had_ended) {
    auto printed =
        write_stdout(node + (*code == done ? " has ended\n" : " had ended before\n"), done);
    if (!printed) return std::move(printed).error();
    return *printed == done;
  }
  if (*code == no_pid_file)
    print_error(node + ": was not started by `launch`: there is no " + pid + " there");
  else if (*code == is_other_process)
    print_error(node + ": the process of " + pid +
                " there is not this node, and is left alone; if the node has ended, remove that "
                "file");
  else if (*code == still_runs)
    print_error(node + ": was asked to end, and still runs after 10 s");
  else
    print_error(node + ": not stopped; " + options.ssh + " ended with " + std::to_string(*code));
  return false;
}

Result<int> stop_all(const LaunchOptions& options, const std::vector<Host>& hosts) {
  bool have_all_ended = true;
  for (const Host& host : hosts) {
    const auto stopped = stop(options, host);
    if (!stopped) return stopped.error();
    have_all_ended = have_all_ended && *stopped;
  }
  return have_all_ended ? done : job_failed;
}

}  // namespace

const std::vector<KeyDescription>& launch_options() {
  static const std::vector<KeyDescription> keys{
      {"hosts", ValueType::text, "FILE",
       "a line for each node: [USER@]HOST[:PORT] [NAME]; the first is joined by the others",
       "Options"},
      {"keys", ValueType::text, "FILE",
       "the path of the key file on each machine; NAME in it stands for the node's name",
       "Options"},
      {"program", ValueType::text, "FILE",
       "the program that each machine runs [this one, by its name]", "Options"},
      {"log", ValueType::text, "FILE",
       "the file that each node's messages are appended to [starling-NAME.log]", "Options"},
      {"pid", ValueType::text, "FILE",
       "the file that keeps each node's process number, for --stop [starling-NAME.pid]", "Options"},
      {"stop", ValueType::flag, "", "end the nodes that `launch` started, as SIGTERM does",
       "Options"},
      {"ssh", ValueType::text, "PROGRAM", "called as PROGRAM [USER@]HOST COMMAND [ssh]", "Options"},
      {"insecure", ValueType::flag, "", "without keys: nodes accept any connection", "Options"}};
  return keys;
}

Result<int> launch_command(const Settings& settings) {
  LaunchOptions options;
  for (const Setting& setting : settings) {
    if (setting.key == "hosts") options.hosts_file = setting.text;
    if (setting.key == "keys") options.key_file = setting.text;
    if (setting.key == "program") options.program = setting.text;
    if (setting.key == "log") options.log_file = setting.text;
    if (setting.key == "pid") options.pid_file = setting.text;
    if (setting.key == "stop") options.must_stop = true;
    if (setting.key == "ssh") options.ssh = setting.text;
    if (setting.key == "insecure") options.insecure = true;
  }
  if (options.hosts_file.empty())
    return Error{"--hosts: is missing: a file with a line [USER@]HOST[:PORT] [NAME] for each node"};
  if (options.insecure && !options.key_file.empty())
    return Error{
        "--insecure: nodes with key files accept only nodes and clients with key files; valid: "
        "either option alone"};
  auto hosts = read_hosts(options.hosts_file);
  if (!hosts) return std::move(hosts).error().within(location_of(settings, "hosts"));
  if (options.must_stop) return stop_all(options, *hosts);
  std::size_t failed = 0;
  for (const Host& host : *hosts) {
    auto code = run_program({options.ssh, host.login, start_script(options, host, hosts->front())});
    if (!code) return std::move(code).error().within("--ssh");
    if (*code == done || *code == runs_already) {
      const std::string runs = *code == done ? " runs at " : " runs already at ";
      if (auto put = write_stdout(host.name + runs + host.address + "\n", done); !put) return put;
      continue;
    }
    ++failed;
    print_error(host.name + " at " + host.address + ": not started; " + options.ssh +
                " ended with " + std::to_string(*code));
    // Without the first node the others could not join.
    if (&host == &hosts->front()) return job_failed;
  }
  return failed == 0 ? done : job_failed;
}

}  // namespace starling::program
