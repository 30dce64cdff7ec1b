#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/begin_job.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/data_paths.hpp"
#include "starling/tools/cluster/flow_commands.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/cluster/follow/job_progress.hpp"
#include "starling/tools/cluster/follow/job_watcher.hpp"
#include "starling/tools/cluster/follow/node_evaluator.hpp"
#include "starling/tools/cluster/follow/trace_collector.hpp"
#include "starling/tools/cluster/job_preparer.hpp"
#include "starling/tools/cluster/keys/access.hpp"
#include "starling/tools/cluster/run_on_nodes.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/registry/net_file.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

/// Returns `settings` without the options in `removed`: options of this command that are not part
/// of the job.
Settings without(const std::vector<KeyDescription>& removed, Settings settings) {
  std::erase_if(settings, [&](const Setting& setting) {
    return std::ranges::count(removed, setting.key, &KeyDescription::name) > 0;
  });
  return settings;
}

/// A job's settings without `device`, because this process does not train; and the job that the
/// settings describe.
struct LocalJobSettings {
  Settings settings;
  Job job;
};

/// Returns an Error if a setting is invalid.
Result<LocalJobSettings> read_locally(const Registry& registry, Settings settings) {
  if (const std::string location = location_of(settings, "device"); !location.empty())
    if (auto device = models::parse_device(text_of(settings, "device")); !device)
      return std::move(device).error().within(location);
  std::erase_if(settings, [](const Setting& setting) { return setting.key == "device"; });
  auto job = make_job(settings, registry);
  if (!job) return std::move(job).error();
  return LocalJobSettings{std::move(settings), *std::move(job)};
}

/// Returns the settings that nodes receive. They include the defaults of the most important
/// settings that the data do not decide, so that `status` can show them. They have links in place
/// of `trees:FILE`, and the layers of a net in place of `net:FILE`, because nodes may not have the
/// file. Without a setting `model`, nodes choose a model that suits the data.
Result<wire::JobSettings> settings_for_nodes(Settings settings, const Job& job) {
  const actor::JobOptions& options = job.train.job;
  std::string model = job.model;
  const auto spec = Spec::parse(job.model);
  if (const std::string file = spec ? net_file_in(*spec) : std::string{}; !file.empty()) {
    auto description = read_net_file(file);
    if (!description) return std::move(description).error().within(location_of(settings, "model"));
    model = models::print(*description);
  }
  std::erase_if(settings, [](const Setting& setting) { return setting.key == "model"; });
  if (!model.empty()) settings.push_back({"model", model, "--model"});
  for (Setting& setting : settings)
    if (setting.key == "exchange") setting.text = options.exchange;
  for (const auto& [key, text] : {std::pair{"data", job.data.data},
                                  {"mode", core::print(options.mode)},
                                  {"barrier", barrier::print(options.barrier)}})
    if (location_of(settings, key).empty())
      settings.push_back({key, text, std::string{"--"} + key});
  return to_wire(settings);
}

/// Returns the limits under which nodes read files: they read no pipes. The commands of this file
/// read under the same limits, so that they refuse a pipe before they ask any node.
ReadLimits read_limits_of_nodes() {
  ReadLimits limits;
  limits.refuses_pipes = true;
  return limits;
}

/// Returns the description of the option `flow`, for the help. The command line runs another
/// command for `submit --flow NAME`.
KeyDescription flow_key() {
  return {"flow", ValueType::text, "NAME",
          "run a flow of `run` in place of training; `submit --flow NAME --help` lists its flags",
          "Where"};
}

/// Warns of settings that have no effect with --detach, because no program follows the job. Returns
/// an Error if the job would never end.
Result<void> check_detached(const Settings& settings, const Job& job) {
  const actor::JobOptions& options = job.train.job;
  if (options.steps == barrier::unlimited && !job.epochs && !options.time)
    return Error{"no program sees when " + location_of(settings, "until") +
                 " is reached; valid beside it: epochs, steps or seconds"}
        .within("--detach");
  for (const Setting& setting : settings)
    if ((is_for_follower(setting.key) && setting.key != "json" && setting.key != "quiet") ||
        setting.key == "until")
      print_error(setting.location + ": has no effect with --detach; `" + program_name() +
                  " attach` takes it");
  return {};
}

