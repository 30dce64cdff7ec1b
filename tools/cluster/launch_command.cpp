#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/keys/address.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/program/subprocess.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

constexpr const char* port_default = "7400";

/// One line of a hosts file.
struct Host {
  /// For ssh: [USER@]HOST.
  std::string login;
  std::string name;
  /// HOST:PORT, where its node listens.
  std::string place;
};

std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

/// `[USER@]HOST[:PORT] [NAME]`.
Result<Host> parse_host(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string_view word : split(line, ' '))
    if (!word.empty()) words.emplace_back(word);
  const Error wrong{"'" + line + "' is no host; valid: [USER@]HOST[:PORT] [NAME]"};
  if (words.empty() || words.size() > 2 || words[0].starts_with('-')) return wrong;
  const auto at = words[0].find('@');
  std::string place = words[0].substr(at == std::string::npos ? 0 : at + 1);
  if (place.find(':') == std::string::npos || place.ends_with(']'))
    place += std::string{":"} + port_default;
  if (auto valid = parse_address(place, false); !valid) return std::move(valid).error();
  std::string host = place.substr(0, place.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  if (host.starts_with('-')) return wrong;  // ssh would take it for a flag
  const std::string user = at == std::string::npos ? "" : words[0].substr(0, at + 1);
  return Host{user + host, words.size() > 1 ? words[1] : host, place};
}

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
    const std::string place = path + ":" + std::to_string(number);
    auto host = parse_host(line);
    if (!host) return std::move(host).error().within(place);
    for (const Host& other : hosts)
      if (other.place == host->place || other.name == host->name)
        return Error{place + ": " + host->name + " at " + host->place + " is like " + other.name +
                     " at " + other.place + "; valid: a name and an address of its own for each"};
    hosts.push_back(*std::move(host));
  }
  if (file.bad()) return Error{path + ": cannot be read to its end"};
  if (hosts.empty()) return Error{path + ": names no host; valid: one a line"};
  return hosts;
}

struct LaunchOptions {
  std::string hosts;
  std::string program = program_name();
  std::string keys;
  std::string ssh = "ssh";
  std::string log = "starling-NAME.log";
  std::string pid = "starling-NAME.pid";
  bool insecure = false;
  bool stops = false;
};

/// Exit codes of the shell line that stops a node, beside 0.
enum StopCode { not_launched = 3, gone_before = 4, goes_on = 5, is_another = 6 };

std::string with_name(std::string text, const std::string& name) {
  for (auto at = text.find("NAME"); at != std::string::npos; at = text.find("NAME", at))
    text.replace(at, 4, name), at += name.size();
  return text;
}

/// Returns a shell line that starts `host`'s node there in the background, and fails where the node
/// ends within 1 s.
std::string remote_line(const LaunchOptions& options, const Host& host, const Host& first) {
  const bool is_keyed = !options.keys.empty();
  std::string node = shell_word(options.program) + " node --listen " + shell_word(host.place);
  if (is_keyed) node += " --keys " + shell_word(with_name(options.keys, host.name));
  if (!is_keyed) node += " --name " + shell_word(host.name);
  if (options.insecure) node += " --insecure";
  if (&host != &first)
    node += " --join " + shell_word((is_keyed ? first.name + "@" : std::string{}) + first.place);
  const std::string log = shell_word(with_name(options.log, host.name));
  const std::string pid = shell_word(with_name(options.pid, host.name));
  return "nohup " + node + " >" + log +
         " 2>&1 </dev/null & p=$!; sleep 1; if kill -0 $p 2>/dev/null; then echo $p >" + pid +
         "; else cat " + log + " >&2; exit 1; fi";
}

/// Returns a shell line that stops `host`'s node there as SIGTERM does, and waits up to 10 s for
/// its end. A different process that has the node's process number now is left alone, and so is the
/// pid file. A process that has ended has no command line.
std::string stopping_line(const LaunchOptions& options, const Host& host) {
  const std::string pid = shell_word(with_name(options.pid, host.name));
  return "p=$(cat " + pid +
         " 2>/dev/null) || exit 3; case \"$(tr '\\000' ' ' 2>/dev/null "
         "</proc/${p:-none}/cmdline)\" in *' node --listen '" +
         shell_word(host.place) + "' '*) ;; '') rm -f " + pid +
         "; exit 4;; *) exit 6;; esac; kill -TERM $p; i=0; while kill -0 $p 2>/dev/null; do "
         "i=$((i+1)); "
         "if [ $i -gt 100 ]; then exit 5; fi; sleep 0.1; done; rm -f " +
         pid;
}

