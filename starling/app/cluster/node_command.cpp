#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>

#include "starling/app/cluster/access.hpp"
#include "starling/app/cluster/address.hpp"
#include "starling/app/cluster/cluster_commands.hpp"
#include "starling/app/cluster/key_store.hpp"
#include "starling/app/cluster/plan.hpp"
#include "starling/app/cluster/process.hpp"
#include "starling/app/commands.hpp"
#include "starling/app/interrupt.hpp"
#include "starling/app/program_name.hpp"
#include "starling/engine/live/cluster_node.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

/// Of one node, in one job.
constexpr std::uint64_t workers_max = 64;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "node";
}

/// Keeps revocations that the node hears of beside its key file.
class RevocationKeeper {
 public:
  RevocationKeeper(std::string key_file, security::RevocationList all,
                   std::function<void(const std::string&)> complain)
      : key_file_(std::move(key_file)), all_(std::move(all)), complain_(std::move(complain)) {}

  void add(const std::vector<security::Revocation>& added) {
    all_.revocations.insert(all_.revocations.end(), added.begin(), added.end());
    if (const auto put = put_heard_revocations(key_file_, all_); !put)
      complain_(put.error().message +
                ": when this node starts again, it must be told again who is "
                "revoked");
  }

 private:
  std::string key_file_;
  security::RevocationList all_;
  std::function<void(const std::string&)> complain_;
};

Result<void> take_keys(const Settings& settings, live::ClusterOptions& options) {
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
  options.network.secrets = *std::move(secrets);
  options.on_revoked = [keeper = std::make_shared<RevocationKeeper>(
                            path, *std::move(heard), [](const std::string& line) {
                              complain(line);
                            })](const auto& added) { keeper->add(added); };
  return {};
}

/// The name that `--name` says; with a key file that file's.
Result<void> take_name(const Setting& setting, live::ClusterOptions& options) {
  if (options.network.secrets && setting.text != options.name)
    return Error{setting.place + ": '" + setting.text + "' is not the name of the key file, '" +
                 options.name + "'; valid: without it"};
  if (auto valid = security::check_name(setting.text); !valid)
    return std::move(valid).error().within(setting.place);
  options.name = setting.text;
  return {};
}

/// Says once when the certificate has ended: nobody hears the node from then on.
class ExpiryTeller {
 public:
  explicit ExpiryTeller(const live::ClusterOptions& options) : options_(options) {}

  void look() {
    if (told_ || !options_.network.secrets || !options_.log) return;
    const auto& certificate = options_.network.secrets->certificate;
    if (utc_now() <= certificate.not_after) return;
    told_ = true;
    options_.log("the certificate of " + certificate.name +
                 " has ended: nobody hears this node any more; `" + program_name() + " keys node " +
                 certificate.name + "` makes another");
  }

 private:
  const live::ClusterOptions& options_;
  bool told_ = false;
};

Result<live::ClusterOptions> make_options(const Settings& settings) {
  live::ClusterOptions options;
  options.network.listen = "tcp://127.0.0.1:7400";
  options.network.utc_now = utc_now;
  options.name = host_name();
  if (auto taken = take_keys(settings, options); !taken) return std::move(taken).error();
  bool insecure = false;
  std::uint64_t workers = 1;
  if (auto put = put_count(workers, settings, "workers", 1, workers_max); !put)
    return std::move(put).error();
  options.workers = static_cast<std::uint32_t>(workers);
  for (const Setting& setting : settings) {
    if (setting.key == "listen" || setting.key == "advertise") {
      const bool is_listen = setting.key == "listen";
      auto parsed = parse_address(setting.text, is_listen);
      if (parsed && !is_listen) parsed = resolve(*parsed);
      if (!parsed) return std::move(parsed).error().within(setting.place);
      (is_listen ? options.network.listen : options.network.advertise) = *std::move(parsed);
    } else if (setting.key == "join") {
      auto doors = parse_door(setting, options.network.secrets);
      if (!doors) return std::move(doors).error();
      options.doors.insert(options.doors.end(), doors->begin(), doors->end());
    } else if (setting.key == "name") {
      if (auto taken = take_name(setting, options); !taken) return std::move(taken).error();
    } else if (setting.key == "insecure") {
      insecure = true;
    }
  }
  if (insecure && options.network.secrets)
    return Error{place_of(settings, "insecure") +
                 ": a node with a key file hears only others with one; valid: either"};
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

}  // namespace

const std::vector<KeyForm>& node_keys() {
  static const std::vector<KeyForm> keys{
      {"listen", KeyKind::text, "HOST:PORT",
       "where it listens; port * takes a free one [127.0.0.1:7400]", "Options"},
      {"advertise", KeyKind::text, "HOST:PORT", "where others reach it [where it listens]",
       "Options"},
      {"join", KeyKind::texts, "[NAME@]HOST:PORT",
       "a node of the cluster to join, any one; repeatable [none: the first]", "Options"},
      {"keys", KeyKind::text, "FILE",
       "key file made by `keys node`: only nodes and clients of its cluster are heard", "Options"},
      {"workers", KeyKind::count, "N", "with which it joins each job that runs already [1]",
       "Options"},
      {"name", KeyKind::text, "NAME", "for people [the key file's, or the machine's]", "Options"},
      {"insecure", KeyKind::flag, "",
       "listen where others can reach it, without encryption: whoever can connect is heard",
       "Options"},
      {"quiet", KeyKind::flag, "", "say nothing of what happens", "Options"}};
  return keys;
}

Result<int> node_command(const Contents& contents, const Settings& settings) {
  auto options = make_options(settings);
  if (!options) return std::move(options).error();
  options->make_plan = plan_maker(contents);
  if (place_of(settings, "quiet").empty())
    options->log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  allow_descriptors();
  if (options->log && !wire::secrets_are_locked())
    options->log(
        "the system does not let this process lock memory (ulimit -l): its secret keys may be "
        "written to swap");
  const OrderlyStop orderly{"\nstarling: handing over and leaving; again to end at once\n"};
  auto node = live::ClusterNode::open(*options);
  if (!node) return std::move(node).error();
  if (options->log)
    options->log("node " + options->name + " at " + wire::place_of((*node)->address()));
  ExpiryTeller expiry{*options};
  while (!is_interrupted() && !(*node)->is_asked_to_leave()) {
    expiry.look();
    std::this_thread::sleep_for(50ms);
  }
  (*node)->leave(30s);
  return done;
}

}  // namespace starling::app
