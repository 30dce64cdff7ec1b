#include "starling/tools/cluster/follow/watch.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "starling/base/seconds.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds look_every = 200ms;
/// Each look asks all nodes of the job.
constexpr std::chrono::nanoseconds look_soonest = 10ms;

double mean_before(const actor::JobOptions& options, std::uint64_t updates) {
  return static_cast<double>(updates) / static_cast<double>(options.workers);
}

}  // namespace

Watch::Watch(Follower& follower, Recorder& recorder, const Prepared& ready, Unwanted unwanted)
    : follower_(follower),
      recorder_(recorder),
      ready_(ready),
      unwanted_(unwanted),
      layout_(ready.model->layout(job().job)),
      evaluations_(ready.test() != nullptr ? job().job.evaluate_every : 0,
                   mean_before(job().job, ready.running.updates_before)),
      checkpoints_(job().job.checkpoint_every,
                   mean_before(job().job, ready.running.updates_before)) {}

Watch::End Watch::run() {
  const End end = follow();
  if (end == End::ended) fetch();
  return end;
}

Watch::End Watch::follow() {
  while (true) {
    auto news = follower_.look();
    if (news) take(*news);
    if (news && news->begun && !std::exchange(has_begun_, true)) begin_at(news->mean_step);
    for (const std::string& line : follower_.take_news()) recorder_.warn(line);
    if (news) report_blocked(news->blocked_reason);
    if (!news || !news->failure.empty()) {
      outcome_.end = actor::Outcome::End::failed;
      outcome_.error = news ? news->failure : news.error().message;
      return news ? End::ended : follower_.is_dropped() ? End::dropped : End::lost;
    }
    const bool wanted = recorder_.on_progress(outcome_.last, news->missing);
    if (news->done) {
      end();
      count_the_end();
      return End::ended;
    }
    if (!wanted && !stopping_ && unwanted_ == Unwanted::goes_on) return End::left;
    if (!wanted) stop(actor::Outcome::End::stopped);
    if (is_time_up()) stop(actor::Outcome::End::reached);
    // Sent at every look, for members that join have not received it.
    if (stopping_) follower_.stop(outcome_.end == actor::Outcome::End::reached);
    if (!stopping_) evaluate_if_due(news->mean_step);
    if (!stopping_) save_if_due(news->mean_step);
    std::this_thread::sleep_for(pause());
  }
}

std::chrono::nanoseconds Watch::pause() {
  const double missing = evaluations_.next() - step_;
  if (stopping_ || !(rate_ > 0) || !std::isfinite(missing)) return look_every;
  // Half of the expected time, for the rate may change.
  const double seconds = std::clamp(missing / rate_ / 2, 0.0, 1.0);
  return std::clamp(std::chrono::nanoseconds{std::llround(seconds * 1e9)}, look_soonest,
                    look_every);
}

void Watch::report_blocked(const std::string& reason) {
  if (reason == blocked_reason_) return;
  if (!reason.empty())
    recorder_.warn("waits: " + reason);
  else
    recorder_.warn("goes on");
  blocked_reason_ = reason;
}

void Watch::take(const JobNews& news) {
  workers_lost_ = news.workers_lost;
  actor::Progress progress = news.progress;
  actor::Progress& last = outcome_.last;
  progress.test = std::move(last.test);
  progress.evaluated_at = last.evaluated_at;
  progress.evaluations = last.evaluations;
  progress.counts = last.counts;
  progress.updates += ready_.running.updates_before;
  last = std::move(progress);
  const auto now = Clock::now();
  const double passed = in_seconds(now - std::exchange(looked_, now));
  const double made = news.mean_step - std::exchange(step_, news.mean_step);
  if (passed > 0) rate_ = std::max(0.0, made / passed);
}

void Watch::begin_at(double step) {
  if (unwanted_ != Unwanted::goes_on) return;
  evaluations_ = actor::PeriodicTrigger{
      ready_.test() != nullptr ? job().job.evaluate_every : core::Step{0}, step};
  checkpoints_ = actor::PeriodicTrigger{job().job.checkpoint_every, step};
}

bool Watch::is_time_up() const {
  return job().job.time && outcome_.last.elapsed >= *job().job.time;
}

/// Notes why workers have ended before their last step where this program did not stop them: the
/// time was up, another program stopped the job, or nodes have left.
void Watch::end() {
  if (stopping_ || outcome_.last.spread.min >= job().job.steps) return;
  stop(is_time_up() ? actor::Outcome::End::reached : actor::Outcome::End::stopped);
}

