#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/actor/fabric/permission.hpp"
#include "starling/actor/fabric/provider.hpp"
#include "starling/base/text.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/job_preparer.hpp"
#include "starling/tools/cluster/keys/access.hpp"
#include "starling/tools/cluster/keys/address.hpp"
#include "starling/tools/cluster/keys/key_store.hpp"
#include "starling/tools/cluster/keys/seed_lookup.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/line_writer.hpp"
#include "starling/tools/program/process_limits.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// The most workers of one node in one job.
constexpr std::uint64_t workers_max = 64;
constexpr std::uint64_t jobs_max = 1000;
constexpr std::uint64_t threads_max = 65'536;
/// The default number of compute threads is 16 for each processor, and at least 128.
constexpr std::size_t threads_per_processor = 16;
constexpr std::size_t threads_min = 128;

/// The most time for which a node hands over its ranges: after a signal, unless --handover sets
/// another time; after `starling leave`, which waits until the node has left; and if the cluster
/// refuses the node.
constexpr std::chrono::milliseconds default_handover = 2s;
constexpr auto requested_handover = 30s;
constexpr auto refused_handover = 2s;

/// The time between two lookups of the hosts of `--join`.
constexpr auto lookup_interval = 30s;

/// After the handover, the process waits at most this time until its threads have ended their steps
/// and their reading of data.
constexpr auto shutdown_timeout = 700ms;

/// Ends the process after `time`, even if it is still computing a step or reading data: both may
/// take long, and their results are not needed.
void exit_after(std::chrono::milliseconds time, int code) {
  std::thread{[time, code] {
    std::this_thread::sleep_for(time);
    ::_exit(code);
  }}.detach();
}

/// Hands over the node's ranges for at most `handover`, leaves the cluster, and returns `code`.
/// Ends the process with `code` itself if a thread of a job does not end in time: one that reads
/// data, computes a step, or draws a model's initial values.
int leave(std::unique_ptr<actor::ClusterNode> node, std::chrono::milliseconds handover, int code) {
  exit_after(handover + shutdown_timeout, code);
  node->leave(handover);
  const std::size_t running_readers = node->stop_readers();
  node.reset();
  if (running_readers == 0) return code;
  print_error("the node ends while a job still reads data or evaluates a model");
  std::_Exit(code);
}

/// Returns the name of this machine; "node" if the system does not tell it.
std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "node";
}

/// Writes the revocations that the node receives to a file beside its key file.
class RevocationKeeper {
 public:
  /// `received` are the revocations that the file already has.
  RevocationKeeper(std::string key_file, security::RevocationList received)
      : key_file_(std::move(key_file)), received_(std::move(received)) {}

  void add(const std::vector<security::Revocation>& added) {
    received_.revocations.insert(received_.revocations.end(), added.begin(), added.end());
    if (const auto written = write_received_revocations(key_file_, received_); !written)
      print_error(written.error().message +
                  ": after its next start this node does not know which certificates are revoked "
                  "until another node sends the list");
  }

 private:
  std::string key_file_;
  security::RevocationList received_;
};

/// Reads the key file of `--keys`, if there is one, and sets the secrets and the name of the node
/// from it. Sets the callback that stores the revocations that the node receives.
Result<void> set_secrets(const Settings& settings, actor::ClusterOptions& options) {
  auto secrets = read_keys(settings);
  if (!secrets) return std::move(secrets).error();
  if (!*secrets) return {};
  if ((*secrets)->certificate.role != security::Role::node)
    return Error{"the certificate of " + (*secrets)->certificate.name +
                 " is for a client; valid: one for a node, made by `" + program_name() +
                 " keys node NAME`"}
        .within(location_of(settings, "keys"));
  const std::string path = text_of(settings, "keys");
  auto received = read_received_revocations(path, (*secrets)->cluster);
  if (!received) return std::move(received).error().within(location_of(settings, "keys"));
  auto& known = (*secrets)->revocations;
  known.insert(known.end(), received->revocations.begin(), received->revocations.end());
  options.name = (*secrets)->certificate.name;
  options.appends_port_to_name = false;
  options.network.secrets = *std::move(secrets);
  options.on_revoked = [keeper = std::make_shared<RevocationKeeper>(path, *std::move(received))](
                           const auto& added) { keeper->add(added); };
  return {};
}

