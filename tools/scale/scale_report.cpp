#include "starling/tools/scale/scale_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "starling/base/json_text.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/amounts.hpp"
#include "starling/tools/report/table.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// The operations of a step on one sample, and the bytes of the parameters, of some layers. A step
/// has three passes (LayerLoad::pass_flops()).
struct Sum {
  double flops = 0;
  double bytes = 0;

  void add(const scaling::LayerLoad& layer) {
    flops += 3 * layer.pass_flops();
    bytes += scaling::element_bytes * layer.parameters;
  }
  [[nodiscard]] double flops_per_byte() const { return bytes > 0 ? flops / bytes : 0; }
};

Sum sum_of(const std::vector<scaling::LayerLoad>& layers, bool only_convolutions) {
  Sum sum;
  for (const scaling::LayerLoad& layer : layers)
    if (!only_convolutions || layer.name.ends_with(".conv2d")) sum.add(layer);
  return sum;
}

std::string speed_up(double one_node_seconds, double seconds) {
  return fmt::format("{:.1f}", one_node_seconds / seconds);
}

/// Returns "-" for 0 s, because a layer that no nodes share exchanges nothing.
std::string exchange_time(double seconds) { return seconds > 0 ? time_in_units(seconds) : "-"; }

std::string layers_table(const ScaleReport& report) {
  TextTable table{{"layer", "parameters", "GFLOP", "FLOP/byte", "groups", "by bytes", "a pass",
                   "gradient", "activations"}};
  const ScalePoint& last = report.points.back();
  for (std::size_t l = 0; l < report.job.layers.size(); ++l) {
    const scaling::LayerLoad& layer = report.job.layers[l];
    const scaling::LayerPlan& plan = last.plans[l];
    table.rows.push_back({layer.name, fmt::format("{:.0f}", layer.parameters),
                          fmt::format("{:.3g}", 3e-9 * layer.pass_flops()),
                          fmt::format("{:.1f}", layer.flops_per_byte()),
                          std::to_string(plan.groups),
                          fmt::format("{:.3g}", scaling::groups_by_bytes(report.job, layer)),
                          time_in_units(plan.pass_seconds), exchange_time(plan.gradient.seconds),
                          exchange_time(2 * plan.activations.seconds)});
  }
  return plain_text(table);
}

}  // namespace

std::string scale_text(const ScaleReport& report) {
  const scaling::Machine& machine = report.job.machine;
  const Sum convolutions = sum_of(report.job.layers, true);
  const Sum all = sum_of(report.job.layers, false);
  std::string text = fmt::format(
      "{}, samples of {}, batch {}; a node makes {:.4g} FLOP/s; latency {}, bandwidth {}/s a port\n"
      "a step has {:.4g} GFLOP a sample; {} parameters; {:.1f} FLOP a byte and sample",
      printable(report.net), report.input, report.job.batch, machine.flops_per_second,
      time_in_units(machine.network.latency_s), bytes_in_units(machine.network.bytes_per_second),
      1e-9 * all.flops, fmt::format("{:.0f}", all.bytes / scaling::element_bytes),
      all.flops_per_byte());
  if (convolutions.bytes > 0)
    text += fmt::format(", {:.1f} in convolutions", convolutions.flops_per_byte());
  text += "\n\n";
  TextTable table{
      {"nodes", "computing", "predicted", "simulated", "speed-up", "simulated", "efficiency"}};
  for (const ScalePoint& point : report.points)
    table.rows.push_back(
        {std::to_string(point.nodes), time_in_units(point.predicted.compute_seconds),
         time_in_units(point.predicted.seconds), time_in_units(point.simulated_seconds),
         speed_up(report.one_node_seconds, point.predicted.seconds),
         speed_up(report.one_node_seconds, point.simulated_seconds),
         fmt::format("{:.1f} %",
                     100 * report.one_node_seconds /
                         (point.simulated_seconds * static_cast<double>(point.nodes)))});
  return text + plain_text(table) + "\n" +
         fmt::format("layers on {}\n", print_count(report.points.back().nodes, "node")) +
         layers_table(report);
}

std::string scale_json(const ScaleReport& report) {
  const scaling::Machine& machine = report.job.machine;
  Json json{{"net", printable(report.net)},
            {"input", report.input},
            {"batch", report.job.batch},
            {"flops_per_s", machine.flops_per_second},
            {"latency_s", machine.network.latency_s},
            {"bandwidth_bytes_per_s", machine.network.bytes_per_second},
            {"data_parallel", report.job.is_data_parallel}};
  for (const scaling::LayerLoad& layer : report.job.layers)
    json["layers"].push_back({{"name", layer.name},
                              {"parameters", layer.parameters},
                              {"flops_per_sample", 3 * layer.pass_flops()},
                              {"flops_per_byte", layer.flops_per_byte()}});
  for (const ScalePoint& point : report.points) {
    Json groups = Json::array();
    for (const scaling::LayerPlan& plan : point.plans) groups.push_back(plan.groups);
    json["points"].push_back(
        {{"nodes", point.nodes},
         {"compute_s", point.predicted.compute_seconds},
         {"predicted_s", point.predicted.seconds},
         {"simulated_s", point.simulated_seconds},
         {"predicted_speed_up", report.one_node_seconds / point.predicted.seconds},
         {"simulated_speed_up", report.one_node_seconds / point.simulated_seconds},
         {"groups", groups}});
  }
  json["version"] = version();
  return json_text(json);
}

}  // namespace starling::program
