#include "starling/tools/cluster/follow/job_watcher.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "starling/base/seconds.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds poll_interval = 200ms;
/// A shorter interval would load the nodes, because each poll asks all nodes of the job.
constexpr std::chrono::nanoseconds poll_interval_min = 10ms;

/// Returns the mean step of the workers if the steps of all together are `steps`.
double mean_step(const actor::JobOptions& options, std::uint64_t steps) {
  return static_cast<double>(steps) / static_cast<double>(options.workers);
}

}  // namespace

JobWatcher::JobWatcher(Follower& follower, Recorder& recorder, const RecordedRun& run,
                       OnLeave on_leave, std::function<void()> after_poll)
    : follower_(follower),
      recorder_(recorder),
      run_(run),
      on_leave_(on_leave),
      after_poll_(std::move(after_poll)),
      layout_(run.description->layout(job().job)),
      evaluations_(run.evaluator->has_test_data() ? job().job.evaluate_every : 0,
                   mean_step(job().job, run.resolved.steps_before)),
      checkpoints_(job().job.checkpoint_every, mean_step(job().job, run.resolved.steps_before)) {}

JobWatcher::End JobWatcher::run() {
  const End end = follow();
  if (end == End::ended) fetch_final_model();
  // The last poll may have come long after the end, because a node has evaluated a model meanwhile.
  if (ended_after_) outcome_.last.elapsed = *ended_after_;
  return end;
}

JobWatcher::End JobWatcher::follow() {
  while (true) {
    auto report = follower_.poll();
    if (after_poll_) after_poll_();
    if (report) update_from(*report);
    if (report && report->has_begun && !std::exchange(has_begun_, true))
      skip_triggers_before(report->mean_step);
    for (const std::string& line : follower_.take_events()) recorder_.warn(line);
    if (report) report_blocked(report->blocked_reason);
    if (!report || !report->failure.empty()) {
      outcome_.end = actor::Outcome::End::failed;
      outcome_.error = report ? report->failure : report.error().message;
      return report ? End::ended : follower_.is_dropped() ? End::dropped : End::unreachable;
    }
    const bool goes_on = recorder_.on_progress(outcome_.last, report->missing_nodes);
    if (report->is_done) {
      if (report->workers.have_equal_copies == false)
        recorder_.warn(
            "the workers' copies of the model are not equal to the last bit; processors of "
            "different "
            "kinds may round differently");
      set_early_end();
      count_final_evaluations();
      ended_after_ = report->ended_after;
      return End::ended;
    }
    if (!goes_on && !is_stopping_ && on_leave_ == OnLeave::leave_running) return End::goes_on;
    if (!goes_on) stop(actor::Outcome::End::stopped);
    if (is_time_up()) stop(actor::Outcome::End::reached);
    // The request is sent after every poll, because members that have joined since the last poll
    // have not received it.
    if (is_stopping_) follower_.stop_job(outcome_.end == actor::Outcome::End::reached);
    if (!is_stopping_) evaluate_if_due(report->mean_step);
    if (!is_stopping_) save_if_due(report->mean_step);
    std::this_thread::sleep_for(time_to_next_poll());
  }
}

std::chrono::nanoseconds JobWatcher::time_to_next_poll() {
  if (evaluation_due_at_) return poll_interval;
  const double steps_to_evaluation = evaluations_.next() - step_;
  if (is_stopping_ || !(steps_per_s_ > 0) || !std::isfinite(steps_to_evaluation))
    return poll_interval;
  // Waits half of the expected time, because the rate may change.
  const double seconds = std::clamp(steps_to_evaluation / steps_per_s_ / 2, 0.0, 1.0);
  return std::clamp(std::chrono::nanoseconds{std::llround(seconds * 1e9)}, poll_interval_min,
                    poll_interval);
}

void JobWatcher::report_blocked(const std::string& reason) {
  if (const auto notice = blocked_.update(reason, Clock::now())) recorder_.warn(*notice);
}

