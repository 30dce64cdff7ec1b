#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/input.hpp"
#include "starling/base/utc.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/data_paths.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/cluster/follow/job_progress.hpp"
#include "starling/tools/cluster/follow/watch.hpp"
#include "starling/tools/cluster/job_naming.hpp"
#include "starling/tools/cluster/job_preparer.hpp"
#include "starling/tools/cluster/keys/access.hpp"
#include "starling/tools/cluster/submitter.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

/// Returns the settings of a job alone, without the keys `others` of the command.
Settings without(const std::vector<KeyForm>& others, Settings settings) {
  std::erase_if(settings, [&](const Setting& setting) {
    return std::ranges::count(others, setting.key, &KeyForm::name) > 0;
  });
  return settings;
}

/// Returns the settings of a job without `device`, which is for its nodes: this process computes
/// nothing. An Error where the job cannot be read.
Result<Settings> without_device(const Registry& registry, Settings job) {
  if (const std::string place = place_of(job, "device"); !place.empty())
    if (auto device = models::parse_device(text_of(job, "device")); !device)
      return std::move(device).error().within(place);
  std::erase_if(job, [](const Setting& setting) { return setting.key == "device"; });
  if (auto read = make_job(job, registry); !read) return std::move(read).error();
  return job;
}

/// Returns the settings that nodes receive: with the defaults, so that `status` can show them, and
/// with a net's layers in place of its file, which nodes need not have.
wire::JobSettings told_of(Settings job, const Prepared& ready) {
  const auto& options = ready.running.options.job;
  std::erase_if(job, [](const Setting& setting) { return setting.key == "model"; });
  job.push_back({"model", ready.model->print(), "--model"});
  for (const auto& [key, text] : {std::pair{"data", ready.job.data.data},
                                  {"mode", core::print(options.mode)},
                                  {"barrier", barrier::print(options.barrier)}})
    if (place_of(job, key).empty()) job.push_back({key, text, std::string{"--"} + key});
  if (ready.job.has_default_length)
    job.push_back({"steps", std::to_string(options.steps), "--steps"});
  return to_wire(job);
}

/// How long nodes are asked for the names of jobs; a name that is taken already is detected when
/// the job is submitted.
constexpr std::chrono::milliseconds names_within{300};

/// Refuses pipes, which nodes cannot read either, before nodes are asked.
ReadLimits limits_of_nodes() {
  ReadLimits limits;
  limits.regular_only = true;
  return limits;
}

KeyForm detach_key() {
  return {"detach", KeyKind::flag, "", "end once the job has begun; `attach` follows it", "Where"};
}

/// Warns of settings that have no effect on a job that nobody follows. An Error where it would have
/// no end.
Result<void> check_detached(const Settings& settings, const Prepared& ready) {
  const auto& options = ready.running.options.job;
  if (options.steps == barrier::finished && !options.time)
    return Error{"nobody sees when " + place_of(settings, "until") +
                 " is reached; valid beside it: epochs, steps or seconds"}
        .within("--detach");
  for (const Setting& setting : settings)
    if ((is_for_follower(setting.key) && setting.key != "json" && setting.key != "quiet") ||
        setting.key == "until")
      print_error(setting.place + ": has no effect with --detach; `" + program_name() +
                  " attach` takes it");
  return {};
}

/// Returns the record of a job that nodes keep for a day.
wire::JobSummary summary_of(const Ended& ended) {
  using End = actor::Outcome::End;
  wire::JobSummary summary;
  const bool is_cut_short = ended.interrupted || ended.outcome.end == End::stopped;
  summary.state = !ended.error.empty() ? wire::JobState::failed
                  : is_cut_short       ? wire::JobState::stopped
                                       : wire::JobState::done;
  summary.why = ended.error;
  const auto all = nlohmann::json::parse(summary_json(ended), nullptr, false);
  for (const auto& [name, value] : all.items()) {
    const bool is_result = name.starts_with("test_") || name.starts_with("train_") ||
                           name == "updates" || name == "updates_per_s" || name == "wall_s" ||
                           name == "waiting_share" || name == "workers_lost";
    if (value.is_number() && is_result && !name.ends_with("_samples"))
      summary.figures.emplace_back(name, value.get<double>());
  }
  return summary;
}