/// Returns the summary of an ended job, which nodes keep for a day.
wire::JobSummary summary_of(const EndedJob& ended) {
  using End = actor::Outcome::End;
  wire::JobSummary summary;
  const bool has_stopped_early = ended.interrupted || ended.outcome.end == End::stopped;
  summary.state = !ended.error.empty() ? wire::JobState::failed
                  : has_stopped_early  ? wire::JobState::stopped
                                       : wire::JobState::done;
  summary.why = ended.error;
  const auto figures = nlohmann::json::parse(summary_json(ended), nullptr, false);
  for (const auto& [name, value] : figures.items()) {
    const bool is_result = name.starts_with("test_") || name.starts_with("train_") ||
                           name == "updates" || name == "updates_per_s" || name == "wall_s" ||
                           name == "waiting_share" || name.starts_with("workers_");
    if (value.is_number() && is_result && !name.ends_with("_samples"))
      summary.figures.emplace_back(name, value.get<double>());
  }
  return summary;
}

/// Returns what a user can do about a job that has ended and whose nodes still hold it. `has_model`
/// is false if its model could not be read.
std::string kept_job_advice(const EndedJob& ended, bool has_model) {
  const std::string& name = ended.job.name;
  const std::string call = "`" + program_name();
  const std::string drop = call + " stop --drop " + name + "` drops it";
  if (has_model)
    return "job " + name + " stays on its nodes: " + call + " attach " + name +
           " --save FILE` saves its model, " + drop;
  const std::string nothing = ended.saved.empty() ? ", so nothing of it is saved" : "";
  return "job " + name + " stays on its nodes, but its model cannot be read from them: " +
         (ended.checkpoint.empty()
              ? "no checkpoint of it was written" + nothing
              : call + " submit --resume " + ended.checkpoint + "` goes on from its checkpoint") +
         "; " + drop;
}

/// Begins a job that no program follows.
Result<int> begin_detached(Access& access, const JobTarget& target, const Settings& settings,
                           const LocalJobSettings& local, const BeginOptions& options) {
  if (auto valid = check_detached(settings, local.job); !valid) return std::move(valid).error();
  const auto for_nodes = settings_for_nodes(settings, local.job);
  if (!for_nodes) return for_nodes.error();
  print_barrier_notes(local.job, settings);
  // From here on the job may exist on nodes: a signal stops it in order.
  const GracefulStop graceful_stop{options.is_quiet ? nullptr : stop_message_without_saving};
  const auto begun = begin_job(access, target, *for_nodes, options);
  if (!begun) return begun.error();
  return begun->code;
}

/// Returns an Error if the checkpoint of --resume has another number of updates here than on the
/// nodes, because a checkpoint of the job would replace the one here.
Result<void> check_resumed(const Job& job, const ResolvedJob& resolved) {
  const auto updates = job.resume.empty() ? std::nullopt : updates_in(job.resume);
  if (!updates || *updates == resolved.updates_before) return {};
  return Error{"--resume: " + job.resume + ": holds a checkpoint after " +
               print_count(resolved.updates_before, "update") + " on the nodes, but one after " +
               print_count(*updates, "update") + " here; valid: the same file on all machines"};
}

/// Waits until a job has begun, because nodes send no notes on it before.
Result<void> await_begin(Access& access, wire::JobId id) {
  constexpr std::chrono::milliseconds interval{200};
  Follower follower{*access.client, access.seed, id};
  for (auto report = follower.poll(); !report || !report->has_begun; report = follower.poll()) {
    if (!report) return std::move(report).error();
    if (!report->failure.empty()) return {};
    std::this_thread::sleep_for(interval);
  }
  return {};
}

/// Asks all nodes to drop a job that this process has submitted and does not follow.
void drop(Access& access, wire::JobId id, const std::string& why) {
  Follower follower{*access.client, access.seed, id};
  (void)follower.poll();  // learns the addresses of the other nodes
  follower.close_job({wire::JobState::failed, why});
}