/// Sets the name of the node from `--name`. Returns an Error if a key file has another name.
Result<void> set_name(const Setting& setting, actor::ClusterOptions& options) {
  if (options.network.secrets && setting.text != options.name)
    return Error{setting.location + ": '" + setting.text + "' is not the name of the key file, '" +
                 options.name + "'; valid: no --name"};
  if (auto valid = security::check_name(setting.text); !valid)
    return std::move(valid).error().within(setting.location);
  options.name = setting.text;
  options.appends_port_to_name = false;
  return {};
}

/// Logs once that the node's certificate has expired: other nodes then refuse its messages.
class ExpiryLogger {
 public:
  explicit ExpiryLogger(const actor::ClusterOptions& options) : options_(options) {}

  void log_if_expired() {
    if (has_logged_ || !options_.network.secrets || !options_.log) return;
    const auto& certificate = options_.network.secrets->certificate;
    if (utc_now() <= certificate.not_after) return;
    has_logged_ = true;
    options_.log("the certificate of " + certificate.name +
                 " has expired: other nodes refuse its messages; `" + program_name() +
                 " keys node " + certificate.name + "` makes another");
  }

 private:
  const actor::ClusterOptions& options_;
  bool has_logged_ = false;
};

/// Sets how many jobs and compute threads the node accepts, of all clients and of each one.
Result<void> set_limits(const Settings& settings, actor::JobLimits& limits) {
  limits.threads = std::max<std::size_t>(
      threads_min, threads_per_processor * std::thread::hardware_concurrency());
  struct Limit {
    const char* total_option;
    const char* per_client_option;
    std::size_t& total;
    std::size_t& per_client;
    std::uint64_t max;
  };
  for (const Limit& limit :
       {Limit{"jobs", "jobs-per-client", limits.jobs, limits.jobs_per_client, jobs_max},
        Limit{"threads", "threads-per-client", limits.threads, limits.threads_per_client,
              threads_max}}) {
    std::uint64_t total = limit.total;
    if (auto put = put_count(total, settings, limit.total_option, 1, limit.max); !put) return put;
    std::uint64_t per_client = std::max<std::uint64_t>(1, total / 2);
    if (auto put = put_count(per_client, settings, limit.per_client_option, 1, limit.max); !put)
      return put;
    if (per_client > total)
      return Error{location_of(settings, limit.per_client_option) + ": " +
                   std::to_string(per_client) +
                   " is more than all clients may have together; valid: up to " +
                   std::to_string(total) + ", or more --" + limit.total_option};
    limit.total = total;
    limit.per_client = per_client;
  }
  return {};
}

/// Sets how the node writes tensors into the memory of other nodes.
Result<void> set_fabric(const Settings& settings, security::EndpointOptions& network) {
  const std::string location = location_of(settings, "fabric");
  const std::string text = location.empty() ? "none" : text_of(settings, "fabric");
  const bool may_leave_host = !location_of(settings, "insecure-fabric").empty();
  if (text != "none") {
    const auto provider = fabric::parse_provider(text);
    if (!provider)
      return Error{location + ": unknown provider '" + text + "'; valid: shm, tcp, verbs, none"};
    if (!network.secrets)
      return Error{location +
                   ": only nodes that authenticate may write into the memory of this "
                   "one; valid: with --keys FILE, or none"};
    if (auto usable = fabric::check(*provider); !usable)
      return std::move(usable).error().within(location);
    network.fabric.provider = *provider;
    if (*provider == fabric::Provider::shm) fabric::permit_memory_access();
  }
  if (may_leave_host && (text == "none" || text == "shm"))
    return Error{location_of(settings, "insecure-fabric") + ": has no effect with --fabric " +
                 text + ", by which no tensor leaves the host; valid: with --fabric tcp or verbs"};
  network.fabric.may_leave_host = may_leave_host;
  return {};
}

