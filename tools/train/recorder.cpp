#include "starling/tools/train/recorder.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <iterator>
#include <utility>

#include "starling/engine/core/training/exchanges.hpp"
#include "starling/tools/job/target.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/registry/prediction_metrics.hpp"
#include "starling/tools/train/advice.hpp"
#include "starling/tools/train/checkpoint_changes.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/html_report.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

/// A job is stalled if it has made no update for this time and for three times the mean time of a
/// step.
constexpr auto stall_time_min = std::chrono::milliseconds{1500};

bool is_finite(const Weights& weights) {
  return std::visit(
      [](const auto& w) {
        return std::ranges::all_of(w, [](auto value) { return std::isfinite(value); });
      },
      weights);
}

bool are_finite(const models::Metrics& metrics) {
  return std::ranges::all_of(metrics,
                             [](const auto& metric) { return std::isfinite(metric.value); });
}

/// Returns true if a range has no ledger. Then no job can resume from the states.
bool lacks_ledger(const std::vector<core::RangeState>& states) {
  return std::ranges::any_of(states, [](const auto& state) { return state.ledger.empty(); });
}

/// Returns true if no update was made.
bool has_no_updates(const std::vector<core::RangeState>& states) {
  return std::ranges::all_of(states, [](const auto& state) { return state.updates == 0; });
}

/// Returns true if the exchange is itself a barrier like bsp, and the workers were stopped at
/// different steps, as within a round of `average`. All workers of a resumed bsp job begin at one
/// step.
bool are_at_different_steps(const std::vector<core::RangeState>& states,
                            const actor::JobOptions& job) {
  if (!core::exchange_type(job.exchange).is_barrier) return false;
  // Ranges of different rounds are no consistent model: check_initial_states() refuses them.
  const auto is_of_first_round = [&](const core::RangeState& state) {
    return state.round == states.front().round;
  };
  if (!std::ranges::all_of(states, is_of_first_round)) return false;
  const auto entries = actor::first_ledger_entries(states, job.workers);
  return std::ranges::any_of(entries,
                             [&](const auto& entry) { return entry.step != states.front().round; });
}

/// Returns true if the job may leave its best model instead of its last one.
bool may_keep_best(const Job& job) {
  return job.keep.value_or(job.patience > 0 ? Keep::best : Keep::last) == Keep::best;
}

bool has_reached_target(const RecordedRun& run, const actor::Outcome& outcome) {
  const auto& until = run.resolved.options.job.until;
  return until && outcome.end == actor::Outcome::End::reached &&
         actor::reached(*until, outcome.last.test);
}

/// An evaluator that computes in this process.
class LocalEvaluator final : public Evaluator {
 public:
  explicit LocalEvaluator(const PreparedRun& ready)
      : data_(ready.data), model_(ready.model), job_(ready.resolved.options.job) {}

  [[nodiscard]] bool has_test_data() const override { return data_.test.has_value(); }
  [[nodiscard]] models::Metrics on_training_data(
      const std::vector<core::RangeState>& states) const override {
    return model_->evaluate(model_->collect(job_, states), data_.train);
  }
  [[nodiscard]] models::Metrics on_test_data(
      const std::vector<core::RangeState>& states) const override {
    models::Metrics figures = model_->evaluate(model_->collect(job_, states), *data_.test);
    if (const auto& more = job_.extra_metrics)
      std::ranges::move(more(states), std::back_inserter(figures));
    return figures;
  }
  [[nodiscard]] std::optional<double> normalised_error(
      const std::vector<core::RangeState>& states) const override {
    return model_->normalised_error(model_->collect(job_, states), data_.train, job_.seed);
  }

 private:
  TrainAndTest data_;
  std::shared_ptr<const AnyModel> model_;
  actor::JobOptions job_;
};

}  // namespace

std::shared_ptr<const Evaluator> local_evaluator(const PreparedRun& ready) {
  return std::make_shared<const LocalEvaluator>(ready);
}

Recorder::Recorder(const RecordedRun& run, MetricsFile metrics)
    : run_(run),
      metrics_(std::move(metrics)),
      display_(run.job.quiet),
      selection_(run.job.patience, may_keep_best(run.job)) {}

bool Recorder::on_progress(const actor::Progress& progress, const std::string& missing) {
  display_.show(progress_line(run_.resolved, progress,
                              is_stalled(progress) ? std::optional{missing} : std::nullopt));
  record_result(metrics_.append(progress_json(run_.resolved, progress)));
  add_to_curves(progress);
  return error_.empty() && !is_interrupted();
}

