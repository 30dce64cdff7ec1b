#include "starling/tools/scale/scale_arguments.hpp"

#include <vector>

#include "starling/models/net/named_nets.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/scale/published_nets.hpp"
#include "starling/tools/scale/scale_command.hpp"

namespace starling::program {
namespace {

const std::vector<KeyDescription>& scale_keys() {
  static const std::vector<KeyDescription> keys{
      {"nodes", ValueType::text, "N,...", "numbers of nodes, 1 to 256 each [1,2,4,...,128]",
       "Options"},
      {"batch", ValueType::count, "N", "the samples of a step on all nodes together [256]",
       "Options"},
      {"flops", ValueType::text, "AMOUNT",
       "operations a second of a node: 500G, 1.7T (a multiplication and an addition are two) [1T]",
       "Options"},
      {"latency", ValueType::text, "TIME",
       "the time that each message takes in addition to that of its bytes [10us]", "Options"},
      {"bandwidth", ValueType::text, "AMOUNT",
       "the bandwidth of a node's port: 10Gbps, 7GB (a second) [10Gbps]", "Options"},
      {"input", ValueType::text, "HxWxC", "the shape of a sample [that of the net]", "Options"},
      {"data-parallel", ValueType::flag, "", "divide no layer; every node has the whole net",
       "Options"},
      {"json", ValueType::flag, "", "one JSON object", "Options"}};
  return keys;
}

template <class Net>
std::string net_line(const Net& net, std::string_view summary) {
  return "  " + std::string{net.name} + std::string(14 - net.name.size(), ' ') +
         std::string{summary} + "\n";
}

std::string nets_list() {
  std::string text;
  for (const PublishedNet& net : published_nets()) text += net_line(net, net.summary);
  for (const models::NamedNet& net : models::named_nets())
    text += net_line(net, net.summary.substr(0, net.summary.find(": ")));
  return text + "  net:FILE      a net's file, as for train --model\n";
}

}  // namespace

ScaleArguments::ScaleArguments(CLI::App& program)
    : arguments_(program, "scale", "predict how the training of a net scales with nodes",
                 scale_keys()) {
  arguments_.command().add_argument("NET", net_, "one of those below");
  arguments_.command().set_footer(
      "\nNets:\n" + nets_list() +
      "\nDivides the batch among the nodes, and layers where that makes a step shorter: then a "
      "group of nodes\nshares a layer. Predicts the time of a step, and simulates it message by "
      "message. The table of layers\nis that of the last number of nodes.\n"
      "Exit codes: 0 done, 1 nothing could be written, 2 bad input.");
}

Result<int> ScaleArguments::run() const {
  const auto settings = arguments_.settings();
  if (!settings) return settings.error();
  return scale_command(net_, *settings);
}

}  // namespace starling::program
