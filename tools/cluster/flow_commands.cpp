#include "starling/tools/cluster/flow_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/base/text.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/begin_job.hpp"
#include "starling/tools/cluster/data_paths.hpp"
#include "starling/tools/cluster/flow_preparer.hpp"
#include "starling/tools/cluster/follow/flow_watcher.hpp"
#include "starling/tools/cluster/follow/job_progress.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/run/flow_settings.hpp"
#include "starling/tools/run/flows.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

/// The most figures in a summary that nodes keep.
constexpr std::size_t figures_max = 32;

/// A job that runs a flow, and how it is followed.
struct FollowedFlow {
  wire::JobId id = 0;
  /// Its time, stages and workers are set once the flow has ended.
  RunInfo info;
  /// How long the job waits for nodes that it cannot go on without.
  std::chrono::nanoseconds wait_for_nodes{};
  FlowWatcher::OnLeave on_leave = FlowWatcher::OnLeave::stop_job;
  bool is_json = false;
  bool is_quiet = false;
};

bool is_set(const Settings& settings, const char* key) {
  return !location_of(settings, key).empty();
}

/// Returns the summary of a flow that has ended, which nodes keep for a day.
wire::JobSummary summary_of(const FlowWatcher& watcher, FlowWatcher::End end) {
  wire::JobSummary summary;
  summary.state = end == FlowWatcher::End::done      ? wire::JobState::done
                  : end == FlowWatcher::End::stopped ? wire::JobState::stopped
                                                     : wire::JobState::failed;
  summary.why = watcher.why();
  if (end != FlowWatcher::End::done) return summary;
  summary.figures = {{"lines", static_cast<double>(watcher.outcome().lines)},
                     {"seconds", watcher.seconds()}};
  for (const auto& figure : watcher.outcome().figures)
    if (summary.figures.size() < figures_max) summary.figures.push_back(figure);
  return summary;
}

/// Returns what a user can do about a flow that has ended and whose nodes still hold its result.
std::string kept_flow_advice(const std::string& name) {
  const std::string call = "`" + program_name();
  return "job " + name + " stays on its nodes: " + call + " attach " + name +
         "` prints its result, " + call + " stop --drop " + name + "` drops it";
}

/// Follows a flow to its end and reports it. Then asks the nodes to drop it, unless it has a result
/// that could not be fetched or written.
Result<int> follow(Access& access, FollowedFlow flow) {
  using End = FlowWatcher::End;
  const std::string name = flow.info.job;
  Follower follower{*access.client, access.seed, flow.id, flow.wait_for_nodes};
  // The first poll asks only the seed node, and learns the others from it.
  (void)follower.poll();
  FlowWatcher watcher{*access.client, follower, flow.id, name, flow.is_quiet, flow.on_leave};
  const End end = watcher.run();
  Result<int> code = job_failed;
  switch (end) {
    case End::done:
      flow.info.seconds = watcher.seconds();
      flow.info.stages = watcher.stages().summaries();
      flow.info.recomputed = watcher.stages().recomputed_parts();
      flow.info.lost = LostWorkers{watcher.workers().left, watcher.workers().died};
      flow.info.workers = watcher.workers().finished + watcher.workers().lost();
      print_skipped(watcher.outcome().skipped);
      code = report_result(flow.info, watcher.outcome(), flow.is_json, flow.is_quiet);
      if (!code || *code != done) {
        print_error(kept_flow_advice(name));
        return code;
      }
      break;
    case End::stopped:
      print_error("job " + name + " was stopped before it had a result");
      code = is_interrupted() ? interrupted_code : job_failed;
      break;
    case End::failed:
      print_error(flow.info.flow + ": " + watcher.why());
      break;
    case End::not_fetched:
      print_error(flow.info.flow + ": " + watcher.why());
      print_error(kept_flow_advice(name));
      return job_failed;
    case End::dropped:
      print_error("job " + name + ": " + watcher.why());
      return is_interrupted() ? interrupted_code : job_failed;
    case End::goes_on:
    case End::unreachable:
      if (!watcher.why().empty()) print_error("job " + name + ": " + watcher.why());
      print_error("job " + name + (end == End::goes_on ? " goes on; `" : " may go on; `") +
                  program_name() + " attach " + name + "` follows it again");
      return end == End::goes_on ? interrupted_code : job_failed;
  }
  follower.close_job(summary_of(watcher, end));
  return code;
}

/// Returns true for settings whose text is a path.
bool is_path(const FlowEntry& flow, const Setting& setting) {
  if (setting.key == "input" || setting.key == "output" || setting.key == "spill") return true;
  return std::ranges::any_of(flow.options, [&](const FlowOption& option) {
    return option.name == setting.key && option.value_name == "FILE";
  });
}