bool Recorder::on_evaluated(const actor::Progress& progress, const States& states) {
  if (!run_.job.save.empty() && are_finite(progress.test))
    recent_models_[0] = std::exchange(recent_models_[1], states);
  if (!progress.test.empty()) {
    const bool has_loss = std::ranges::count(progress.test, "loss", &models::Metric::name) > 0;
    // A program that follows a job on nodes learns only now which metrics the model computes.
    record_result(check_test_loss(run_.job, run_.resolved.model, true, has_loss));
    if (const auto& until = run_.resolved.options.job.until;
        until && !is_prediction_metric(until->metric))
      record_result(check_target(*until, progress.test));
    losses_.add({progress.evaluated_at, progress.test.front().value});
    selection_.add_evaluation(progress.evaluated_at, progress.test, states);
    record_result(metrics_.append(evaluation_json(run_.resolved, progress)));
    curves_.add_evaluation(progress);
  }
  return error_.empty() && !is_interrupted() && !selection_.is_patience_over();
}

void Recorder::warn(const std::string& message) {
  display_.close();
  curves_.add_warning(message);
  print_error(message);
}

bool Recorder::on_checkpoint(const States& last_states,
                             const std::vector<std::shared_ptr<const core::Deal>>& deals) {
  if (run_.job.checkpoint.empty() || has_no_updates(last_states) || lacks_ledger(last_states))
    return false;
  States states = last_states;
  ResolvedJob writer = run_.resolved;
  if (former_deals_) writer.options.job.former_deals = *former_deals_;
  if (!deals.empty()) {
    auto former = end_deal(deals, writer.options, writer.train_samples, states);
    if (!former) return false;
    writer.options.job.former_deals = *std::move(former);
  }
  if (deals.empty() && are_at_different_steps(states, writer.options.job)) {
    auto even = change_workers(writer, writer, std::move(states));
    if (!even) return record_result(std::move(even).error());
    states = std::move(even->states);
    writer.options.job.former_deals = std::move(even->former_deals);
  }
  if (!actor::check_initial_states(run_.resolved.options.job, states) ||
      !is_finite(run_.weights_in(states)))
    return false;
  const bool written =
      record_result(write_checkpoint(run_.job.checkpoint, run_.notes, *run_.description, writer,
                                     run_.identity, states, updates_in(last_states)));
  if (written) checkpoint_ = run_.job.checkpoint;
  return written;
}

std::uint64_t Recorder::updates_in(const States& states) const {
  const ResolvedJob& job = run_.resolved;
  if (updates_made_) return job.updates_before + *updates_made_;
  std::uint64_t steps = 0;
  for (const auto& entry : actor::first_ledger_entries(states, job.options.job.workers))
    steps += entry.step;
  return job.updates_before + steps - std::min(steps, job.steps_before);
}

EndedJob Recorder::end(const actor::Outcome& outcome, const WorkerFates& workers) {
  display_.close();
  EndedJob ended{.job = run_.resolved, .outcome = outcome, .workers = workers};
  if (outcome.end == actor::Outcome::End::failed) ended.error = outcome.error;
  const bool has_last_model = !outcome.model.empty();
  const bool is_last_finite = has_last_model && is_finite(run_.weights_in(outcome.model));
  if (has_last_model && !is_last_finite && ended.error.empty())
    ended.error = "the model holds values that are not finite";
  // The model that reached the target may be between two rounds or two deals, in which case the
  // checkpoint has the states at the end.
  const bool is_checkpointed =
      is_last_finite && (on_checkpoint(outcome.model, outcome.deals) ||
                         (error_.empty() && !outcome.end_states.empty() &&
                          on_checkpoint(outcome.end_states, outcome.deals)));
  if (!run_.job.checkpoint.empty() && is_last_finite && !has_no_updates(outcome.model) &&
      !lacks_ledger(outcome.model) && !is_checkpointed && ended.error.empty() && error_.empty())
    warn("no checkpoint was written at the end: the workers have stopped between two rounds");
  if (ended.error.empty() && outcome.end == actor::Outcome::End::completed)
    ended.advice = find_advice(run_, outcome.last.test, losses_.points());
  const bool is_early = selection_.is_patience_over() &&
                        outcome.end == actor::Outcome::End::reached &&
                        !has_reached_target(run_, outcome);
  if (is_early) ended.patience = run_.job.patience;
  if (const auto& best = selection_.best()) ended.best = {best->step, best->loss};
  const States kept_states = choose_model(outcome, !ended.error.empty(), ended.kept);
  ended.has_model = !kept_states.empty();
  if (ended.error.empty() && ended.has_model)
    ended.normalised_error = run_.evaluator->normalised_error(kept_states);
  save(kept_states, ended.kept);
  ended.interrupted = is_interrupted();
  const bool is_written = (run_.job.save.empty() || !saved_.empty()) &&
                          (run_.job.checkpoint.empty() || is_checkpointed);
  ended.has_saved_all =
      has_last_model && (is_written || !is_last_finite || has_no_updates(outcome.model));
  ended.saved = saved_;
  ended.checkpoint = checkpoint_;
  if (ended.error.empty()) ended.error = error_;
  if (!record_result(write_timeline()) && ended.error.empty()) ended.error = error_;
  ended.trace = trace_path_;
  write_page(ended);
  record_result(metrics_.append(end_json(ended)));
  if (ended.error.empty()) ended.error = error_;
  return ended;
}

