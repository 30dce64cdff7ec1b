#include "starling/tools/run/run_command.hpp"

#include <algorithm>
#include <optional>
#include <thread>

#include "starling/base/seconds.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/flow_settings.hpp"
#include "starling/tools/run/run_report.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

constexpr std::uint64_t workers_max = 32;

}  // namespace

Result<int> run_command(const FlowEntry& flow, const Settings& settings) {
  auto inputs = inputs_of(flow, settings);
  if (!inputs) return std::move(inputs).error();
  auto options = engine_options(
      settings, "workers",
      std::clamp<std::uint64_t>(std::thread::hardware_concurrency(), 1, workers_max));
  if (!options) return std::move(options).error();
  const auto lines_max = lines_max_of(settings);
  if (!lines_max) return lines_max.error();
  const bool is_quiet = !text_of(settings, "quiet").empty();
  StageLog log{is_quiet};
  options->on_progress = [&log](const flow::StageProgress& progress) { log.update(progress); };
  options->is_stopped = is_interrupted;
  RunReport report;
  report.flow = flow.name;
  report.inputs = *inputs;
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
  FlowContext context{*std::move(engine), *std::move(inputs), output ? &*output : nullptr,
                      *lines_max};
  const Spec spec = spec_of(flow, settings);
  SpecReader reader{spec};
  const auto start = std::chrono::steady_clock::now();
  const GracefulStop graceful{"\nstarling: stopping\n"};
  const auto ran = flow.run(reader, context);
  log.close();
  for (const Error& skipped : context.engine().skipped_files())
    report.skipped.push_back(skipped.message);
  for (const std::string& skipped : report.skipped) print_error("skipped " + skipped);
  if (!ran) {
    if (is_interrupted()) return interrupted_code;
    if (log.is_empty()) return ran.error();
    print_error(flow.name + ": " + ran.error().message);
    return job_failed;
  }
  report.seconds = seconds_since(start);
  report.stages = log.summaries();
  const RunOutcome outcome{context.lines(), context.first_lines(), context.figures()};
  return report_result(report, outcome, !text_of(settings, "json").empty(), is_quiet);
}

}  // namespace starling::program
