#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/base/text.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/job_preparer.hpp"
#include "starling/tools/cluster/keys/access.hpp"
#include "starling/tools/cluster/keys/address.hpp"
#include "starling/tools/cluster/keys/key_store.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/process.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// The most workers that one node has in one job.
constexpr std::uint64_t workers_max = 64;
constexpr std::uint64_t jobs_max = 1000;
constexpr std::uint64_t threads_max = 65'536;
/// Compute threads by default, for each processor and at least.
constexpr std::size_t threads_for_each = 16;
constexpr std::size_t threads_least = 128;

constexpr std::chrono::milliseconds handover_default = 2s;
/// The time for handing over when `starling leave` asks, which waits for it.
constexpr auto asked_leaves_within = 30s;
constexpr auto refused_leaves_within = 2s;

/// The time beyond handing over in which computing and reading data have to end.
constexpr auto end_within = 700ms;

/// Ends the process after `time`, even within a step or while data are read: both may take long,
/// and nothing of either is kept.
void end_after(std::chrono::milliseconds time, int code) {
  std::thread{[time, code] {
    std::this_thread::sleep_for(time);
    ::_exit(code);
  }}.detach();
}

/// Leaves the cluster, and ends the process even where code of a job hangs: a reader, a step of
/// minutes, a model that is being laid out.
int leave(std::unique_ptr<actor::ClusterNode> node, std::chrono::milliseconds within, int code) {
  end_after(within + end_within, code);
  node->leave(within);
  const std::size_t hanging = node->end_readers();
  node.reset();
  if (hanging == 0) return code;
  print_error("data are still being read: left behind");
  std::_Exit(code);
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "node";
}

/// Keeps revocations that the node receives beside its key file.
class RevocationKeeper {
 public:
  RevocationKeeper(std::string key_file, security::RevocationList all,
                   std::function<void(const std::string&)> print_error)
      : key_file_(std::move(key_file)), all_(std::move(all)), report_(std::move(print_error)) {}

  void add(const std::vector<security::Revocation>& added) {
    all_.revocations.insert(all_.revocations.end(), added.begin(), added.end());
    if (const auto put = put_heard_revocations(key_file_, all_); !put)
      report_(put.error().message +
              ": when this node starts again, it must be told again who is "
              "revoked");
  }

 private:
  std::string key_file_;
  security::RevocationList all_;
  std::function<void(const std::string&)> report_;
};

Result<void> take_keys(const Settings& settings, actor::ClusterOptions& options) {
  auto secrets = read_keys(settings);
  if (!secrets) return std::move(secrets).error();
  if (!*secrets) return {};
  if ((*secrets)->certificate.role != security::Role::node)
    return Error{"the certificate of " + (*secrets)->certificate.name +
                 " is for a client; valid: one for a node, made by `" + program_name() +
                 " keys node NAME`"}
        .within(place_of(settings, "keys"));
  const std::string path = text_of(settings, "keys");
  auto heard = read_heard_revocations(path, (*secrets)->cluster);
  if (!heard) return std::move(heard).error().within(place_of(settings, "keys"));
  auto& known = (*secrets)->revocations;
  known.insert(known.end(), heard->revocations.begin(), heard->revocations.end());
  options.name = (*secrets)->certificate.name;
  options.names_port = false;
  options.network.secrets = *std::move(secrets);
  options.on_revoked = [keeper = std::make_shared<RevocationKeeper>(
                            path, *std::move(heard), [](const std::string& line) {
                              print_error(line);
                            })](const auto& added) { keeper->add(added); };
  return {};
}

/// Takes the name that `--name` gives; with a key file it must be the name in that file.
Result<void> take_name(const Setting& setting, actor::ClusterOptions& options) {
  if (options.network.secrets && setting.text != options.name)
    return Error{setting.place + ": '" + setting.text + "' is not the name of the key file, '" +
                 options.name + "'; valid: without it"};
  if (auto valid = security::check_name(setting.text); !valid)
    return std::move(valid).error().within(setting.place);
  options.name = setting.text;
  options.names_port = false;
  return {};
}

