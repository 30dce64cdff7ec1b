#include "starling/tools/run/run_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "starling/base/text.hpp"
#include "starling/tools/program/byte_amount.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/table.hpp"

namespace starling::program {
namespace {

TextTable stages_table(const std::vector<StageSummary>& stages) {
  TextTable table{.head = {"stage", "runs", "parts", "records", "written", "spilled", "seconds"}};
  for (const StageSummary& stage : stages)
    table.rows.push_back(
        {stage.description.operations, std::to_string(stage.runs),
         std::to_string(stage.description.parts), std::to_string(stage.counts.records_read),
         print_bytes(stage.counts.bytes_written), print_bytes(stage.counts.bytes_spilled),
         fmt::format("{:.3f}", stage.seconds)});
  return table;
}

flow::TaskCounts sum_of_stages(const std::vector<StageSummary>& stages, bool are_shuffles) {
  flow::TaskCounts sum;
  for (const StageSummary& stage : stages)
    if (are_shuffles != stage.description.partitioner.empty()) sum += stage.counts;
  return sum;
}

}  // namespace

std::string run_text(const RunReport& report, const FlowContext& result) {
  const auto shuffled = sum_of_stages(report.stages, true);
  const auto others = sum_of_stages(report.stages, false);
  std::string text = plain_text(stages_table(report.stages));
  text +=
      fmt::format("{}: {}, {}, {:.3f} s, {} shuffled, {} spilled\n", report.flow,
                  print_count(report.inputs.size(), "file"), print_count(report.workers, "worker"),
                  report.seconds, print_bytes(shuffled.bytes_written),
                  print_bytes(shuffled.bytes_spilled + others.bytes_spilled));
  for (const auto& [name, value] : result.figures())
    text += name + ": " + print_number(value) + "\n";
  const std::uint64_t shown = result.first_lines().size();
  if (!report.output.empty())
    text += "result: " + print_count(result.lines(), "line") + " in " + report.output + "\n";
  else if (shown < result.lines())
    text += fmt::format("result: {}, of which {} are left out; --output FOLDER writes all\n",
                        print_count(result.lines(), "line"), result.lines() - shown);
  else
    text += "result: " + print_count(shown, "line") + "\n";
  return text;
}

std::string run_json(const RunReport& report, const FlowContext& result) {
  using Json = nlohmann::ordered_json;
  const auto shuffled = sum_of_stages(report.stages, true);
  const auto others = sum_of_stages(report.stages, false);
  Json json{{"flow", report.flow},
            {"inputs", report.inputs},
            {"workers", report.workers},
            {"seconds", report.seconds},
            {"shuffled_bytes", shuffled.bytes_written},
            {"spilled_bytes", shuffled.bytes_spilled + others.bytes_spilled}};
  Json figures = Json::object();
  for (const auto& [name, value] : result.figures()) figures[name] = value;
  json["figures"] = figures;
  json["stages"] = Json::array();
  for (const StageSummary& stage : report.stages)
    json["stages"].push_back({{"operations", stage.description.operations},
                              {"partitioner", stage.description.partitioner},
                              {"parts", stage.description.parts},
                              {"runs", stage.runs},
                              {"records_read", stage.counts.records_read},
                              {"records_written", stage.counts.records_written},
                              {"written_bytes", stage.counts.bytes_written},
                              {"spilled_bytes", stage.counts.bytes_spilled},
                              {"seconds", stage.seconds}});
  json["lines"] = result.lines();
  if (report.output.empty())
    json["first_lines"] = result.first_lines();
  else
    json["output"] = report.output;
  json["version"] = version();
  // Bytes that are not UTF-8 become U+FFFD.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace starling::program
