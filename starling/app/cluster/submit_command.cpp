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
#include "starling/app/program_name.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 200ms;

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
    }
    // Again and again: members join that have not heard it.
    if (stopping && !news->done) follower.stop();
    if (news->done) return outcome;
    std::this_thread::sleep_for(look_every);
  }
}

/// The model at the job's end, and its figures. False where nodes have it still, as far as is
/// known.
bool fetch(Follower& follower, live::Outcome& outcome, const Prepared& ready) {
  auto model = follower.fetch(ready.model->layout(ready.running.options.job).ranges.size());
  if (!model) {
    const bool has_failed = outcome.end == live::Outcome::End::failed;
    outcome.end = live::Outcome::End::failed;
    if (!has_failed) outcome.error = model.error().message;
    return has_failed;
  }
  outcome.model = *std::move(model);
  const Weights weights = ready.model->collect(ready.running.options.job, outcome.model);
  outcome.last.train = ready.model->evaluate(weights, ready.data.train);
  if (ready.test() != nullptr) outcome.last.test = ready.model->evaluate(weights, *ready.test());
  outcome.last.evaluations = 1;
  return true;
}

}  // namespace

const std::vector<KeyForm>& submit_keys() {
  static const std::vector<KeyForm> all = [] {
    std::vector<KeyForm> keys = access_keys("Where");
    for (const Key& key : job_keys())
      if (check_submission({{key.name, "", ""}})) keys.push_back(key);
    return keys;
  }();
  return all;
}

Result<int> submit_command(const Contents& contents, const Settings& settings,
                           const std::string& job_file) {
  Settings job = settings;
  std::erase_if(job, [](const Setting& setting) {
    const auto access = access_keys("");
    return std::ranges::count(access, setting.key, &KeyForm::name) > 0;
  });
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
  if (fetch(follower, outcome, *ready))
    follower.close();
  else
    complain("job " + std::to_string(id) + " stays on its nodes; `" + program_name() +
             " stop --drop` ends it");
  return report(recorder.end(outcome), ready->job);
}

}  // namespace starling::app
