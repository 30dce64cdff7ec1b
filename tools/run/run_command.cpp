#include "starling/tools/run/run_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/byte_amount.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/run/run_report.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

constexpr std::uint64_t workers_max = 32;
constexpr std::uint64_t memory_min = std::uint64_t{1} << 20U;
constexpr std::uint64_t memory_max = std::uint64_t{1} << 50U;

Result<std::uint64_t> parse_memory(const std::string& text) {
  const std::string expected = "bytes with a unit, such as 512MB or 2GiB, from 1MiB to 1024TiB";
  auto bytes = parse_bytes(text, expected);
  if (bytes && (*bytes < memory_min || *bytes > memory_max))
    return Error{quote(text) + " must be " + expected};
  return bytes;
}

/// Reads the options of the engine.
Result<flow::MapReduceOptions> engine_options(const Settings& settings) {
  flow::MapReduceOptions options{.attempts = 1};
  std::uint64_t workers =
      std::clamp<std::uint64_t>(std::thread::hardware_concurrency(), 1, workers_max);
  if (auto given = put_count(workers, settings, "workers", 1, workers_max); !given)
    return std::move(given).error();
  options.threads = workers;
  std::uint64_t parts = options.parts;
  if (auto given = put_count(parts, settings, "parts", 1, 10'000); !given)
    return std::move(given).error();
  options.parts = static_cast<flow::Part>(parts);
  if (auto given = put(options.memory_bytes, settings, "memory", parse_memory); !given)
    return std::move(given).error();
  options.spill_folder = text_of(settings, "spill");
  return options;
}

/// Returns the flow's own options as they were given.
Spec spec_of(const FlowEntry& flow, const Settings& settings) {
  Spec spec{.name = flow.name, .options = {}};
  for (const FlowOption& option : flow.options) {
    const std::string text = text_of(settings, option.name);
    if (text.empty()) continue;
    if (option.value_name.empty())
      spec.options.emplace_back("", option.name);
    else
      spec.options.emplace_back(option.name, text);
  }
  return spec;
}

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

Result<int> report_result(const RunReport& report, const FlowContext& result,
                          const Settings& settings) {
  if (text_of(settings, "quiet").empty()) {
    const std::string summary = run_text(report, result);
    std::fwrite(summary.data(), 1, summary.size(), stderr);
  }
  if (!text_of(settings, "json").empty())
    return write_stdout(run_json(report, result) + "\n", done);
  std::string lines;
  for (const std::string& line : result.first_lines()) lines += shown_line(line);
  return write_stdout(lines, done);
}

}  // namespace

Result<int> run_command(const FlowEntry& flow, const Settings& settings) {
  std::vector<std::string> inputs;
  for (const Setting& setting : settings)
    if (setting.key == "input") inputs.push_back(setting.text);
  if (inputs.empty()) return Error{flow.name + ": no file to read was given; valid: --input FILE"};
  auto options = engine_options(settings);
  if (!options) return std::move(options).error();
  std::uint64_t lines_max = 20;
  if (auto given = put_count(lines_max, settings, "lines", 0, 1'000'000); !given)
    return std::move(given).error();
  StageLog log{!text_of(settings, "quiet").empty()};
  options->on_progress = [&log](const flow::StageProgress& progress) { log.update(progress); };
  options->is_stopped = is_interrupted;
  RunReport report;
  report.flow = flow.name;
  report.inputs = inputs;
  report.workers = options->threads;
  auto engine = flow::MapReduce::make(*std::move(options));
  if (!engine) return Error{engine.error()}.within("--spill");
  report.output = text_of(settings, "output");
  std::optional<flow::OutputFolder> output;
  if (!report.output.empty()) {
    auto made = flow::OutputFolder::make(report.output);
    if (!made) return std::move(made).error().within("--output");
    output.emplace(*std::move(made));
  }
  FlowContext context{*std::move(engine), std::move(inputs), output ? &*output : nullptr,
                      lines_max};
  const Spec spec = spec_of(flow, settings);
  SpecReader reader{spec};
  const auto start = std::chrono::steady_clock::now();
  const GracefulStop graceful{"\nstarling: stopping\n"};
  const auto ran = flow.run(reader, context);
  log.close();
  if (!ran) {
    if (is_interrupted()) return interrupted_code;
    if (log.is_empty()) return ran.error();
    print_error(flow.name + ": " + ran.error().message);
    return job_failed;
  }
  report.seconds = seconds_since(start);
  report.stages = log.summaries();
  return report_result(report, context, settings);
}

}  // namespace starling::program