/// Returns the files that the flow of a job reads. `settings` are those that nodes have. If this
/// program does not have the flow, leaves out the files that the flow's own options name.
std::vector<std::string> files_of_job(const Registry& registry, const wire::JobSettings& settings) {
  const std::vector<FlowEntry> flows = all_flows(registry);
  const auto flow = std::ranges::find(flows, actor::setting_of(settings, "flow"), &FlowEntry::name);
  std::vector<std::string> inputs;
  Settings own;
  for (const auto& [key, text] : settings) {
    if (key == "input") inputs.push_back(text);
    if (key.starts_with(own_option_prefix))
      own.push_back({key.substr(own_option_prefix.size()), text, key});
  }
  return flow == flows.end() ? inputs : files_read(*flow, own, std::move(inputs));
}

}  // namespace

std::vector<KeyDescription> submit_flow_options(const FlowEntry& flow) {
  std::vector<KeyDescription> keys = connection_options("Where");
  keys.push_back(detach_key("Where"));
  for (KeyDescription& key : flags_of_submitted_flow(flow)) keys.push_back(std::move(key));
  return keys;
}

Result<int> submit_flow_command(const Registry& registry, const FlowEntry& flow,
                                const Settings& settings) {
  const auto read = read_submitted_flow(flow, settings, registry);
  if (!read) return read.error();
  if (!read->output.empty())
    if (auto valid = check_is_new(read->output); !valid) return std::move(valid).error();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto target = find_target(*access, settings);
  if (!target) return target.error();
  if (!*target) return job_failed;
  const auto absolute =
      with_absolute_paths(settings, (*target)->snapshot.nodes,
                          [&flow](const Setting& setting) { return is_path(flow, setting); });
  if (!absolute) return absolute.error();
  const bool is_quiet = is_set(settings, "quiet");
  // From here on the job may exist on nodes: a signal stops it in order.
  const GracefulStop graceful_stop{is_quiet ? nullptr : stop_message};
  wire::JobSettings sent = flow_to_wire(flow, *absolute, fmt::format("{:016x}", wire::draw_id()));
  const BeginOptions begin_options{.name = text_of(settings, "name"),
                                   .must_detach = is_set(settings, "detach"),
                                   .is_json = is_set(settings, "json"),
                                   .is_quiet = is_quiet};
  const auto begun = begin_job(*access, **target, std::move(sent), begin_options);
  if (!begun) return begun.error();
  if (!begun->job) return begun->code;
  FollowedFlow followed;
  followed.id = begun->job->job;
  followed.info.flow = flow.name;
  followed.info.job = begun->job->name;
  followed.info.inputs = files_read(flow, settings, read->inputs);
  followed.info.output = read->output;
  followed.wait_for_nodes = read->wait_for_nodes;
  followed.is_json = begin_options.is_json;
  followed.is_quiet = is_quiet;
  return follow(*access, std::move(followed));
}

Result<int> attach_flow(const Registry& registry, Access& access, wire::JobId id,
                        const JobSnapshot& job, const Settings& settings) {
  for (const Setting& setting : settings)
    if (constexpr std::array<std::string_view, 6> valid{"to", "keys", "insecure", "job", "json",
                                                        "quiet"};
        std::ranges::count(valid, setting.key) == 0)
      return Error{setting.location + ": has no effect on job " + job.name +
                   ", which runs a flow and has no model; valid: --json, --quiet"};
  FollowedFlow followed;
  followed.id = id;
  followed.info.flow = actor::setting_of(job.settings, "flow");
  followed.info.job = job.name;
  followed.info.inputs = files_of_job(registry, job.settings);
  followed.info.output = actor::setting_of(job.settings, "output");
  followed.wait_for_nodes = actor::JobOptions{}.wait_for_nodes;
  const std::string wait = actor::setting_of(job.settings, "wait-for-nodes");
  if (const auto time = parse_duration(parse_number(wait) ? wait + "s" : wait))
    followed.wait_for_nodes = *time;
  followed.on_leave = FlowWatcher::OnLeave::leave_running;
  followed.is_json = is_set(settings, "json");
  followed.is_quiet = is_set(settings, "quiet");
  Display{followed.is_quiet}.show("follows job " + job.name + " (" +
                                  actor::summary_of(job.settings) +
                                  "): " + progress_text(job, utc_now_us() / 1000));
  const GracefulStop graceful_stop{nullptr};
  return follow(access, std::move(followed));
}

}  // namespace starling::program