/// Logs once that the certificate has expired: from then on no node accepts this one's messages.
class ExpiryTeller {
 public:
  explicit ExpiryTeller(const actor::ClusterOptions& options) : options_(options) {}

  void look() {
    if (told_ || !options_.network.secrets || !options_.log) return;
    const auto& certificate = options_.network.secrets->certificate;
    if (utc_now() <= certificate.not_after) return;
    told_ = true;
    options_.log("the certificate of " + certificate.name +
                 " has ended: other nodes refuse its messages; `" + program_name() + " keys node " +
                 certificate.name + "` makes another");
  }

 private:
  const actor::ClusterOptions& options_;
  bool told_ = false;
};

Result<void> take_limits(const Settings& settings, actor::JobLimits& limits) {
  limits.threads =
      std::max<std::size_t>(threads_least, threads_for_each * std::thread::hardware_concurrency());
  struct Limit {
    const char* key;
    const char* of_one;
    std::size_t& all;
    std::size_t& one;
    std::uint64_t most;
  };
  for (const Limit& limit :
       {Limit{"jobs", "jobs-per-client", limits.jobs, limits.jobs_per_client, jobs_max},
        Limit{"threads", "threads-per-client", limits.threads, limits.threads_per_client,
              threads_max}}) {
    std::uint64_t all = limit.all;
    if (auto put = put_count(all, settings, limit.key, 1, limit.most); !put) return put;
    std::uint64_t one = std::max<std::uint64_t>(1, all / 2);
    if (auto put = put_count(one, settings, limit.of_one, 1, limit.most); !put) return put;
    if (one > all)
      return Error{place_of(settings, limit.of_one) + ": " + std::to_string(one) +
                   " is more than all clients may have together; valid: up to " +
                   std::to_string(all) + ", or more --" + limit.key};
    limit.all = all;
    limit.one = one;
  }
  return {};
}

Result<actor::ClusterOptions> make_options(const Settings& settings) {
  actor::ClusterOptions options;
  options.network.listen = "tcp://127.0.0.1:7400";
  options.network.utc_now = utc_now;
  options.name = host_name();
  options.names_port = true;
  if (auto taken = take_keys(settings, options); !taken) return std::move(taken).error();
  bool insecure = false;
  std::uint64_t workers = 1;
  if (auto put = put_count(workers, settings, "workers", 1, workers_max); !put)
    return std::move(put).error();
  options.workers = static_cast<std::uint32_t>(workers);
  if (auto taken = take_limits(settings, options.limits); !taken) return std::move(taken).error();
  for (const Setting& setting : settings) {
    if (setting.key == "listen" || setting.key == "advertise") {
      const bool is_listen = setting.key == "listen";
      auto parsed = parse_address(setting.text, is_listen);
      if (parsed && !is_listen) parsed = resolve(*parsed);
      if (!parsed) return std::move(parsed).error().within(setting.place);
      (is_listen ? options.network.listen : options.network.advertise) = *std::move(parsed);
    } else if (setting.key == "join") {
      auto seeds = parse_seeds(setting, options.network.secrets);
      if (!seeds) return std::move(seeds).error();
      options.seeds.insert(options.seeds.end(), seeds->begin(), seeds->end());
    } else if (setting.key == "name") {
      if (auto taken = take_name(setting, options); !taken) return std::move(taken).error();
    } else if (setting.key == "insecure") {
      insecure = true;
    }
  }
  if (insecure && options.network.secrets)
    return Error{place_of(settings, "insecure") +
                 ": a node with a key file accepts only others with one; valid: either"};
  const std::string& listen = options.network.listen;
  if (!is_loopback(listen) && !insecure && !options.network.secrets)
    return Error{place_of(settings, "listen") + ": " + listen +
                 ": others could reach this node, and nothing is encrypted or authenticated; "
                 "valid: --keys FILE, an address of this machine alone, like 127.0.0.1:7400, or "
                 "--insecure"};
  if (listen.starts_with("tcp://*") && options.network.advertise.empty())
    return Error{place_of(settings, "listen") +
                 ": every interface is listened at: others must be told one of them by "
                 "--advertise HOST:PORT"};
  return options;
}

