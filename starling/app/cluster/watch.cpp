#include "starling/app/cluster/watch.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "starling/app/commands.hpp"

namespace starling::app {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 200ms;

}  // namespace

Watch::Watch(Follower& follower, Recorder& recorder, const Prepared& ready, Unwanted unwanted)
    : follower_(follower),
      recorder_(recorder),
      ready_(ready),
      unwanted_(unwanted),
      layout_(ready.model->layout(job().job)),
      evaluation_(ready.test() != nullptr ? job().job.evaluate_every : 0),
      checkpoint_(job().job.checkpoint_every) {}

Watch::End Watch::run() {
  const End end = follow();
  if (end == End::ended) fetch();
  return end;
}

Watch::End Watch::follow() {
  while (true) {
    auto news = follower_.look();
    if (news) take(*news);
    for (const std::string& line : follower_.take_news()) recorder_.warn(line);
    if (news) tell_hindrance(news->hindrance);
    if (!news || !news->failure.empty()) {
      outcome_.end = live::Outcome::End::failed;
      outcome_.error = news ? news->failure : news.error().message;
      return news ? End::ended : follower_.is_dropped() ? End::dropped : End::lost;
    }
    const bool wanted = recorder_.on_progress(outcome_.last, news->missing);
    if (news->done) {
      end();
      return End::ended;
    }
    if (!wanted && !stopping_ && unwanted_ == Unwanted::goes_on) return End::left;
    if (!wanted) stop(live::Outcome::End::stopped);
    if (is_time_up()) stop(live::Outcome::End::reached);
    // Again and again: members join that have not heard it.
    if (stopping_) follower_.stop(outcome_.end == live::Outcome::End::reached);
    if (!stopping_ && evaluation_.is_due(news->mean_step)) evaluate(news->mean_step);
    if (!stopping_ && checkpoint_.is_due(news->mean_step)) save(news->mean_step);
    std::this_thread::sleep_for(look_every);
  }
}

void Watch::tell_hindrance(const std::string& hindrance) {
  if (hindrance == hindrance_) return;
  if (!hindrance.empty())
    recorder_.warn("waits: " + hindrance);
  else
    recorder_.warn("goes on");
  hindrance_ = hindrance;
}

void Watch::take(const JobNews& news) {
  workers_lost_ = news.workers_lost;
  live::Progress progress = news.progress;
  live::Progress& last = outcome_.last;
  progress.test = std::move(last.test);
  progress.evaluated_at = last.evaluated_at;
  progress.evaluations = last.evaluations;
  progress.updates += ready_.running.updates_before;
  last = std::move(progress);
}

bool Watch::is_time_up() const {
  return job().job.time && outcome_.last.elapsed >= *job().job.time;
}

/// Where steps are missing and nobody here asked for that, the time was up, or somebody else did,
/// or nodes have left.
void Watch::end() {
  if (stopping_ || outcome_.last.spread.min >= job().job.steps) return;
  stop(is_time_up() ? live::Outcome::End::reached : live::Outcome::End::stopped);
}

void Watch::stop(live::Outcome::End why) {
  if (!stopping_) outcome_.end = why;
  stopping_ = true;
}

/// Of the model as it is on its way; where nodes come and go, next time.
void Watch::evaluate(double step) {
  evaluation_.pass(step);
  auto model = job().job.until ? states(little, 1) : follower_.fetch(layout_, little);
  if (!model) return;
  outcome_.last.test = ready_.model->evaluate(weights_of(*model), *ready_.test());
  outcome_.last.evaluated_at = step;
  ++outcome_.last.evaluations;
  recorder_.on_evaluation(*model);
  if (!job().job.until || !live::reached(*job().job.until, outcome_.last.test)) return;
  reached_ = *std::move(model);
  stop(live::Outcome::End::reached);
}

void Watch::save(double step) {
  const auto began = Clock::now();
  if (began < save_again_) return;
  auto states = follower_.fetch_cut(layout_, job(), little);
  if (states) {
    checkpoint_.pass(step);
    recorder_.on_checkpoint(*states);
    return;
  }
  // Else the job would do nothing but rest.
  save_again_ = Clock::now() + std::max<Clock::duration>(5s, 10 * (Clock::now() - began));
  if (std::exchange(complaint_, states.error().message) != complaint_)
    complain("no checkpoint at step " + std::to_string(std::llround(step)) + ": " + complaint_ +
             "; it is tried again");
}

/// What a job can go on from where that is to be saved and can be had, else the values alone.
Result<Watch::States> Watch::states(Patience patience, int tries) {
  if (ready_.job.checkpoint.empty()) return follower_.fetch(layout_, patience);
  auto cut = follower_.fetch_cut(layout_, job(), patience);
  while (!cut && --tries > 0) {
    std::this_thread::sleep_for(1s);
    cut = follower_.fetch_cut(layout_, job(), patience);
  }
  if (cut) return cut;
  complain("no checkpoint of the last model: " + cut.error().message);
  return follower_.fetch(layout_, patience);
}

void Watch::fetch() {
  const bool has_failed = outcome_.end == live::Outcome::End::failed;
  // Of a job that has failed there is no cut, and perhaps no whole model.
  auto model = !reached_.empty() ? Result<States>{std::move(reached_)}
               : has_failed      ? follower_.fetch(layout_, little)
                                 : states(much, 3);
  if (!model) {
    outcome_.end = live::Outcome::End::failed;
    if (!has_failed) outcome_.error = model.error().message;
    return;
  }
  outcome_.model = *std::move(model);
  if (has_failed) return;
  const Weights weights = weights_of(outcome_.model);
  outcome_.last.train = ready_.model->evaluate(weights, ready_.data.train);
  if (ready_.test() != nullptr)
    outcome_.last.test = ready_.model->evaluate(weights, *ready_.test());
  ++outcome_.last.evaluations;
}

}  // namespace starling::app
