#include "starling/tools/train/recorder.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <iterator>
#include <utility>

#include "starling/engine/core/training/exchanges.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/advice.hpp"
#include "starling/tools/train/checkpoint_changes.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/html_report.hpp"

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

/// Returns true if a range has no ledger. Then no job can resume from the states.
bool lacks_ledger(const std::vector<core::RangeState>& states) {
  return std::ranges::any_of(states, [](const auto& state) { return state.ledger.empty(); });
}

/// Returns true if no update was made.
bool has_no_updates(const std::vector<core::RangeState>& states) {
  return std::ranges::all_of(states, [](const auto& state) { return state.updates == 0; });
}

/// True if the exchange is itself a barrier like bsp, and its workers were stopped at different
/// steps, as within a round of `average`. All workers of a resumed bsp job begin at one step.
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

bool has_reached_target(const PreparedRun& ready, const actor::Outcome& outcome) {
  const auto& until = ready.resolved.options.job.until;
  return until && outcome.end == actor::Outcome::End::reached &&
         actor::reached(*until, outcome.last.test);
}

}  // namespace

models::Metrics PreparedRun::evaluate_on_test_data(
    const std::vector<core::RangeState>& states) const {
  models::Metrics figures = model->evaluate(weights_in(states), *test());
  if (const auto& more = resolved.options.job.extra_metrics)
    std::ranges::move(more(states), std::back_inserter(figures));
  return figures;
}

Recorder::Recorder(const PreparedRun& ready, MetricsFile metrics)
    : ready_(ready),
      metrics_(std::move(metrics)),
      display_(ready.job.quiet),
      selection_(ready.job.patience, may_keep_best(ready.job)) {}

bool Recorder::on_progress(const actor::Progress& progress, const std::string& missing) {
  display_.show(progress_line(ready_.resolved, progress,
                              is_stalled(progress) ? std::optional{missing} : std::nullopt));
  record_result(metrics_.append(progress_json(ready_.resolved, progress)));
  add_to_curves(progress);
  return error_.empty() && !is_interrupted();
}

