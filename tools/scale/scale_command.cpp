#include "starling/tools/scale/scale_command.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "starling/base/text.hpp"
#include "starling/tools/collective/network_options.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/scale/published_nets.hpp"
#include "starling/tools/scale/scale_report.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

constexpr std::uint64_t batch_max = 1'000'000'000;
constexpr std::size_t points_max = 64;

/// Returns operations a second.
Result<double> parse_flops(const std::string& text) {
  constexpr std::array<Unit, 5> units{
      {{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}}};
  return parse_amount(text, units, "operations a second above 0, with a unit: 500G, 1.7T");
}

/// Reads "1,2,4".
Result<std::vector<std::size_t>> parse_nodes(const std::string& text) {
  std::vector<std::size_t> counts;
  for (const std::string_view part : split(text, ',')) {
    std::size_t count = 0;
    const auto [end, fault] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (fault != std::errc{} || end != part.data() + part.size() || count < 1 ||
        count > scaling::nodes_max)
      return Error{quote(part) + "; valid: numbers from 1 to " +
                   std::to_string(scaling::nodes_max) + ", as in 1,2,4"};
    if (!counts.empty() && count <= counts.back())
      return Error{quote(text) + ": " + std::to_string(count) + " after " +
                   std::to_string(counts.back()) + "; valid: ascending numbers"};
    counts.push_back(count);
  }
  if (counts.size() > points_max)
    return Error{std::to_string(counts.size()) +
                 " numbers of nodes; valid: " + std::to_string(points_max) + " at most"};
  return counts;
}

ScalePoint measure(scaling::Job job, std::size_t nodes) {
  job.nodes = nodes;
  ScalePoint point{.nodes = nodes, .plans = scaling::plan_layers(job)};
  point.predicted = scaling::predict(job, point.plans);
  point.simulated_seconds = scaling::simulate(job, point.plans);
  return point;
}

}  // namespace

Result<int> scale_command(const std::string& net, const Settings& settings) {
  if (net.empty()) return Error{"NET is missing; valid: a net, as in vgg-a"};
  const auto description = find_net(net, text_of(settings, "input"));
  if (!description) return description.error();
  auto layers = scaling::layer_loads(*description);
  if (!layers) return std::move(layers).error().within(net);
  scaling::Job job{.layers = *std::move(layers)};
  std::vector<std::size_t> counts{1, 2, 4, 8, 16, 32, 64, 128};
  if (auto given = put(counts, settings, "nodes", parse_nodes); !given)
    return std::move(given).error();
  if (auto given = put_count(job.batch, settings, "batch", 1, batch_max); !given)
    return std::move(given).error();
  if (auto given = put(job.machine.flops_per_second, settings, "flops", parse_flops); !given)
    return std::move(given).error();
  if (auto given = put_network(job.machine.network, settings); !given)
    return std::move(given).error();
  job.is_data_parallel = !text_of(settings, "data-parallel").empty();
  if (location_of(settings, "nodes").empty())
    std::erase_if(counts, [&](std::size_t nodes) { return nodes > job.batch; });
  if (counts.back() > job.batch)
    return Error{"--nodes: " + print_count(counts.back(), "node") + " for a batch of " +
                 std::to_string(job.batch) + "; valid: a sample for each node, so at most " +
                 std::to_string(job.batch) + ", or a larger --batch"};
  ScaleReport report{.net = net, .input = models::print_shape(description->input)};
  report.one_node_seconds = scaling::predict(job, scaling::plan_layers(job)).seconds;
  for (const std::size_t nodes : counts) report.points.push_back(measure(job, nodes));
  job.nodes = counts.back();
  report.job = std::move(job);
  const bool is_json = !text_of(settings, "json").empty();
  return write_stdout(is_json ? scale_json(report) + "\n" : scale_text(report), done);
}

}  // namespace starling::program
