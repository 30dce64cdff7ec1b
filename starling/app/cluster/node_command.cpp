#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include "starling/app/cluster/address.hpp"
#include "starling/app/cluster/cluster_commands.hpp"
#include "starling/app/cluster/plan.hpp"
#include "starling/app/commands.hpp"
#include "starling/app/interrupt.hpp"
#include "starling/engine/live/cluster_node.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "node";
}

Result<live::ClusterOptions> make_options(const Settings& settings) {
  live::ClusterOptions options;
  options.listen = "tcp://127.0.0.1:7400";
  options.name = host_name();
  bool insecure = false;
  for (const Setting& setting : settings) {
    const auto address = [&](bool may_be_any) -> Result<std::string> {
      auto parsed = parse_address(setting.text, may_be_any);
      if (!parsed) return std::move(parsed).error().within(setting.place);
      return parsed;
    };
    if (setting.key == "listen" || setting.key == "advertise" || setting.key == "join") {
      auto parsed = address(setting.key == "listen");
      if (!parsed) return std::move(parsed).error();
      if (setting.key == "listen")
        options.listen = *std::move(parsed);
      else if (setting.key == "advertise")
        options.advertise = *std::move(parsed);
      else
        options.doors.push_back(*std::move(parsed));
    } else if (setting.key == "name") {
      options.name = setting.text;
    } else if (setting.key == "insecure") {
      insecure = true;
    }
  }
  if (!is_loopback(options.listen) && !insecure)
    return Error{place_of(settings, "listen") + ": " + options.listen +
                 ": others could reach this node, and nothing is encrypted or authenticated; "
                 "valid: an address of this machine alone, like 127.0.0.1:7400, or --insecure"};
  if (options.listen.starts_with("tcp://*") && options.advertise.empty())
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
      {"join", KeyKind::texts, "HOST:PORT",
       "a node of the cluster to join, any one; repeatable [none: the first]", "Options"},
      {"name", KeyKind::text, "NAME", "for people [the machine's]", "Options"},
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
  const OrderlyStop orderly{"\nstarling: handing over and leaving; again to end at once\n"};
  auto node = live::ClusterNode::open(*options);
  if (!node) return std::move(node).error().within(place_of(settings, "listen"));
  if (options->log) options->log("node " + options->name + " at " + (*node)->address());
  while (!is_interrupted()) std::this_thread::sleep_for(50ms);
  (*node)->leave(30s);
  return done;
}

}  // namespace starling::app