bool Recorder::on_evaluated(const actor::Progress& progress, const States& states) {
  if (!ready_.job.save.empty()) recent_models_[0] = std::exchange(recent_models_[1], states);
  if (!progress.test.empty()) {
    losses_.emplace_back(progress.evaluated_at, progress.test.front().value);
    selection_.add_evaluation(progress.evaluated_at, progress.test, states);
    record_result(metrics_.append(evaluation_json(ready_.resolved, progress)));
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
  if (ready_.job.checkpoint.empty() || has_no_updates(last_states) || lacks_ledger(last_states))
    return false;
  States states = last_states;
  ResolvedJob writer = ready_.resolved;
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
  if (!actor::check_initial_states(ready_.resolved.options.job, states) ||
      !is_finite(ready_.weights_in(states)))
    return false;
  const bool written =
      record_result(write_checkpoint(ready_.job.checkpoint, ready_.notes, *ready_.model, writer,
                                     ready_.identity, states, updates_in(last_states)));
  if (written) checkpoint_ = ready_.job.checkpoint;
  return written;
}

std::uint64_t Recorder::updates_in(const States& states) const {
  const ResolvedJob& job = ready_.resolved;
  if (updates_made_) return job.updates_before + *updates_made_;
  std::uint64_t steps = 0;
  for (const auto& entry : actor::first_ledger_entries(states, job.options.job.workers))
    steps += entry.step;
  return job.updates_before + steps - std::min(steps, job.steps_before);
}

EndedJob Recorder::end(const actor::Outcome& outcome, const WorkerFates& workers) {
  display_.close();
  EndedJob ended{.job = ready_.resolved, .outcome = outcome, .workers = workers};
  if (outcome.end == actor::Outcome::End::failed) ended.error = outcome.error;
  const bool has_last_model = !outcome.model.empty();
  const bool is_last_finite = has_last_model && is_finite(ready_.weights_in(outcome.model));
  if (has_last_model && !is_last_finite && ended.error.empty())
    ended.error = "the model holds values that are not finite";
  const bool is_checkpointed = is_last_finite && on_checkpoint(outcome.model, outcome.deals);
  if (!ready_.job.checkpoint.empty() && is_last_finite && !has_no_updates(outcome.model) &&
      !lacks_ledger(outcome.model) && !is_checkpointed && ended.error.empty() && error_.empty())
    warn("no checkpoint was written at the end: the workers have stopped between two rounds");
  if (ended.error.empty() && outcome.end == actor::Outcome::End::completed)
    ended.advice = find_advice(ready_, outcome.last.test, losses_);
  const bool is_early = selection_.is_patience_over() &&
                        outcome.end == actor::Outcome::End::reached &&
                        !has_reached_target(ready_, outcome);
  if (is_early) ended.patience = ready_.job.patience;
  if (const auto& best = selection_.best()) ended.best = {best->step, best->loss};
  const States kept_states = choose_model(outcome, !ended.error.empty(), ended.kept);
  ended.has_model = !kept_states.empty();
  if (ended.error.empty() && ended.has_model)
    ended.normalised_error = ready_.model->normalised_error(
        ready_.weights_in(kept_states), ready_.data.train, ready_.resolved.options.job.seed);
  save(kept_states, ended.kept);
  ended.interrupted = is_interrupted();
  const bool is_written = (ready_.job.save.empty() || !saved_.empty()) &&
                          (ready_.job.checkpoint.empty() || is_checkpointed);
  ended.is_kept =
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
  const ResolvedJob& resolved = ready_.resolved;
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

bool Recorder::has_finite_figures(const States& states) const {
  if (has_no_updates(states)) return false;
  const Weights w = ready_.weights_in(states);
  if (!is_finite(w)) return false;
  try {
    const AnyData& data = ready_.data.test ? *ready_.data.test : ready_.data.train;
    return std::ranges::all_of(ready_.model->evaluate(w, data),
                               [](const auto& metric) { return std::isfinite(metric.value); });
  } catch (const std::exception&) {
    return false;  // the user's model threw, which may be why the job failed
  }
}

Recorder::States Recorder::latest_finite(const States& last) const {
  if (ready_.job.save.empty()) return {};
  for (const States* states : {&last, &recent_models_[1], &recent_models_[0]})
    if (has_finite_figures(*states)) return *states;
  return {};
}

Recorder::States Recorder::choose_model(const actor::Outcome& outcome, bool has_failed,
                                        KeptModel& kept) const {
  const auto& best = selection_.best();
  const bool is_best = best && may_keep_best(ready_.job) &&
                       (ready_.job.keep || !has_reached_target(ready_, outcome));
  if (!is_best && has_failed) return latest_finite(outcome.model);
  kept.step = outcome.last.evaluated_at;
  if (!is_best) return outcome.model;
  kept = {Keep::best, best->step, outcome.last.train, best->test};
  if (best->step == outcome.last.evaluated_at && !has_failed) return outcome.model;
  if (!has_failed)
    kept.train = ready_.model->evaluate(ready_.weights_in(best->states), ready_.data.train);
  return best->states;
}

void Recorder::save(const States& states, const KeptModel& kept) {
  if (ready_.job.save.empty() || states.empty()) return;
  ModelNotes notes = ready_.notes;
  if (kept.step > 0) notes.kept = print(kept.which);
  notes.step = kept.step;
  if (record_result(save_model(ready_.job.save, notes, *ready_.model, ready_.weights_in(states))))
    saved_ = ready_.job.save;
}

void Recorder::add_to_curves(const actor::Progress& progress) {
  curves_.add_progress(progress, ready_.resolved.options.job.workers, ready_.resolved.steps_before);
}

Result<void> Recorder::write_timeline() {
  if (ready_.job.trace.empty() || !trace_) return {};
  if (auto written = write_trace(ready_.job.trace, ready_.resolved, *trace_); !written)
    return written;
  trace_path_ = ready_.job.trace;
  if (!trace_->warning.empty()) warn(trace_path_ + ": " + trace_->warning);
  return {};
}

void Recorder::write_page(EndedJob& ended) {
  if (ready_.job.report.empty()) return;
  add_to_curves(ended.outcome.last);
  if (record_result(write_report(ready_.job.report, ended, curves_)))
    ended.report = ready_.job.report;
  if (ended.error.empty()) ended.error = error_;
}

}  // namespace starling::program