void Watch::stop(actor::Outcome::End why) {
  if (!stopping_) outcome_.end = why;
  stopping_ = true;
}

void Watch::evaluate_if_due(double step) {
  const std::uint64_t passed = evaluations_.advance_to(step);
  if (passed == 0) return;
  outcome_.last.counts.due += passed;
  outcome_.last.counts.outrun += passed - 1;
  evaluate(step);
}

/// Evaluates the model as it is now, which may not be available while nodes come and go.
void Watch::evaluate(double step) {
  auto model = follower_.fetch(layout_, little);
  actor::Progress& last = outcome_.last;
  if (!model) {
    ++last.counts.missing;
    return;
  }
  last.test = ready_.tested(*model);
  last.evaluated_at = step;
  ++last.evaluations;
  const bool goes_on = recorder_.on_evaluated(last, *model);
  if (job().job.until && actor::reached(*job().job.until, last.test) &&
      keep_reached(*std::move(model)))
    return stop(actor::Outcome::End::reached);
  if (!goes_on && recorder_.is_patience_over()) stop(actor::Outcome::End::reached);
}

bool Watch::keep_reached(States model) {
  if (!ready_.job.checkpoint.empty())
    if (auto cut = follower_.fetch_cut(layout_, job(), little)) {
      if (!actor::reached(*job().job.until, ready_.tested(*cut))) return false;
      model = *std::move(cut);
    }
  reached_ = std::move(model);
  return true;
}

/// Counts the evaluations that were due at the end. The final one also stands for one due at the
/// last step.
void Watch::count_the_end() {
  actor::EvaluationCounts& counts = outcome_.last.counts;
  if (!stopping_) {
    const double end = static_cast<double>(job().job.steps);
    const auto every = static_cast<double>(std::max<core::Step>(1, job().job.evaluate_every));
    std::uint64_t passed = evaluations_.advance_to(std::max(step_, end));
    if (passed > 0 && std::fmod(end, every) == 0) --passed;
    counts.due += passed;
    counts.outrun += passed;
  }
  ++counts.due;
}

void Watch::save_if_due(double step) {
  if (checkpoints_.advance_to(step) > 0) must_save_ = true;
  if (must_save_) save(step);
}

void Watch::save(double step) {
  const auto began = Clock::now();
  if (began < save_again_) return;
  auto states = follower_.fetch_cut(layout_, job(), little);
  if (states) {
    must_save_ = false;
    recorder_.on_checkpoint(*states);
    return;
  }
  // Without this pause between tries the job would do nothing but pause.
  save_again_ = Clock::now() + std::max<Clock::duration>(5s, 10 * (Clock::now() - began));
  if (std::exchange(last_error_, states.error().message) != last_error_)
    print_error("no checkpoint at step " + std::to_string(std::llround(step)) + ": " + last_error_ +
                "; it is tried again");
}

/// Fetches a cut that a job can resume from where a checkpoint is asked for and can be fetched,
/// else the values alone.
Result<Watch::States> Watch::states(Patience patience, int tries) {
  if (ready_.job.checkpoint.empty()) return follower_.fetch(layout_, patience);
  auto cut = follower_.fetch_cut(layout_, job(), patience);
  while (!cut && --tries > 0) {
    std::this_thread::sleep_for(1s);
    cut = follower_.fetch_cut(layout_, job(), patience);
  }
  if (cut) return cut;
  print_error("no checkpoint of the last model: " + cut.error().message);
  return follower_.fetch(layout_, patience);
}

void Watch::fetch() {
  const bool has_failed = outcome_.end == actor::Outcome::End::failed;
  // A job that has failed has no consistent cut, and perhaps no whole model.
  const bool has_reached = !reached_.empty();
  auto model = has_reached  ? Result<States>{std::move(reached_)}
               : has_failed ? follower_.fetch(layout_, little)
                            : states(much, 3);
  if (!model) {
    outcome_.end = actor::Outcome::End::failed;
    if (!has_failed) outcome_.error = model.error().message;
    return;
  }
  outcome_.model = *std::move(model);
  if (has_failed) return;
  actor::Progress& last = outcome_.last;
  last.train = ready_.model->evaluate(ready_.weights_in(outcome_.model), ready_.data.train);
  if (ready_.test() != nullptr) last.test = ready_.tested(outcome_.model);
  if (!has_reached) last.evaluated_at = step_;
  ++last.evaluations;
  (void)recorder_.on_evaluated(last, outcome_.model);
}

}  // namespace starling::program