void JobWatcher::update_from(const JobReport& report) {
  workers_ = report.workers;
  has_made_all_steps_ =
      report.has_made_all_steps.value_or(report.progress.spread.min >= job().job.steps);
  actor::Progress progress = report.progress;
  actor::Progress& last = outcome_.last;
  progress.test = std::move(last.test);
  progress.evaluated_at = last.evaluated_at;
  progress.evaluated_epoch = last.evaluated_epoch;
  progress.evaluated_updates = last.evaluated_updates;
  progress.evaluations = last.evaluations;
  progress.counts = last.counts;
  progress.updates += run_.resolved.steps_before;
  last = std::move(progress);
  const auto now = Clock::now();
  const double elapsed_s = in_seconds(now - std::exchange(polled_at_, now));
  const double steps = report.mean_step - std::exchange(step_, report.mean_step);
  if (elapsed_s > 0) steps_per_s_ = std::max(0.0, steps / elapsed_s);
}

void JobWatcher::skip_triggers_before(double step) {
  if (on_leave_ != OnLeave::leave_running) return;
  evaluations_ = actor::PeriodicTrigger{
      run_.evaluator->has_test_data() ? job().job.evaluate_every : core::Step{0}, step};
  checkpoints_ = actor::PeriodicTrigger{job().job.checkpoint_every, step};
}

bool JobWatcher::is_time_up() const {
  return job().job.time && outcome_.last.elapsed >= *job().job.time;
}

void JobWatcher::set_early_end() {
  if (is_stopping_ || has_made_all_steps_) return;
  stop(is_time_up() ? actor::Outcome::End::reached : actor::Outcome::End::stopped);
}

void JobWatcher::stop(actor::Outcome::End end) {
  if (!is_stopping_) outcome_.end = end;
  is_stopping_ = true;
}

void JobWatcher::evaluate_if_due(double step) {
  const std::uint64_t due = evaluations_.advance_to(step);
  actor::EvaluationCounts& counts = outcome_.last.counts;
  counts.due += due;
  // One evaluation stands for all that are due at once, and for those that become due while it is
  // tried again.
  if (due > 0) counts.outrun += evaluation_due_at_ ? due : due - 1;
  if (due > 0 && !evaluation_due_at_) evaluation_due_at_ = Clock::now();
  if (!evaluation_due_at_) return;
  const bool is_evaluated = evaluate(step);
  const bool is_given_up =
      !is_evaluated && Clock::now() > *evaluation_due_at_ + evaluation_retry_time;
  if (is_given_up) {
    ++outcome_.last.counts.missing;
    if (std::exchange(warned_evaluation_error_, evaluation_error_) != evaluation_error_)
      recorder_.warn("the model of step " + std::to_string(std::llround(step)) +
                     " is not evaluated: " + evaluation_error_);
  }
  if (is_evaluated || is_given_up) evaluation_due_at_.reset();
}

bool JobWatcher::evaluate(double step) {
  auto model = follower_.fetch(layout_, one_try);
  evaluation_error_ = model ? std::string{} : model.error().message;
  if (!model) return false;
  auto metrics = run_.evaluator->on_test_data(*model);
  evaluation_error_ = run_.evaluator->error();
  if (metrics.empty() && !evaluation_error_.empty()) return false;
  actor::Progress& last = outcome_.last;
  last.test = std::move(metrics);
  last.evaluated_at = step;
  last.evaluated_epoch = last.data_epoch;
  last.evaluated_updates = last.updates;
  ++last.evaluations;
  actor::Progress evaluated = last;
  evaluated.elapsed += Clock::now() - polled_at_;
  const bool goes_on = recorder_.on_evaluated(evaluated, *model);
  if (job().job.until && actor::reached(*job().job.until, last.test) &&
      keep_model_at_target(*std::move(model)))
    stop(actor::Outcome::End::reached);
  else if (!goes_on && recorder_.is_patience_over())
    stop(actor::Outcome::End::reached);
  return true;
}

bool JobWatcher::keep_model_at_target(States model) {
  if (!run_.job.checkpoint.empty())
    if (auto cut = fetch_cut(short_timeouts)) {
      if (!actor::reached(*job().job.until, run_.evaluator->on_test_data(*cut))) return false;
      model = *std::move(cut);
    }
  model_at_target_ = std::move(model);
  return true;
}