/// Returns the names of jobs that run, and of those that have ended within a day.
std::set<std::string> names_in_use(Access& access, const ClusterSnapshot& snapshot) {
  std::set<std::string> names;
  for (const auto& [id, job] : snapshot.jobs) names.insert(job.name);
  for (const auto& [id, job] : ended_jobs(access, snapshot)) names.insert(job.name);
  return names;
}

/// An Error where a job that runs has the name that was asked for.
Result<void> check_name(const Settings& settings, const ClusterSnapshot& snapshot) {
  const std::string name = text_of(settings, "name");
  for (const auto& [id, job] : snapshot.jobs)
    if (!name.empty() && job.name == name)
      return Error{place_of(settings, "name") + ": '" + name + "' is the name of a job that is " +
                   print(job.state()) + " here (" + actor::summary_of(job.settings) +
                   "); valid: another, or `" + program_name() + " stop " + name + "` before"};
  return {};
}

/// Follows a job to its end and reports it as train does. A model that was asked for and could not
/// be written stays with the nodes; where none was asked for, nodes drop it if the job is the
/// follower's to stop.
Result<int> follow(Access& access, wire::JobId id, const Prepared& ready, MetricsFile metrics,
                   Watch::Unwanted unwanted) {
  const std::string name = "job " + ready.running.name;
  const std::string attach = "`" + program_name() + " attach " + ready.running.name;
  Recorder recorder{ready, std::move(metrics)};
  Follower follower{*access.client, access.seed, id, ready.running.options.job.wait_for_nodes};
  // A follower that knows a single node would show its workers as all workers.
  (void)follower.look();
  Watch watch{follower, recorder, ready, unwanted};
  const auto end = watch.run();
  if (end == Watch::End::left || end == Watch::End::lost)
    recorder.warn(name + (end == Watch::End::left ? " goes on; " : " may go on; ") + attach +
                  "` follows it again");
  if (end == Watch::End::left && is_interrupted()) return interrupted_code;
  const Ended ended = recorder.end(watch.outcome(), watch.workers_lost());
  const bool is_asked = !ready.job.save.empty() || !ready.job.checkpoint.empty();
  const bool drops = is_asked ? ended.is_kept : unwanted == Watch::Unwanted::stops;
  if (end == Watch::End::ended && drops)
    follower.close(summary_of(ended));
  else if (end == Watch::End::ended)
    print_error(name + " stays on its nodes: " + attach + " --save FILE` saves its model, `" +
                program_name() + " stop --drop " + ready.running.name + "` drops it");
  return report(ended, ready.job);
}

}  // namespace

const std::vector<KeyForm>& submit_options() {
  static const std::vector<KeyForm> all = [] {
    std::vector<KeyForm> keys = connection_options("Where");
    keys.push_back(detach_key());
    keys.insert(keys.end(), job_keys().begin(), job_keys().end());
    return keys;
  }();
  return all;
}