Result<std::chrono::milliseconds> take_handover(const Settings& settings) {
  const std::string place = place_of(settings, "handover");
  if (place.empty()) return handover_default;
  const std::string text = text_of(settings, "handover");
  const auto time = parse_duration(parse_number(text) ? text + "s" : text);
  if (!time || *time < 0s || *time > 24h)
    return Error{place + ": '" + text +
                 "' must be seconds, or a time like 500ms, 2s or 1min, up to a day"};
  return std::chrono::duration_cast<std::chrono::milliseconds>(*time);
}

}  // namespace

const std::vector<KeyForm>& node_options() {
  static const std::vector<KeyForm> keys{
      {"listen", KeyKind::text, "HOST:PORT",
       "where it listens; port * takes a free one [127.0.0.1:7400]", "Options"},
      {"advertise", KeyKind::text, "HOST:PORT", "where others reach it [where it listens]",
       "Options"},
      {"join", KeyKind::texts, "[NAME@]HOST:PORT",
       "a node of the cluster to join, any one; repeatable [none: the first]", "Options"},
      {"keys", KeyKind::text, "FILE",
       "key file made by `keys node`: it accepts only nodes and clients of its cluster", "Options"},
      {"workers", KeyKind::count, "N", "with which it joins each job that runs already [1]",
       "Options"},
      {"name", KeyKind::text, "NAME",
       "its own: no other node of the cluster has it [the key file's, or the machine's and the "
       "port]",
       "Options"},
      {"jobs", KeyKind::count, "N", "jobs that it takes, of all clients together [16]", "Limits"},
      {"jobs-per-client", KeyKind::count, "N", "of them those of one client [half of --jobs]",
       "Limits"},
      {"threads", KeyKind::count, "N",
       "compute threads of all jobs together [16 for each processor, 128 at least]", "Limits"},
      {"threads-per-client", KeyKind::count, "N",
       "of them those of one client's jobs [half of --threads]", "Limits"},
      {"handover", KeyKind::duration, "T",
       "how long a node that is stopped hands over what it owns at most, seconds or with a unit; "
       "it ends then as one that dies [2s]",
       "Options"},
      {"insecure", KeyKind::flag, "",
       "listen where others can reach it, without encryption: it accepts any connection",
       "Options"},
      {"quiet", KeyKind::flag, "", "say nothing of what happens", "Options"}};
  return keys;
}

Result<int> node_command(const Registry& registry, const Settings& settings) {
  auto options = make_options(settings);
  if (!options) return std::move(options).error();
  const auto handover = take_handover(settings);
  if (!handover) return handover.error();
  options->prepare_job = job_preparer(registry);
  if (place_of(settings, "quiet").empty())
    options->log = [](const std::string& line) {
      std::fprintf(stderr, "%s %s\n", print_utc(utc_now_us()).c_str(), printable(line).c_str());
    };
  allow_descriptors();
  if (options->log && !wire::secrets_are_locked())
    options->log(
        "the system does not let this process lock memory (ulimit -l): its secret keys may be "
        "written to swap");
  const OrderlyStop orderly{"\nstarling: handing over and leaving; again to end at once\n"};
  auto node = actor::ClusterNode::open(*options);
  if (!node) return std::move(node).error();
  const std::string name = (*node)->status().self.name;
  if (options->log) options->log("node " + name + " at " + wire::place_of((*node)->address()));
  ExpiryTeller expiry{*options};
  while (!is_interrupted() && !(*node)->is_asked_to_leave() && (*node)->refusal().empty()) {
    expiry.look();
    std::this_thread::sleep_for(50ms);
  }
  if (const std::string why = (*node)->refusal(); !why.empty()) {
    print_error("node " + name + " is " + why);
    return leave(*std::move(node), refused_leaves_within, job_failed);
  }
  return leave(*std::move(node), is_interrupted() ? *handover : asked_leaves_within, done);
}

}  // namespace starling::program
