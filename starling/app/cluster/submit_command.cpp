#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "starling/app/cluster/access.hpp"
#include "starling/app/cluster/cluster_commands.hpp"
#include "starling/app/cluster/follower.hpp"
#include "starling/app/cluster/plan.hpp"
#include "starling/app/commands.hpp"
#include "starling/app/interrupt.hpp"
#include "starling/app/prepare.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 200ms;
constexpr const char* keys_help = "key file made by `keys node`; needed where nodes have them";

wire::JobId draw_job() {
  std::random_device device;
  return ((std::uint64_t{device()} << 32U) | device()) | 1U;
}

/// The job runs: follows it to its end.
live::Outcome follow(Follower& follower, Recorder& recorder, const Prepared& ready) {
  live::Outcome outcome;
  const auto& job = ready.running.options.job;
  bool stopping = false;
  while (true) {
    auto news = follower.look();
    if (!news || !news->failure.empty()) {
      outcome.end = live::Outcome::End::failed;
      outcome.error = news ? news->failure : news.error().message;
      return outcome;
    }
    outcome.last = news->progress;
    const bool wanted = recorder.on_progress(news->progress);
    const bool time_is_up = job.time && news->progress.elapsed >= *job.time;
    if (!stopping && (!wanted || time_is_up)) {
      stopping = true;
      outcome.end = wanted ? live::Outcome::End::reached : live::Outcome::End::stopped;
      follower.stop();
    }
    if (news->done) return outcome;
    std::this_thread::sleep_for(look_every);
  }
}

/// The model at the job's end, and its figures.
void fetch(Follower& follower, live::Outcome& outcome, const Prepared& ready) {
  auto model = follower.fetch(ready.model->layout(ready.running.options.job).ranges.size());
  if (!model) {
    outcome.end = live::Outcome::End::failed;
    if (outcome.error.empty()) outcome.error = model.error().message;
    return;
  }
  outcome.model = *std::move(model);
  const Weights weights = ready.model->collect(ready.running.options.job, outcome.model);
  outcome.last.train = ready.model->evaluate(weights, ready.data.train);
  if (ready.test() != nullptr) outcome.last.test = ready.model->evaluate(weights, *ready.test());
  outcome.last.evaluations = 1;
}

}  // namespace

const std::vector<KeyForm>& submit_keys() {
  static const std::vector<KeyForm> all = [] {
    std::vector<KeyForm> keys{
        {"to", KeyKind::text, "[NAME@]HOST:PORT",
         "any node of the cluster; its nodes read the data themselves", "Where"},
        {"keys", KeyKind::text, "FILE", keys_help, "Where"}};
    for (const Key& key : job_keys())
      if (check_submission({{key.name, "", ""}})) keys.push_back(key);
    return keys;
  }();
  return all;
}

const std::vector<KeyForm>& status_keys() {
  static const std::vector<KeyForm> keys{
      {"to", KeyKind::text, "[NAME@]HOST:PORT", "any node of the cluster", "Options"},
      {"keys", KeyKind::text, "FILE", keys_help, "Options"}};
  return keys;
}

Result<int> submit_command(const Contents& contents, const Settings& settings,
                           const std::string& job_file) {
  Settings job = settings;
  std::erase_if(
      job, [](const Setting& setting) { return setting.key == "to" || setting.key == "keys"; });
  if (auto valid = check_submission(job); !valid) return std::move(valid).error();
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  auto ready = prepare(contents, job, job_file);
  if (!ready) return std::move(ready).error();
  auto metrics = MetricsFile::open(ready->job.metrics, false);
  if (!metrics) return std::move(metrics).error().within(place_of(settings, "metrics"));
  const OrderlyStop orderly{ready->job.quiet ? nullptr : stops_without_saving};
  const wire::JobId id = draw_job();
  const auto started =
      access->client->ask_for<wire::Done>(access->door, wire::SubmitJob{id, to_wire(job)}, 5min);
  if (!started) {
    complain(started.error().message);
    return job_failed;
  }
  Recorder recorder{*ready, *std::move(metrics)};
  Follower follower{*access->client, access->door, id};
  live::Outcome outcome = follow(follower, recorder, *ready);
  fetch(follower, outcome, *ready);
  follower.close();
  return report(recorder.end(outcome), ready->job);
}

Result<int> status_command(const Settings& settings) {
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto status =
      access->client->ask_for<wire::NodeStatus>(access->door, wire::AskStatus{}, 5s);
  if (!status) {
    complain(status.error().message);
    return job_failed;
  }
  const auto line = [](const core::MemberRecord& node) {
    constexpr std::array<const char*, 4> states{"alive", "suspect", "dead", "left"};
    return node.name + "  " + wire::place_of(node.address) + "  " +
           states.at(static_cast<std::size_t>(node.state)) + "\n";
  };
  std::string text = line(status->self);
  for (const auto& other : status->others) text += line(other);
  for (const auto& job : status->jobs) {
    text += "job " + std::to_string(job.job) + ", epoch " +
            std::to_string(job.configuration ? job.configuration->epoch : 0) + "\n";
    constexpr std::array<const char*, 5> standing{"joining", "running", "done", "shut out",
                                                  "failed"};
    for (const auto& member : job.here)
      text += "  member " + std::to_string(member.member) + ": step " +
              std::to_string(member.step) + ", " +
              (member.state < standing.size() ? standing.at(member.state) : "unknown") +
              (member.why.empty() ? "" : ": " + member.why) + "\n";
  }
  return put_out(text, done);
}

}  // namespace starling::app
