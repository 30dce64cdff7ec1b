#include "starling/tools/run/run_command.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "starling/base/seconds.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/flow_settings.hpp"
#include "starling/tools/run/run_report.hpp"
#include "starling/tools/run/task_trace.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

constexpr std::uint64_t workers_max = 32;

/// Refuses a file of --trace that cannot be written, or that the flow reads.
Result<void> check_trace(const FlowEntry& flow, const Settings& settings,
                         const std::vector<std::string>& inputs) {
  const FileUse use{location_of(settings, "trace"), text_of(settings, "trace")};
  if (use.location.empty()) return {};
  if (use.path.empty()) return Error{"needs the name of a file"}.within(use.location);
  std::vector<FileUse> read;
  for (const std::string& file : files_read(flow, settings, inputs)) read.push_back({"FILE", file});
  if (auto free = check_no_conflict(use, read); !free) return free;
  if (auto writable = check_writable(use.path); !writable)
    return std::move(writable).error().within(use.location);
  return {};
}

/// Writes the file of --trace, if there is one. Returns false after an error, which it prints.
bool write_trace(const TaskTrace& trace, const std::string& path, const FlowEntry& flow) {
  if (path.empty()) return true;
  if (const auto written = trace.write(path, flow.name); !written) {
    print_error(written.error().message);
    return false;
  }
  if (trace.dropped() > 0)
    print_error(path + ": a trace holds at most " + std::to_string(TaskTrace::tasks_max_default) +
                " tasks, and " + std::to_string(trace.dropped()) + " more are missing");
  return true;
}

}  // namespace

Result<int> run_command(const FlowEntry& flow, const Settings& settings) {
  auto inputs = input_files(flow, settings);
  if (!inputs) return std::move(inputs).error();
  if (auto valid = check_trace(flow, settings, *inputs); !valid) return std::move(valid).error();
  const std::string trace_path = text_of(settings, "trace");
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
  TaskTrace trace{std::chrono::steady_clock::now()};
  if (!trace_path.empty())
    options->on_task = [&trace](const flow::TaskSpan& task) { trace.add(task); };
  RunInfo info;
  info.flow = flow.name;
  info.inputs = files_read(flow, settings, *inputs);
  info.workers = options->threads;
  auto engine = flow::MapReduce::make(*std::move(options));
  if (!engine) return Error{engine.error()}.within("--spill");
  info.output = text_of(settings, "output");
  std::optional<flow::OutputFolder> output;
  if (!info.output.empty()) {
    auto made = flow::OutputFolder::make(info.output);
    if (!made) return std::move(made).error().within("--output");
    output.emplace(*std::move(made));
  }
  FlowContext context{*std::move(engine), *std::move(inputs), output ? &*output : nullptr,
                      *lines_max};
  const Spec spec = arguments_of(flow, settings);
  SpecReader reader{spec};
  const auto start = std::chrono::steady_clock::now();
  const GracefulStop graceful{"\nstarling: stopping\n"};
  const auto ran = flow.run(reader, context);
  log.close();
  const std::vector<std::string> skipped = context.skipped_files();
  print_skipped(skipped);
  const bool is_trace_ok = write_trace(trace, trace_path, flow);
  if (!ran) {
    if (is_interrupted()) return interrupted_code;
    if (log.is_empty()) return ran.error();
    print_error(flow.name + ": " + ran.error().message);
    return job_failed;
  }
  info.seconds = seconds_since(start);
  info.stages = log.summaries();
  const RunOutcome outcome{context.lines(), context.first_lines(), context.figures(), skipped};
  auto code = report_result(info, outcome, !text_of(settings, "json").empty(), is_quiet);
  return code && !is_trace_ok ? Result<int>{job_failed} : std::move(code);
}

}  // namespace starling::program