/// Makes the options of the node from those of the command line, except `--handover` and `--quiet`.
Result<actor::ClusterOptions> make_options(const Settings& settings) {
  actor::ClusterOptions options;
  options.network.listen = "tcp://127.0.0.1:7400";
  options.network.utc_now = utc_now;
  options.name = host_name();
  options.appends_port_to_name = true;
  if (auto set = set_secrets(settings, options); !set) return std::move(set).error();
  bool is_insecure = false;
  std::uint64_t workers = 1;
  if (auto put = put_count(workers, settings, "workers", 1, workers_max); !put)
    return std::move(put).error();
  options.workers = static_cast<std::uint32_t>(workers);
  if (auto set = set_limits(settings, options.limits); !set) return std::move(set).error();
  if (auto set = set_fabric(settings, options.network); !set) return std::move(set).error();
  for (const Setting& setting : settings) {
    if (setting.key == "listen" || setting.key == "advertise") {
      const bool is_listen = setting.key == "listen";
      auto parsed = parse_address(setting.text, is_listen);
      if (parsed && !is_listen) parsed = resolve(*parsed);
      if (!parsed) return std::move(parsed).error().within(setting.location);
      (is_listen ? options.network.listen : options.network.advertise) = *std::move(parsed);
    } else if (setting.key == "join") {
      auto seeds = parse_seeds(setting, options.network.secrets);
      if (!seeds) return std::move(seeds).error();
      options.seeds.insert(options.seeds.end(), seeds->begin(), seeds->end());
    } else if (setting.key == "name") {
      if (auto set = set_name(setting, options); !set) return std::move(set).error();
    } else if (setting.key == "insecure") {
      is_insecure = true;
    }
  }
  if (is_insecure && options.network.secrets)
    return Error{location_of(settings, "insecure") +
                 ": a node with a key file accepts only nodes and clients with key files; valid: "
                 "either option alone"};
  const std::string& listen = options.network.listen;
  if (!is_loopback(listen) && !is_insecure && !options.network.secrets)
    return Error{location_of(settings, "listen") + ": " + listen +
                 ": others could reach this node, and nothing is encrypted or authenticated; "
                 "valid: --keys FILE, an address of this machine alone, like 127.0.0.1:7400, or "
                 "--insecure"};
  if (listen.starts_with("tcp://*") && options.network.advertise.empty())
    return Error{
        location_of(settings, "listen") +
        ": the node listens at every interface: --advertise HOST:PORT must say at which of them "
        "others reach it"};
  return options;
}

/// Returns the settings `join`.
Settings joins_of(Settings settings) {
  std::erase_if(settings, [](const Setting& setting) { return setting.key != "join"; });
  return settings;
}

Result<std::chrono::milliseconds> parse_handover(const Settings& settings) {
  const std::string location = location_of(settings, "handover");
  if (location.empty()) return default_handover;
  const std::string text = text_of(settings, "handover");
  const auto time = parse_duration(parse_number(text) ? text + "s" : text);
  if (!time || *time < 0s || *time > 24h)
    return Error{location + ": '" + text +
                 "' must be seconds, or a time like 500ms, 2s or 1min, up to a day"};
  return std::chrono::duration_cast<std::chrono::milliseconds>(*time);
}

}  // namespace