/// Follows a job to its end and reports it as `train` does. Then asks the nodes to drop the model
/// if it was saved, or if the user asked for no file and `on_leave` is `stop_job`; else they keep
/// it.
Result<int> follow(Access& access, wire::JobId id, RunOnNodes job, MetricsFile metrics,
                   JobWatcher::OnLeave on_leave) {
  RecordedRun& run = job.run;
  const std::string name = "job " + run.resolved.name;
  const std::string attach_call = "`" + program_name() + " attach " + run.resolved.name;
  const auto& options = run.resolved.options.job;
  Follower follower{*access.client, access.seed, id, options.wait_for_nodes};
  run.evaluator = std::make_shared<const NodeEvaluator>(
      *access.client, follower,
      NodeEvaluator::Options{id, run.resolved.test_samples > 0, job.has_normalised_error,
                             options.until ? options.until->metric : std::string{}});
  Recorder recorder{run, std::move(metrics)};
  // The first poll asks only the seed node, and learns the others from it. Its result is not shown,
  // because it counts only the seed node's workers.
  (void)follower.poll();
  std::optional<TraceCollector> collector;
  if (!run.job.trace.empty()) collector.emplace(*access.client, id);
  JobWatcher watcher{follower, recorder, run, on_leave, [&] {
                       if (collector) collector->collect(follower.answering_nodes());
                     }};
  const auto end = watcher.run();
  if (collector) {
    if (end == JobWatcher::End::ended) collector->collect_rest(follower.answering_nodes());
    recorder.set_trace(
        collector->traces().trace([&](wire::NodeId node) { return follower.name_of(node); }));
  }
  if (end == JobWatcher::End::goes_on || end == JobWatcher::End::unreachable)
    recorder.warn(name + (end == JobWatcher::End::goes_on ? " goes on; " : " may go on; ") +
                  attach_call + "` follows it again");
  if (end == JobWatcher::End::goes_on && is_interrupted()) {
    if (const auto written = recorder.write_timeline(); !written)
      print_error(written.error().message);
    return interrupted_code;
  }
  const EndedJob ended = recorder.end(watcher.outcome(), watcher.workers());
  const bool must_save = !run.job.save.empty() || !run.job.checkpoint.empty();
  const bool may_drop = must_save ? ended.has_saved_all : on_leave == JobWatcher::OnLeave::stop_job;
  if (end == JobWatcher::End::ended && may_drop)
    follower.close_job(summary_of(ended));
  else if (end == JobWatcher::End::ended)
    print_error(kept_job_advice(ended, !watcher.outcome().model.empty()));
  return report(ended, run.job);
}

}  // namespace

const std::vector<KeyDescription>& submit_options() {
  static const std::vector<KeyDescription> all = [] {
    std::vector<KeyDescription> keys = connection_options("Where");
    keys.push_back(detach_key("Where"));
    keys.push_back(flow_key());
    keys.insert(keys.end(), job_keys().begin(), job_keys().end());
    return keys;
  }();
  return all;
}

Result<int> submit_command(const Registry& registry, const Settings& settings,
                           const std::string& job_file) {
  const ReadScope read_scope{read_limits_of_nodes()};
  auto own_options = connection_options("");
  own_options.push_back(detach_key(""));
  own_options.push_back(flow_key());
  const Settings job = without(own_options, settings);
  const bool must_detach = !location_of(settings, "detach").empty();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto local = read_locally(registry, job);
  if (!local) return local.error();
  const BeginOptions begin_options{.name = local->job.name,
                                   .must_detach = must_detach,
                                   .is_json = local->job.json,
                                   .is_quiet = local->job.quiet};
  const auto target = find_target(*access, job);
  if (!target) return target.error();
  if (!*target) return job_failed;
  const auto remote_settings = with_absolute_paths(job, (*target)->snapshot.nodes);
  if (!remote_settings) return remote_settings.error();
  if (must_detach)
    return begin_detached(*access, **target, *remote_settings, *local, begin_options);
  const auto for_nodes = settings_for_nodes(*remote_settings, local->job);
  if (!for_nodes) return for_nodes.error();
  if (auto fit = check_files(registry, local->job, local->settings, job_file); !fit)
    return std::move(fit).error();
  print_barrier_notes(local->job, local->settings);
  // The file is emptied once the job has begun: if the nodes refuse the job, the figures of an
  // earlier job stay.
  auto metrics = MetricsFile::open(local->job.metrics, true);
  if (!metrics) return std::move(metrics).error().within(location_of(settings, "metrics"));
  // From here on the job may exist on nodes: a signal stops it in order.
  const GracefulStop graceful_stop{local->job.quiet ? nullptr : stop_message_without_saving};
  const auto begun = begin_job(*access, **target, *for_nodes, begin_options);
  if (!begun) return begun.error();
  if (!begun->job) return begun->code;
  const wire::JobId id = begun->job->job;
  const bool is_resumed = !local->job.resume.empty();
  auto described = describe_run_on_nodes(*access, (*target)->snapshot, id, local->job,
                                         local->settings, is_resumed);
  if (!described || !*described) {
    drop(*access, id, "the program that submitted it cannot follow it");
    if (!described) return std::move(described).error();
    return job_failed;
  }
  RecordedRun& run = (*described)->run;
  if (auto same = check_resumed(local->job, run.resolved); !same) {
    print_error(same.error().message);
    drop(*access, id, same.error().message);
    return job_failed;
  }
  if (!run.resume_note.empty()) print_error(run.resume_note);
  if (!is_resumed) metrics->clear();
  run.resolved.id = std::to_string(id);
  run.resolved.name = begun->job->name;
  return follow(*access, id, **std::move(described), *std::move(metrics),
                JobWatcher::OnLeave::stop_job);
}