bool Recorder::is_stalled(const actor::Progress& progress) {
  if (std::exchange(updates_, progress.updates) != progress.updates)
    last_update_at_ = progress.elapsed;
  const ResolvedJob& resolved = run_.resolved;
  const std::uint64_t made = updates_ - std::min(updates_, resolved.steps_before);
  const core::Time idle = progress.elapsed - last_update_at_;
  const double steps =
      static_cast<double>(made) / static_cast<double>(resolved.options.job.workers);
  return idle > stall_time_min && steps * idle > 3.0 * last_update_at_;
}

bool Recorder::record_result(const Result<void>& result) {
  if (result) return true;
  if (error_.empty()) error_ = result.error().message;
  return false;
}

bool Recorder::has_finite_figures(const States& states, bool was_evaluated) const {
  if (has_no_updates(states)) return false;
  if (!is_finite(run_.weights_in(states))) return false;
  try {
    const Evaluator& evaluator = *run_.evaluator;
    const models::Metrics metrics = evaluator.has_test_data() ? evaluator.on_test_data(states)
                                                              : evaluator.on_training_data(states);
    // on_evaluated() has kept only models with finite figures.
    return evaluator.error().empty() ? are_finite(metrics) : was_evaluated;
  } catch (...) {
    return false;  // the user's model threw, which may be why the job failed
  }
}

Recorder::States Recorder::latest_finite(const States& last) const {
  if (run_.job.save.empty()) return {};
  for (const States* states : {&last, &recent_models_[1], &recent_models_[0]})
    if (has_finite_figures(*states, states != &last)) return *states;
  return {};
}

Recorder::States Recorder::choose_model(const actor::Outcome& outcome, bool has_failed,
                                        KeptModel& kept) const {
  const auto& best = selection_.best();
  const bool is_best =
      best && may_keep_best(run_.job) && (run_.job.keep || !has_reached_target(run_, outcome));
  if (!is_best && has_failed) return latest_finite(outcome.model);
  kept.step = outcome.last.evaluated_at;
  if (!is_best) return outcome.model;
  kept = {Keep::best, best->step, {}, best->test};
  if (has_failed) return best->states;
  const bool is_last = best->step == outcome.last.evaluated_at;
  kept.train = is_last ? outcome.last.train : run_.evaluator->on_training_data(best->states);
  return is_last ? outcome.model : best->states;
}

void Recorder::save(const States& states, const KeptModel& kept) {
  if (run_.job.save.empty() || states.empty()) return;
  ModelNotes notes = run_.notes;
  if (kept.step > 0) notes.kept = print(kept.which);
  notes.step = kept.step;
  if (record_result(save_model(run_.job.save, notes, *run_.description, run_.weights_in(states))))
    saved_ = run_.job.save;
}

void Recorder::add_to_curves(const actor::Progress& progress) {
  curves_.add_progress(progress, run_.resolved.options.job.workers, run_.resolved.steps_before);
}

Result<void> Recorder::write_timeline() {
  if (run_.job.trace.empty() || !trace_) return {};
  if (auto written = write_trace(run_.job.trace, run_.resolved, *trace_); !written) return written;
  trace_path_ = run_.job.trace;
  if (!trace_->warning.empty()) warn(trace_path_ + ": " + trace_->warning);
  return {};
}

void Recorder::write_page(EndedJob& ended) {
  if (run_.job.report.empty()) return;
  add_to_curves(ended.outcome.last);
  if (record_result(write_report(run_.job.report, ended, curves_))) ended.report = run_.job.report;
  if (ended.error.empty()) ended.error = error_;
}

}  // namespace starling::program
