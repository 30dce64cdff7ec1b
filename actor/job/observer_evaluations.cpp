/// The observer's evaluations: decides when they are due and which of them wait, and ends the job
/// if a result demands it.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/job/observer.hpp"
#include "starling/base/text.hpp"

namespace starling::actor {

/// Called after each report: requests the model for an evaluation and for a checkpoint if these
/// have become due since the last report. Evaluations that were due before the latest one are left
/// out.
void ObserverHost::collect_what_is_due() {
  if (phase_ != Phase::running) return;
  const double step = mean_step();
  if (const std::uint64_t due = evaluations_.advance_to(step); due > 0) {
    EvaluationCounts& counts = figures_.counts;
    counts.due += due;
    counts.outrun += due - 1;
    if (waiting_evaluations() < waiting_evaluations_max_)
      collect(Purpose::evaluate);
    else
      ++counts.crowded;
  }
  if (checkpoints_.advance_to(step) > 0 &&
      std::ranges::count(collections_, Purpose::save, &Collection::purpose) == 0)
    collect(Purpose::save);
}

/// Counts the evaluation at the end. If a periodic evaluation is due at the same step, both count
/// as one; other evaluations that have become due since the last report are left out.
void ObserverHost::count_final_evaluation() {
  EvaluationCounts& counts = figures_.counts;
  if (phase_ == Phase::running) {
    const std::uint64_t due = evaluations_.advance_to_end(mean_step());
    counts.due += due;
    counts.outrun += due;
  }
  ++counts.due;
}

std::size_t ObserverHost::waiting_evaluations() const {
  return static_cast<std::size_t>(
      std::ranges::count(collections_, Purpose::evaluate, &Collection::purpose));
}

/// Discards the waiting evaluations: a job that is stopped makes only the one at the end.
void ObserverHost::drop_evaluations() {
  figures_.counts.ended += waiting_evaluations();
  std::erase_if(collections_, [](const auto& c) { return c.purpose == Purpose::evaluate; });
}

/// Begins the next evaluation, unless one is being made: in the order of the requests, with the one
/// at the end last.
void ObserverHost::evaluate_next() {
  if (is_evaluating_ || phase_ == Phase::over) return;
  const auto next = std::ranges::find(collections_, Purpose::evaluate, &Collection::purpose);
  if (next != collections_.end()) {
    if (std::ranges::any_of(next->states, is_missing)) return;
    const Collection whole = std::move(*next);
    collections_.erase(next);
    return evaluate(whole.states, whole.step, whole.data_epoch, false);
  }
  if (phase_ != Phase::evaluating) return;
  update_deal_figures();
  if (reached_model_.empty())
    evaluate(outcome_.model, mean_step(), figures_.data_epoch, true);
  else
    evaluate(outcome_.model, evaluated_at_, evaluated_epoch_, true);
}

void ObserverHost::evaluate(std::vector<core::RangeState> states, double step,
                            std::optional<double> data_epoch, bool is_final) {
  is_evaluating_ = true;
  evaluated_model_ = std::move(states);
  evaluated_at_ = step;
  evaluated_epoch_ = data_epoch;
  update_figures();
  // Only `stop_when` receives the figures of this moment. Without it, nothing needs their loss.
  if (options_.stop_when && !is_final) update_loss(options_.on_progress != nullptr);
  Progress figures = figures_;
  figures.evaluated_at = step;
  job_context_->pool->submit([job_context = job_context_, self = actor::ObserverActor{this},
                              is_final, states = evaluated_model_, options = &options_,
                              figures = std::move(figures)](Scratch& scratch) noexcept {
    actor::Evaluated result{.is_final = is_final, .train = {}, .test = {}};
    const auto fault = run_catching([&] {
      if (!is_final && options->stop_when)
        result.meets_stop_criterion = options->stop_when(figures, states);
      result.test = job_context->task->evaluate(states, false, scratch);
      if (options->extra_metrics && !result.test.empty())
        std::ranges::move(options->extra_metrics(states), std::back_inserter(result.test));
      if (is_final && options->evaluate_train)
        result.train = job_context->task->evaluate(states, true, scratch);
    });
    if (fault)
      actor::post(self, actor::Failure{"evaluation: " + *fault});
    else
      actor::post(self, std::move(result));
  });
}

void ObserverHost::on_evaluated(const actor::Evaluated& evaluated) {
  is_evaluating_ = false;
  if (phase_ == Phase::over) return;
  ++figures_.evaluations;
  figures_.test = evaluated.test;
  figures_.evaluated_at = evaluated_at_;
  figures_.evaluated_epoch = evaluated_epoch_;
  if (!evaluated.train.empty()) figures_.train = evaluated.train;
  bool goes_on = true;
  if (options_.on_evaluated) {
    update_figures();
    update_loss(options_.on_progress != nullptr);
    call("on_evaluated", [&] { goes_on = options_.on_evaluated(figures_, evaluated_model_); });
  }
  if (evaluated.is_final) return finish();
  check_target();
  if (evaluated.meets_stop_criterion || !goes_on) stop(Outcome::End::reached);
  if (!goes_on) drop_evaluations();
  evaluated_model_.clear();
  evaluate_next();
}

/// Ends the job if the evaluated model has reached its target, or has no metric of that name. If
/// the workers have made all steps meanwhile, the outcome becomes `reached` instead of `completed`.
void ObserverHost::check_target() {
  const bool is_open = phase_ == Phase::running ||
                       (phase_ > Phase::stopping && outcome_.end == Outcome::End::completed);
  if (!options_.until || !is_open) return;
  std::vector<std::string> names;
  for (const models::Metric& metric : figures_.test) names.push_back(metric.name);
  if (!names.empty() && std::ranges::find(names, options_.until->metric) == names.end())
    return on_failure({"until: the model has no metric '" + options_.until->metric +
                       "' on this test data; " + suggest(options_.until->metric, names)});
  if (!reached(*options_.until, figures_.test)) return;
  reached_model_ = evaluated_model_;
  if (phase_ == Phase::running) return stop(Outcome::End::reached);
  outcome_.end = Outcome::End::reached;
  if (phase_ == Phase::evaluating)
    outcome_.end_states = std::exchange(outcome_.model, reached_model_);
  drop_evaluations();
}

}  // namespace starling::actor