/// Stops a node; true if it has ended now or had ended before.
Result<bool> stop(const LaunchOptions& options, const Host& host) {
  auto code = run_program({options.ssh, host.login, stopping_line(options, host)});
  if (!code) return std::move(code).error().within("--ssh");
  const std::string node = host.name + " at " + host.place;
  const std::string pid = with_name(options.pid, host.name);
  if (*code == done || *code == gone_before) {
    auto put = write_stdout(node + (*code == done ? " has ended\n" : " had ended before\n"), done);
    if (!put) return std::move(put).error();
    return *put == done;
  }
  if (*code == not_launched)
    print_error(node + ": was not started by `launch`: there is no " + pid + " there");
  else if (*code == is_another)
    print_error(node + ": the process of " + pid +
                " there is not this node, and is left alone; where the node has ended, remove that "
                "file");
  else if (*code == goes_on)
    print_error(node + ": was asked to end, and has not within 10 s");
  else
    print_error(node + ": not stopped; " + options.ssh + " ended with " + std::to_string(*code));
  return false;
}

Result<int> stop_all(const LaunchOptions& options, const std::vector<Host>& hosts) {
  bool all = true;
  for (const Host& host : hosts) {
    const auto stopped = stop(options, host);
    if (!stopped) return stopped.error();
    all = all && *stopped;
  }
  return all ? done : job_failed;
}

}  // namespace

const std::vector<KeyForm>& launch_keys() {
  static const std::vector<KeyForm> keys{
      {"hosts", KeyKind::text, "FILE",
       "a line for each node: [USER@]HOST[:PORT] [NAME]; the first is joined by the others",
       "Options"},
      {"keys", KeyKind::text, "FILE",
       "where each machine has its key file; NAME in it stands for the node's name", "Options"},
      {"program", KeyKind::text, "FILE", "what is run there [this program, by its name]",
       "Options"},
      {"log", KeyKind::text, "FILE", "where each node's messages go [starling-NAME.log]",
       "Options"},
      {"pid", KeyKind::text, "FILE",
       "where each node's process number is kept, for --stop [starling-NAME.pid]", "Options"},
      {"stop", KeyKind::flag, "", "end the nodes that were started so, as SIGTERM does", "Options"},
      {"ssh", KeyKind::text, "PROGRAM", "called as PROGRAM [USER@]HOST COMMAND [ssh]", "Options"},
      {"insecure", KeyKind::flag, "", "without keys: nodes accept any connection", "Options"}};
  return keys;
}

Result<int> launch_command(const Settings& settings) {
  LaunchOptions options;
  for (const Setting& setting : settings) {
    if (setting.key == "hosts") options.hosts = setting.text;
    if (setting.key == "keys") options.keys = setting.text;
    if (setting.key == "program") options.program = setting.text;
    if (setting.key == "log") options.log = setting.text;
    if (setting.key == "pid") options.pid = setting.text;
    if (setting.key == "stop") options.stops = true;
    if (setting.key == "ssh") options.ssh = setting.text;
    if (setting.key == "insecure") options.insecure = true;
  }
  if (options.hosts.empty())
    return Error{"--hosts: is missing: a file with a line [USER@]HOST[:PORT] [NAME] for each node"};
  if (options.insecure && !options.keys.empty())
    return Error{"--insecure: nodes with key files accept only others with one; valid: either"};
  auto hosts = read_hosts(options.hosts);
  if (!hosts) return std::move(hosts).error().within(place_of(settings, "hosts"));
  if (options.stops) return stop_all(options, *hosts);
  std::size_t failed = 0;
  for (const Host& host : *hosts) {
    auto code = run_program({options.ssh, host.login, remote_line(options, host, hosts->front())});
    if (!code) return std::move(code).error().within("--ssh");
    if (*code == 0) {
      if (auto put = write_stdout(host.name + " runs at " + host.place + "\n", done); !put)
        return put;
      continue;
    }
    ++failed;
    print_error(host.name + " at " + host.place + ": not started; " + options.ssh + " ended with " +
                std::to_string(*code));
    // Without the first node the others could not join.
    if (&host == &hosts->front()) return job_failed;
  }
  return failed == 0 ? done : job_failed;
}

}  // namespace starling::program