const std::vector<KeyDescription>& attach_options() {
  static const std::vector<KeyDescription> all = [] {
    std::vector<KeyDescription> keys = connection_options("Where");
    keys.push_back(job_key("Where"));
    for (KeyDescription key : job_keys()) {
      if (!is_for_follower(key.name) && key.name != "until") continue;
      if (key.name == "metrics")
        key.help = "figures from now on, one JSON object a line; appended to the file";
      if (key.name == "report")
        key.help = "curves from now on, settings and figures as one HTML page";
      if (key.name == "trace")
        key.help = "what each worker does when, from shortly before now on, for Perfetto";
      key.group = "What comes out";
      keys.push_back(std::move(key));
    }
    return keys;
  }();
  return all;
}

Result<int> attach_command(const Registry& registry, const Settings& settings) {
  const ReadScope read_scope{read_limits_of_nodes()};
  auto chosen = choose_job(settings);
  if (!chosen) return std::move(chosen).error();
  if (!*chosen) return job_failed;
  auto& [access, snapshot, id] = **chosen;
  const JobSnapshot& seen = snapshot.jobs.at(id);
  if (seen.is_flow()) return attach_flow(registry, access, id, seen, settings);
  Display{!location_of(settings, "quiet").empty()}.show(
      "follows job " + seen.name + " (" + actor::summary_of(seen.settings) +
      "): " + progress_text(seen, utc_now_us() / 1000));
  auto known = from_wire(seen.settings);
  if (!known) return std::move(known).error();
  // Only the nodes read these files. Only the nodes start the user's own actors (`actors`), which
  // this program may lack.
  const bool is_resumed = !location_of(*known, "resume").empty();
  const std::vector<FileUse> read_by_nodes{{"the job's init", text_of(*known, "init")}};
  std::erase_if(*known, [](const Setting& setting) {
    return setting.key == "resume" || setting.key == "init" || setting.key == "trust-file" ||
           setting.key == "actors" ||
           (setting.key == "delay" && setting.text.starts_with("trace:"));
  });
  auto own_options = connection_options("");
  own_options.push_back(job_key(""));
  const auto job =
      read_locally(registry, override_settings(*std::move(known), without(own_options, settings)));
  if (!job) return job.error();
  if (auto fit = check_files(registry, job->job, job->settings, ""); !fit)
    return std::move(fit).error();
  for (const char* key : {"save", "checkpoint", "report", "trace", "metrics"})
    if (const FileUse use{location_of(settings, key), text_of(settings, key)}; !use.path.empty())
      if (auto free = check_no_conflict(use, read_by_nodes); !free) return std::move(free).error();
  print_barrier_notes(job->job, job->settings);
  if (seen.state() == wire::JobState::preparing)
    if (auto begun = await_begin(access, id); !begun) {
      print_error("job " + seen.name + ": " + begun.error().message);
      return job_failed;
    }
  auto described = describe_run_on_nodes(access, snapshot, id, job->job, job->settings, is_resumed);
  if (!described) return std::move(described).error();
  if (!*described) return job_failed;
  RecordedRun& run = (*described)->run;
  auto metrics = MetricsFile::open(run.job.metrics, true);
  if (!metrics) return std::move(metrics).error().within(location_of(settings, "metrics"));
  run.resolved.id = std::to_string(id);
  run.resolved.name = seen.name;
  const GracefulStop graceful_stop{nullptr};
  return follow(access, id, **std::move(described), *std::move(metrics),
                JobWatcher::OnLeave::leave_running);
}

}  // namespace starling::program
