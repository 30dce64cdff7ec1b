#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <utility>

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

using States = std::vector<core::RangeState>;

wire::JobId draw_job() {
  std::random_device device;
  return ((std::uint64_t{device()} << 32U) | device()) | 1U;
}

/// Comes whenever the workers have made so many more steps on average; never where `every` is 0.
class Milestone {
 public:
  explicit Milestone(core::Step every) : every_(static_cast<double>(every)), next_(every_) {}
  [[nodiscard]] bool is_due(double step) const { return every_ > 0 && step >= next_; }
  void pass(double step) { next_ = step + every_; }

 private:
  double every_;
  double next_;
};

/// A job that runs, followed to its end from outside.
class Watch {
 public:
  Watch(Follower& follower, Recorder& recorder, const Prepared& ready)
      : follower_(follower),
        recorder_(recorder),
        ready_(ready),
        layout_(ready.model->layout(job().job)),
        evaluation_(ready.test() != nullptr ? job().job.evaluate_every : 0),
        checkpoint_(job().job.checkpoint_every) {}

  /// True where the model is here, or nodes have it no more.
  [[nodiscard]] bool run() {
    follow();
    return fetch();
  }
  [[nodiscard]] const live::Outcome& outcome() const { return outcome_; }
  /// Workers that died or left before the end.
  [[nodiscard]] std::uint64_t workers_lost() const { return workers_lost_; }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] const live::TrainOptions& job() const { return ready_.running.options; }

  void follow() {
    while (true) {
      auto news = follower_.look();
      if (news) take(*news);
      for (const std::string& line : follower_.take_losses()) recorder_.warn(line);
      if (!news || !news->failure.empty()) {
        outcome_.end = live::Outcome::End::failed;
        outcome_.error = news ? news->failure : news.error().message;
        return;
      }
      const bool wanted = recorder_.on_progress(outcome_.last, news->missing);
      const auto& time = job().job.time;
      if (!wanted) stop(live::Outcome::End::stopped);
      if (time && outcome_.last.elapsed >= *time) stop(live::Outcome::End::reached);
      if (news->done) return end();
      // Again and again: members join that have not heard it.
      if (stopping_) follower_.stop();
      if (!stopping_ && evaluation_.is_due(news->mean_step)) evaluate(news->mean_step);
      if (!stopping_ && checkpoint_.is_due(news->mean_step)) save(news->mean_step);
      std::this_thread::sleep_for(look_every);
    }
  }

  void take(const JobNews& news) {
    workers_lost_ = news.workers_lost;
    live::Progress progress = news.progress;
    live::Progress& last = outcome_.last;
    progress.test = std::move(last.test);
    progress.evaluated_at = last.evaluated_at;
    progress.evaluations = last.evaluations;
    progress.updates += ready_.running.updates_before;
    last = std::move(progress);
  }

  /// Where steps are missing and nobody here asked for that, somebody else did, or nodes have left.
  void end() {
    const bool all_made = outcome_.last.spread.min >= job().job.steps;
    if (!stopping_ && !all_made) outcome_.end = live::Outcome::End::stopped;
  }

  void stop(live::Outcome::End why) {
    if (!stopping_) outcome_.end = why;
    stopping_ = true;
  }

  /// Of the model as it is on its way; where nodes come and go, next time.
  void evaluate(double step) {
    evaluation_.pass(step);
    auto model = job().job.until ? states(little) : follower_.fetch(layout_, little);
    if (!model) return;
    outcome_.last.test = ready_.model->evaluate(weights_of(*model), *ready_.test());
    outcome_.last.evaluated_at = step;
    ++outcome_.last.evaluations;
    recorder_.on_evaluation(*model);
    if (!job().job.until || !live::reached(*job().job.until, outcome_.last.test)) return;
    reached_ = *std::move(model);
    stop(live::Outcome::End::reached);
  }

  void save(double step) {
    const auto began = Clock::now();
    if (began < save_again_) return;
    auto states = follower_.fetch_cut(layout_, job(), little);
    if (states) {
      checkpoint_.pass(step);
      return recorder_.on_checkpoint(*states);
    }
    // Else the job would do nothing but rest.
    save_again_ = Clock::now() + std::max<Clock::duration>(5s, 10 * (Clock::now() - began));
    if (std::exchange(complaint_, states.error().message) != complaint_)
      complain("no checkpoint at step " + std::to_string(std::llround(step)) + ": " + complaint_ +
               "; it is tried again");
  }

  /// What a job can go on from where that is to be saved and can be had, else the values alone.
  [[nodiscard]] Result<States> states(Patience patience) {
    if (ready_.job.checkpoint.empty()) return follower_.fetch(layout_, patience);
    auto cut = follower_.fetch_cut(layout_, job(), patience);
    if (cut) return cut;
    complain("no checkpoint of the last model: " + cut.error().message);
    return follower_.fetch(layout_, patience);
  }

  bool fetch() {
    const bool has_failed = outcome_.end == live::Outcome::End::failed;
    // Of a job that has failed there is no cut, and perhaps no whole model.
    auto model = !reached_.empty() ? Result<States>{std::move(reached_)}
                 : has_failed      ? follower_.fetch(layout_, little)
                                   : states(much);
    if (!model) {
      outcome_.end = live::Outcome::End::failed;
      if (!has_failed) outcome_.error = model.error().message;
      return has_failed;
    }
    outcome_.model = *std::move(model);
    if (has_failed) return true;
    const Weights weights = weights_of(outcome_.model);
    outcome_.last.train = ready_.model->evaluate(weights, ready_.data.train);
    if (ready_.test() != nullptr)
      outcome_.last.test = ready_.model->evaluate(weights, *ready_.test());
    ++outcome_.last.evaluations;
    return true;
  }

  [[nodiscard]] Weights weights_of(const States& states) const {
    return ready_.model->collect(job().job, states);
  }

  Follower& follower_;
  Recorder& recorder_;
  const Prepared& ready_;
  const core::Layout layout_;
  Milestone evaluation_;
  Milestone checkpoint_;
  bool stopping_ = false;
  /// Not before, where a checkpoint could not be had.
  Clock::time_point save_again_{};
  /// The last that kept a checkpoint from being written.
  std::string complaint_;
  /// The model that reached the target.
  States reached_;
  live::Outcome outcome_;
  std::uint64_t workers_lost_ = 0;
};

