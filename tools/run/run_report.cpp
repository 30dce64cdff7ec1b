#include "starling/tools/run/run_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "starling/base/json_text.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/byte_amount.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/table.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

/// Returns a line as it can be shown: on a terminal without control characters other than tabs.
std::string shown_line(const std::string& line) {
  if (::isatty(STDOUT_FILENO) != 1) return line + "\n";
  std::string shown;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\t', begin), line.size());
    shown += (begin > 0 ? "\t" : "") + printable(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return shown + "\n";
}

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

/// Sums the counts of the stages that shuffle or, if not `of_shuffles`, of all others.
flow::TaskCounts sum_of_stages(const std::vector<StageSummary>& stages, bool of_shuffles) {
  flow::TaskCounts sum;
  for (const StageSummary& stage : stages)
    if (stage.description.is_shuffle() == of_shuffles) sum += stage.counts;
  return sum;
}

/// Returns a text like " (1 has died)"; empty if no worker has left or died.
std::string lost_text(const std::optional<LostWorkers>& lost) {
  std::string text;
  const auto add = [&text](std::uint64_t workers, const char* fate) {
    if (workers > 0)
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", workers,
                          workers == 1 ? "has" : "have", fate);
  };
  if (lost) add(lost->left, "left");
  if (lost) add(lost->died, "died");
  return text.empty() ? text : " (" + text + ")";
}

}  // namespace

std::string print(const RecomputedParts& recomputed) {
  return (recomputed.is_minimum ? "at least " : "") + print_count(recomputed.parts, "part") +
         " computed again";
}

std::string run_text(const RunInfo& info, const RunOutcome& outcome) {
  const auto shuffled = sum_of_stages(info.stages, true);
  const auto others = sum_of_stages(info.stages, false);
  const bool has_stages = !info.stages.empty();
  std::string text = has_stages ? plain_text(stages_table(info.stages)) : std::string{};
  text += info.flow + ": " + print_count(info.inputs.size(), "file");
  if (!outcome.skipped.empty()) text += fmt::format(" ({} skipped)", outcome.skipped.size());
  text += fmt::format(", {}{}, {:.3f} s", print_count(info.workers, "worker"), lost_text(info.lost),
                      info.seconds);
  if (has_stages)
    text += fmt::format(", {} shuffled, {} spilled", print_bytes(shuffled.bytes_written),
                        print_bytes(shuffled.bytes_spilled + others.bytes_spilled));
  if (info.recomputed) text += ", " + print(*info.recomputed);
  text += "\n";
  for (const auto& [name, value] : outcome.figures)
    text += name + ": " + print_number(value) + "\n";
  const std::uint64_t shown = outcome.first_lines.size();
  if (!info.output.empty())
    text += "result: " + print_count(outcome.lines, "line") + " in " + info.output + "\n";
  else if (shown < outcome.lines)
    text += fmt::format("result: {}, of which {} are left out; --output FOLDER writes all\n",
                        print_count(outcome.lines, "line"), outcome.lines - shown);
  else
    text += "result: " + print_count(shown, "line") + "\n";
  return text;
}

std::string run_json(const RunInfo& info, const RunOutcome& outcome) {
  using Json = nlohmann::ordered_json;
  const auto shuffled = sum_of_stages(info.stages, true);
  const auto others = sum_of_stages(info.stages, false);
  Json json{{"flow", info.flow}};
  if (!info.job.empty()) json["name"] = info.job;
  json["inputs"] = info.inputs;
  if (!outcome.skipped.empty()) json["skipped"] = outcome.skipped;
  json["workers"] = info.workers;
  if (info.lost) {
    json["workers_left"] = info.lost->left;
    json["workers_died"] = info.lost->died;
  }
  json["seconds"] = info.seconds;
  if (info.recomputed) {
    json["parts_again"] = info.recomputed->parts;
    json["parts_again_is_minimum"] = info.recomputed->is_minimum;
  }
  if (!info.stages.empty()) {
    json["shuffled_bytes"] = shuffled.bytes_written;
    json["spilled_bytes"] = shuffled.bytes_spilled + others.bytes_spilled;
  }
  Json figures = Json::object();
  for (const auto& [name, value] : outcome.figures) figures[name] = value;
  json["figures"] = figures;
  for (const StageSummary& stage : info.stages)
    json["stages"].push_back({{"operations", stage.description.operations},
                              {"partitioner", stage.description.partitioner},
                              {"parts", stage.description.parts},
                              {"runs", stage.runs},
                              {"records_read", stage.counts.records_read},
                              {"records_written", stage.counts.records_written},
                              {"written_bytes", stage.counts.bytes_written},
                              {"spilled_bytes", stage.counts.bytes_spilled},
                              {"seconds", stage.seconds}});
  json["lines"] = outcome.lines;
  if (info.output.empty())
    json["first_lines"] = outcome.first_lines;
  else
    json["output"] = info.output;
  json["version"] = version();
  // Bytes that are not UTF-8 become U+FFFD.
  return json_text(json);
}

void print_skipped(const std::vector<std::string>& reasons) {
  for (const std::string& reason : reasons) print_error("skipped " + reason);
}

Result<int> report_result(const RunInfo& info, const RunOutcome& outcome, bool is_json,
                          bool is_quiet) {
  if (!is_quiet) {
    const std::string summary = run_text(info, outcome);
    std::fwrite(summary.data(), 1, summary.size(), stderr);
  }
  if (is_json) return write_stdout(run_json(info, outcome) + "\n", done);
  std::string lines;
  for (const std::string& line : outcome.first_lines) lines += shown_line(line);
  return write_stdout(lines, done);
}

}  // namespace starling::program