const std::vector<KeyDescription>& node_options() {
  static const std::vector<KeyDescription> keys{
      {"listen", ValueType::text, "HOST:PORT",
       "the address at which it listens; port * takes a free one [127.0.0.1:7400]", "Options"},
      {"advertise", ValueType::text, "HOST:PORT",
       "the address at which others reach it [that of --listen]", "Options"},
      {"join", ValueType::texts, "[NAME@]HOST:PORT",
       "any node of the cluster to join; repeatable [none: it is the first node]", "Options"},
      {"keys", ValueType::text, "FILE",
       "key file made by `keys node`: it accepts only nodes and clients of its cluster", "Options"},
      {"workers", ValueType::count, "N",
       "workers with which it joins each job that runs already [1]", "Options"},
      {"name", ValueType::text, "NAME",
       "a name that no other node of the cluster has [the key file's, or the machine's and the "
       "port]",
       "Options"},
      {"jobs", ValueType::count, "N", "jobs that it accepts, of all clients together [16]",
       "Limits"},
      {"jobs-per-client", ValueType::count, "N",
       "jobs that it accepts of one client [half of --jobs]", "Limits"},
      {"threads", ValueType::count, "N",
       "compute threads of all jobs together [16 for each processor, 128 at least]", "Limits"},
      {"threads-per-client", ValueType::count, "N",
       "compute threads of one client's jobs [half of --threads]", "Limits"},
      {"handover", ValueType::duration, "T",
       "the most time for which a node that is stopped hands over its ranges, in seconds or with a "
       "unit; then it ends as if it died [2s]",
       "Options"},
      {"insecure", ValueType::flag, "",
       "without encryption: other machines may reach it, and it accepts any connection", "Options"},
      {"fabric", ValueType::text, "PROVIDER",
       "write tensors into the memory of nodes with the same PROVIDER: shm (one host), tcp, verbs, "
       "none [none]",
       "Options"},
      {"insecure-fabric", ValueType::flag, "",
       "tensors of --fabric may go to other hosts, without encryption", "Options"},
      {"quiet", ValueType::flag, "", "log nothing", "Options"}};
  return keys;
}

Result<int> node_command(const Registry& registry, const Settings& settings) {
  auto options = make_options(settings);
  if (!options) return std::move(options).error();
  const auto handover = parse_handover(settings);
  if (!handover) return handover.error();
  options->prepare_job = job_preparer(registry);
  LineWriter log_writer{STDERR_FILENO};
  if (location_of(settings, "quiet").empty())
    options->log = [&log_writer](const std::string& line) {
      log_writer.write(print_utc(utc_now_us()) + " " + printable(line));
    };
  raise_descriptor_limit();
  if (options->log && !wire::secrets_are_locked())
    options->log(
        "the system does not let this process lock memory (ulimit -l): its secret keys may be "
        "written to swap");
  const GracefulStop graceful_stop{"\nstarling: handing over and leaving; again to end at once\n"};
  auto node = actor::ClusterNode::open(*options);
  if (!node) return std::move(node).error();
  const std::string name = (*node)->status().self.name;
  if (options->log) options->log("node " + name + " at " + wire::without_key((*node)->address()));
  if (options->log && options->appends_port_to_name && options->network.listen.ends_with(":*"))
    options->log(
        "its name has the port, which is another one at each start: it will not be known as the "
        "same node when it comes back; valid: --name NAME, or a port in --listen");
  const auto is_own = [&](const std::string& seed) {
    return wire::without_key(seed) == wire::without_key((*node)->address());
  };
  if (options->log && !options->seeds.empty() && std::ranges::all_of(options->seeds, is_own))
    options->log(
        "--join names this node's own address: it joins no other node, and is the first "
        "of its cluster");
  ExpiryLogger expiry{*options};
  SeedLookup lookup{joins_of(settings),
                    [secrets = options->network.secrets](const Setting& setting) {
                      return parse_seeds(setting, secrets);
                    },
                    lookup_interval};
  while (!is_interrupted() && !(*node)->is_asked_to_leave() && (*node)->refusal().empty()) {
    expiry.log_if_expired();
    if (auto seeds = lookup.poll()) (*node)->set_seeds(*std::move(seeds));
    std::this_thread::sleep_for(50ms);
  }
  if (const std::string why = (*node)->refusal(); !why.empty()) {
    print_error("node " + name + " is " + why);
    return leave(*std::move(node), refused_handover, job_failed);
  }
  return leave(*std::move(node), is_interrupted() ? *handover : requested_handover, done);
}

}  // namespace starling::program