/// Of a job that can be read. The devices are the nodes': this one computes nothing.
Result<Settings> without_device(const Contents& contents, Settings job) {
  if (const std::string place = place_of(job, "device"); !place.empty())
    if (auto device = models::parse_device(text_of(job, "device")); !device)
      return std::move(device).error().within(place);
  std::erase_if(job, [](const Setting& setting) { return setting.key == "device"; });
  if (auto read = make_job(job, contents); !read) return std::move(read).error();
  return job;
}

/// Says what was by default too, so that `status` can; and a net's own words in place of its file,
/// which nodes need not have.
wire::JobSettings told_of(Settings job, const Prepared& ready) {
  const auto& options = ready.running.options.job;
  std::erase_if(job, [](const Setting& setting) { return setting.key == "model"; });
  job.push_back({"model", ready.model->print(), "--model"});
  for (const auto& [key, text] : {std::pair{"data", ready.job.data.data},
                                  {"mode", core::print(options.mode)},
                                  {"barrier", barrier::print(options.barrier)}})
    if (place_of(job, key).empty()) job.push_back({key, text, std::string{"--"} + key});
  return to_wire(job);
}

}  // namespace

const std::vector<KeyForm>& submit_keys() {
  static const std::vector<KeyForm> all = [] {
    std::vector<KeyForm> keys = access_keys("Where");
    keys.insert(keys.end(), job_keys().begin(), job_keys().end());
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
  auto access = open_access(settings);
  if (!access) return std::move(access).error();
  const auto own = without_device(contents, job);
  if (!own) return own.error();
  // Data may take long to load; whether a node is there shows soon.
  if (auto node = access->greet(); !node) {
    complain(node.error().message);
    return job_failed;
  }
  auto ready = prepare(contents, *own, job_file);
  if (!ready) return std::move(ready).error();
  auto metrics = MetricsFile::open(ready->job.metrics, false);
  if (!metrics) return std::move(metrics).error().within(place_of(settings, "metrics"));
  const wire::JobId id = draw_job();
  const auto started = access->client->ask_for<wire::Done>(
      access->door, wire::SubmitJob{id, told_of(job, *ready)}, 5min);
  if (!started) {
    complain(started.error().message);
    return job_failed;
  }
  ready->running.id = std::to_string(id);
  Display{ready->job.quiet}.show("job " + ready->running.id + " begins");
  const OrderlyStop orderly{ready->job.quiet ? nullptr : stops_without_saving};
  Recorder recorder{*ready, *std::move(metrics)};
  Follower follower{*access->client, access->door, id};
  Watch watch{follower, recorder, *ready};
  if (watch.run())
    follower.close();
  else
    complain("job " + ready->running.id + " stays on its nodes; `" + program_name() +
             " stop --drop` ends it");
  return report(recorder.end(watch.outcome(), watch.workers_lost()), ready->job);
}

}  // namespace starling::app