void JobWatcher::count_final_evaluations() {
  actor::EvaluationCounts& counts = outcome_.last.counts;
  if (evaluation_due_at_) ++counts.missing;
  if (!is_stopping_) {
    const auto last_step = static_cast<double>(outcome_.last.last_step.value_or(job().job.steps));
    const std::uint64_t due = evaluations_.advance_to_end(std::max(step_, last_step));
    counts.due += due;
    counts.outrun += due;
  }
  ++counts.due;
}

void JobWatcher::save_if_due(double step) {
  if (checkpoints_.advance_to(step) > 0) must_save_ = true;
  if (must_save_) save(step);
}

void JobWatcher::save(double step) {
  const auto started_at = Clock::now();
  if (started_at < next_save_at_) return;
  const auto states = fetch_cut(short_timeouts);
  if (states) {
    must_save_ = false;
    recorder_.on_checkpoint(*states);
    return;
  }
  // Each try pauses the job: without this time between tries it would be paused most of the time.
  next_save_at_ = Clock::now() + std::max<Clock::duration>(5s, 10 * (Clock::now() - started_at));
  if (std::exchange(last_save_error_, states.error().message) != last_save_error_)
    print_error("no checkpoint at step " + std::to_string(std::llround(step)) + ": " +
                last_save_error_ + "; the program tries again");
}

Result<JobWatcher::States> JobWatcher::fetch_cut(FetchTimeouts timeouts) {
  auto cut = follower_.fetch_cut(layout_, job(), run_.resolved.train_samples, timeouts);
  if (!cut) return std::move(cut).error();
  recorder_.set_history(std::move(cut->former_deals), cut->updates);
  return std::move(cut->states);
}

Result<JobWatcher::States> JobWatcher::fetch_states(FetchTimeouts timeouts, int tries) {
  if (run_.job.checkpoint.empty()) return follower_.fetch(layout_, timeouts);
  auto cut = fetch_cut(timeouts);
  while (!cut && --tries > 0) {
    std::this_thread::sleep_for(1s);
    cut = fetch_cut(timeouts);
  }
  if (cut) return cut;
  print_error("no checkpoint of the last model: " + cut.error().message);
  return follower_.fetch(layout_, timeouts);
}

bool JobWatcher::evaluate_finally() {
  constexpr int tries_max = 3;
  const bool was_interrupted = is_interrupted();
  const Evaluator& evaluator = *run_.evaluator;
  actor::Progress& last = outcome_.last;
  last.train.clear();
  last.test.clear();
  for (int tries = 1;; ++tries) {
    std::string error;
    if (last.train.empty()) {
      last.train = evaluator.on_training_data(outcome_.model);
      error = evaluator.error();
    }
    if (error.empty() && evaluator.has_test_data()) {
      last.test = evaluator.on_test_data(outcome_.model);
      error = evaluator.error();
    }
    if (error.empty()) return true;
    if (tries == tries_max || (is_interrupted() && !was_interrupted)) {
      recorder_.warn("the last model is not evaluated: " + error);
      return false;
    }
    std::this_thread::sleep_for(1s);
    (void)follower_.poll();
  }
}

void JobWatcher::fetch_final_model() {
  const bool has_failed = outcome_.end == actor::Outcome::End::failed;
  // A failed job has no consistent cut, and perhaps not all ranges.
  const bool has_target_model = !model_at_target_.empty();
  auto model = has_target_model ? Result<States>{std::move(model_at_target_)}
               : has_failed     ? follower_.fetch(layout_, short_timeouts)
                                : fetch_states(long_timeouts, 3);
  if (!model) {
    outcome_.end = actor::Outcome::End::failed;
    if (!has_failed) outcome_.error = model.error().message;
    return;
  }
  outcome_.model = *std::move(model);
  if (has_failed) return;
  actor::Progress& last = outcome_.last;
  const bool is_evaluated = evaluate_finally();
  if (!has_target_model) last.evaluated_at = step_;
  if (!has_target_model) last.evaluated_epoch = last.data_epoch;
  if (!has_target_model) last.evaluated_updates = last.updates;
  ++(is_evaluated ? last.evaluations : last.counts.missing);
  (void)recorder_.on_evaluated(last, outcome_.model);
}

}  // namespace starling::program