Result<int> submit_command(const Registry& registry, const Settings& settings,
                           const std::string& job_file) {
  const ReadScope as_nodes{limits_of_nodes()};
  auto others = connection_options("");
  others.push_back(detach_key());
  const Settings job = without(others, settings);
  const bool detaches = !place_of(settings, "detach").empty();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto own = without_device(registry, job);
  if (!own) return own.error();
  // Data may take long to load; whether a node is there shows soon.
  const auto node = access->ask_status();
  const auto snapshot = node ? take_snapshot(*access, SnapshotScope::all_nodes, names_within)
                             : Result<ClusterSnapshot>{node.error()};
  if (!snapshot) {
    print_error(snapshot.error().message);
    return job_failed;
  }
  if (auto checked = check_name(job, *snapshot); !checked) return std::move(checked).error();
  const auto for_nodes = with_absolute_paths(job, snapshot->nodes);
  if (!for_nodes) return for_nodes.error();
  auto ready = prepare(registry, *own, job_file);
  if (!ready) return std::move(ready).error();
  if (detaches)
    if (auto checked = check_detached(job, *ready); !checked) return std::move(checked).error();
  auto metrics = MetricsFile::open(detaches ? std::string{} : ready->job.metrics, false);
  if (!metrics) return std::move(metrics).error().within(place_of(settings, "metrics"));
  // From here on there may be a job, which a signal is to stop.
  const OrderlyStop orderly{ready->job.quiet ? nullptr : stops_without_saving};
  wire::JobSettings told = told_of(*for_nodes, *ready);
  std::set<std::string> taken = names_in_use(*access, *snapshot);
  const std::string stem = ready->job.name.empty() ? name_stem(told) : std::string{};
  const OtherName other_name = [&] {
    if (stem.empty()) return std::string{};
    return *taken.insert(next_name(stem, taken)).first;
  };
  if (!stem.empty()) told.emplace_back("name", other_name());
  const auto submitted = submit_job(*access, *node, std::move(told), other_name);
  if (!submitted) {
    print_error(submitted.error().message);
    return job_failed;
  }
  if (!*submitted) {
    print_error("the job is dropped before it has begun");
    return interrupted_code;
  }
  const wire::JobId id = (*submitted)->job;
  access->seed = (*submitted)->seed;
  ready->running.id = std::to_string(id);
  ready->running.name = (*submitted)->name;
  if (detaches && is_interrupted()) {
    Follower follower{*access->client, access->seed, id};
    (void)follower.look();
    follower.close({wire::JobState::stopped, "interrupted"});
    print_error("job " + ready->running.name + " is dropped");
    return interrupted_code;
  }
  if (detaches)
    return write_stdout(ready->job.json ? nlohmann::ordered_json{{"job", ready->running.id},
                                                                 {"name", ready->running.name}}
                                                  .dump() +
                                              "\n"
                                        : "job " + ready->running.name + " begins\n",
                        done);
  Display{ready->job.quiet}.show("job " + ready->running.name + " begins");
  return follow(*access, id, *ready, *std::move(metrics), Watch::Unwanted::stops);
}

const std::vector<KeyForm>& attach_options() {
  static const std::vector<KeyForm> all = [] {
    std::vector<KeyForm> keys = connection_options("Where");
    keys.push_back(job_key("Where"));
    for (KeyForm key : job_keys()) {
      if (!is_for_follower(key.name) && key.name != "until") continue;
      if (key.name == "metrics") key.help = "figures from now on, one JSON object a line; added to";
      if (key.name == "report")
        key.help = "curves from now on, settings and figures as one HTML page";
      key.group = "What comes out";
      keys.push_back(std::move(key));
    }
    return keys;
  }();
  return all;
}

Result<int> attach_command(const Registry& registry, const Settings& settings) {
  const ReadScope as_nodes{limits_of_nodes()};
  auto chosen = choose_job(settings);
  if (!chosen) return std::move(chosen).error();
  if (!*chosen) return job_failed;
  auto& [access, snapshot, id] = **chosen;
  const JobSnapshot& seen = snapshot.jobs.at(id);
  // Before data is loaded, which may take long.
  Display{!place_of(settings, "quiet").empty()}.show(
      "follows job " + seen.name + " (" + actor::summary_of(seen.settings) +
      "): " + progress_text(seen, utc_now_us() / 1000));
  auto told = from_wire(seen.settings);
  if (!told) return std::move(told).error();
  // `resume` is for the nodes, and its file may have been replaced since. The model of `init` says
  // how the test data are scaled.
  const bool has_init = !place_of(*told, "init").empty();
  std::erase_if(*told, [&](const Setting& setting) {
    return setting.key == "resume" || (setting.key == "trust-file" && !has_init);
  });
  auto others = connection_options("");
  others.push_back(job_key(""));
  const auto job =
      without_device(registry, overridden(*std::move(told), without(others, settings)));
  if (!job) return job.error();
  auto ready = prepare(registry, *job, "");
  if (!ready) return std::move(ready).error();
  auto metrics = MetricsFile::open(ready->job.metrics, true);
  if (!metrics) return std::move(metrics).error().within(place_of(settings, "metrics"));
  ready->running.id = std::to_string(id);
  ready->running.name = seen.name;
  const OrderlyStop orderly{nullptr};
  return follow(access, id, *ready, *std::move(metrics), Watch::Unwanted::goes_on);
}

}  // namespace starling::program
