#include "starling/actor/job/observer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace starling::actor {
namespace {

/// The ticket of the first round to be saved, which needs no request.
constexpr std::uint64_t first_ticket = 1;
constexpr core::Time tick = std::chrono::milliseconds{20};
/// How long a failed job may take to hand over its model.
constexpr core::Time rescue_time = std::chrono::seconds{5};

/// Models that wait to be evaluated take no more memory than this, unless one alone does.
constexpr std::size_t waiting_bytes_max = std::size_t{64} << 20U;
constexpr std::size_t waiting_models_max = 8;

/// A criterion of the user's is asked about the latest model, not about one that has waited long.
std::size_t models_that_may_wait(const core::Layout& layout, const JobOptions& options) {
  if (options.stop_when) return 1;
  const std::size_t bytes = std::max<std::size_t>(1, layout.size * sizeof(double));
  return std::clamp<std::size_t>(waiting_bytes_max / bytes, 1, waiting_models_max);
}

double mean_step_of(const std::vector<core::LedgerEntry>& first) {
  double sum = 0;
  for (const auto& entry : first) sum += static_cast<double>(entry.step);
  return sum / static_cast<double>(first.size());
}

core::Step next_saved(const JobOptions& options, core::Step round) {
  return (round / options.checkpoint_every + 1) * options.checkpoint_every;
}

double sum_of(const std::vector<actor::Report>& reports, core::Time actor::Report::*field) {
  double sum = 0;
  for (const auto& report : reports) sum += static_cast<double>((report.*field).count());
  return sum;
}

}  // namespace

bool saves_rounds(const JobOptions& options) {
  return barrier::is_bsp(options.barrier) && options.on_checkpoint && options.checkpoint_every > 0;
}

core::Snapshot first_saved(const JobOptions& options, core::Step round) {
  return {.ticket = first_ticket, .round = next_saved(options, round)};
}

ObserverHost::ObserverHost(caf::actor_config& config, JobContextPtr job_context,
                           const JobOptions& options, const std::vector<core::LedgerEntry>& first,
                           Deliver deliver)
    : actor::ObserverActor::base(config),
      job_context_(std::move(job_context)),
      options_(options),
      deliver_(std::move(deliver)),
      reports_(options.workers),
      ended_(options.workers, core::Time::max()),
      running_(options.workers),
      last_ticket_(first_ticket),
      waiting_max_(models_that_may_wait(job_context_->task->layout(), options)),
      next_show_(options.progress_every),
      evaluations_(options.evaluate_every, mean_step_of(first)),
      checkpoints_(saves_rounds(options) ? 0 : options.checkpoint_every, mean_step_of(first)) {
  for (std::size_t w = 0; w < reports_.size(); ++w) {
    reports_[w].step = first.at(w).step;
    reports_[w].samples = first[w].samples;
    steps_sum_ += first[w].step;
    ++standing_[first[w].step];
  }
  if (saves_rounds(options)) await_round(first_ticket);
  set_exception_handler([this](const std::exception_ptr& thrown) -> caf::error {
    const auto fault = fault_of([&] { std::rethrow_exception(thrown); });
    deliver_({.end = Outcome::End::failed,
              .error = "observer: " + fault.value_or(""),
              .last = {},
              .model = {}});
    return caf::exit_reason::user_shutdown;
  });
}

actor::ObserverActor::behavior_type ObserverHost::make_behavior() {
  return {[this](const actor::DirectoryPtr& directory) { directory_ = directory; },
          [this](actor::start_atom) { on_tick(); },
          [this](const actor::Report& report) { on_report(report); },
          [this](const core::RangeState& state) { on_state(state); },
          [this](const actor::Evaluated& evaluated) { on_evaluated(evaluated); },
          [this](const actor::Failure& failure) { on_failure(failure); },
          [this](const core::Stop&) { stop(Outcome::End::stopped); },
          [this](actor::tick_atom) { on_tick(); },
          [this](actor::quit_atom) { quit(); }};
}

void ObserverHost::on_report(const actor::Report& report) {
  actor::Report& last = reports_.at(report.worker);
  if (last.done) return;
  note_step(last.step, report);
  steps_sum_ += report.step - last.step;
  last = report;
  loss_sum_ += report.loss_sum;
  losses_ += report.losses;
  computed_ += report.losses;
  if (!report.done) {
    actor::send(this, directory_->workers[report.worker], actor::report_credit_atom_v);
    return look_for_what_is_due();
  }
  ended_[report.worker] = job_context_->now();
  if (--running_ > 0) return look_for_what_is_due();
  if (phase_ > Phase::stopping) return;
  count_the_end();
  phase_ = Phase::collecting;
  collect(Purpose::last);
}

/// Counts the largest lag over workers that run: a worker that is done has no step to wait for.
void ObserverHost::note_step(core::Step from, const actor::Report& report) {
  ++standing_[report.step];
  if (const auto old = standing_.find(from); --old->second == 0) standing_.erase(old);
  figures_.max_lag =
      std::max(figures_.max_lag, standing_.rbegin()->first - standing_.begin()->first);
  if (!report.done) return;
  if (const auto end = standing_.find(report.step); --end->second == 0) standing_.erase(end);
}

void ObserverHost::on_tick() {
  if (phase_ == Phase::over || !directory_) return;
  const core::Time now = job_context_->now();
  if (phase_ == Phase::running && options_.time && now >= *options_.time)
    stop(Outcome::End::reached);
  if (phase_ == Phase::running && options_.stop.stop_requested()) stop(Outcome::End::stopped);
  if (now >= give_up_) return finish();
  if (now >= next_show_) {
    next_show_ = now + options_.progress_every;
    show();
  }
  actor::send_later(this, actor::ObserverActor{this}, tick, actor::tick_atom_v);
}

void ObserverHost::stop(Outcome::End why) {
  if (phase_ != Phase::running) return;
  phase_ = Phase::stopping;
  outcome_.end = why;
  drop_evaluations();
  if (directory_->coordinator)
    actor::send(this, directory_->coordinator, core::Stop{});
  else
    for (const auto& worker : directory_->workers) actor::send(this, worker, core::Stop{});
  for (const auto& worker : directory_->workers)
    actor::send(this, worker, actor::skip_delays_atom_v);
}

void ObserverHost::on_failure(const actor::Failure& failure) {
  if (phase_ == Phase::over) return;
  if (outcome_.end != Outcome::End::failed) {
    outcome_.end = Outcome::End::failed;
    outcome_.error = failure.why;
  }
  // Where an owner is lost there is nothing whole to wait for; where the model is evaluated it is
  // here already.
  if (failure.lost || phase_ == Phase::evaluating) return finish();
  if (phase_ == Phase::collecting) return;
  phase_ = Phase::collecting;
  drop_evaluations();
  give_up_ = job_context_->now() + rescue_time;
  collect(Purpose::last);
}

void ObserverHost::save(const std::vector<core::RangeState>& states) {
  if (options_.on_checkpoint) call("on_checkpoint", [&] { options_.on_checkpoint(states); });
}

void ObserverHost::collect(Purpose purpose) {
  Collection collection{purpose, ++last_ticket_, mean_step(), {}, {}};
  collection.states.assign(job_context_->task->layout().ranges.size(), {});
  for (const auto& report : reports_)
    collection.settled.push_back({0, report.step, report.samples});
  collections_.push_back(std::move(collection));
  for (const auto& owner : directory_->owners)
    actor::send(this, owner, core::Snapshot{last_ticket_});
}

/// Bulk-synchronous jobs: asks for the first round after `round` that is to be saved. One at a
/// time: a disk that is slower than the rounds skips some, and neither holds them up nor queues
/// them.
void ObserverHost::ask_for_round(core::Step round) {
  await_round(++last_ticket_);
  for (const auto& owner : directory_->owners)
    actor::send(this, owner, core::Snapshot{last_ticket_, next_saved(options_, round)});
}

void ObserverHost::await_round(std::uint64_t ticket) {
  round_ticket_ = ticket;
  round_states_.assign(job_context_->task->layout().ranges.size(), {});
}

void ObserverHost::on_state(const core::RangeState& state) {
  if (phase_ == Phase::over) return;
  if (round_ticket_ != 0 && state.ticket == round_ticket_) {
    // Too late for that round; the next but one leaves time to ask.
    if (is_missing(state)) return ask_for_round(state.round + options_.checkpoint_every);
    round_states_.at(state.range) = state;
    if (std::ranges::any_of(round_states_, is_missing)) return;
    save(round_states_);
    return ask_for_round(state.round);
  }
  const auto at = std::ranges::find(collections_, state.ticket, &Collection::ticket);
  if (at == collections_.end()) return;
  at->states.at(state.range) = state;
  settle(at->states[state.range].ledger, at->settled);
  if (std::ranges::any_of(at->states, is_missing)) return;
  if (at->purpose == Purpose::evaluate) return evaluate_next();
  Collection whole = std::move(*at);
  collections_.erase(at);
  collected(std::move(whole));
}

/// Raises ledger entries to the settled steps: a range that a worker's last steps did not concern
/// learns of them only from here.
void ObserverHost::settle(std::vector<core::LedgerEntry>& ledger,
                          const std::vector<core::LedgerEntry>& settled) const {
  if (barrier::is_bsp(options_.barrier)) return;  // there, every step concerns all
  for (std::size_t w = 0; w < ledger.size(); ++w)
    if (ledger[w].step < settled[w].step) ledger[w] = settled[w];
}

void ObserverHost::collected(Collection collection) {
  if (collection.purpose == Purpose::save) return save(collection.states);
  outcome_.model = std::move(collection.states);
  ask_coordinator();
}

/// In central mode the coordinator saw every step; its figures replace the reported ones.
void ObserverHost::ask_coordinator() {
  const auto begin = [this] {
    phase_ = Phase::evaluating;
    if (!reached_.empty()) outcome_.model = reached_;
    if (outcome_.end == Outcome::End::failed) return finish();
    evaluate_next();
  };
  if (!directory_->coordinator) return begin();
  request(directory_->coordinator, std::chrono::seconds{2}, actor::step_atom_v)
      .then(
          [this, begin](const actor::StepsReport& steps) {
            figures_.max_lag = steps.spread_max;
            figures_.draws = steps.draws;
            figures_.passes = steps.passes;
            begin();
          },
          [begin](const caf::error&) { begin(); });
}

void ObserverHost::show() {
  if (!options_.on_progress || phase_ > Phase::stopping) return;
  update_figures();
  take_loss();
  call("on_progress", [&] {
    if (!options_.on_progress(figures_)) stop(Outcome::End::stopped);
  });
}

void ObserverHost::finish() {
  if (phase_ == Phase::over) return;
  phase_ = Phase::over;
  update_figures();
  take_loss();
  outcome_.last = figures_;
  deliver_(std::move(outcome_));
}

double ObserverHost::mean_step() const {
  return static_cast<double>(steps_sum_) / static_cast<double>(reports_.size());
}

void ObserverHost::update_figures() {
  std::vector<core::Step> steps;
  core::Time active{};
  const core::Time now = job_context_->now();
  const bool counted_centrally = directory_ && directory_->coordinator && phase_ == Phase::over;
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  for (std::size_t w = 0; w < reports_.size(); ++w) {
    steps.push_back(reports_[w].step);
    active += std::min(now, ended_[w]);
    draws += reports_[w].draws;
    passes += reports_[w].passes;
  }
  if (!counted_centrally) {
    figures_.draws = draws;
    figures_.passes = passes;
  }
  std::ranges::sort(steps);
  figures_.elapsed = std::min(now, *std::ranges::max_element(ended_));
  figures_.updates = std::accumulate(steps.begin(), steps.end(), std::uint64_t{0});
  figures_.spread = {steps.front(), steps[steps.size() / 2], steps.back()};
  const double waited = sum_of(reports_, &actor::Report::waited);
  const auto all = static_cast<double>(active.count());
  if (all > 0) figures_.waiting_share = waited / all;
  const double worked = all - waited - sum_of(reports_, &actor::Report::delayed);
  if (computed_ > 0)
    figures_.overhead =
        core::Time{std::llround(std::max(0.0, worked) / static_cast<double>(computed_))};
}

void ObserverHost::take_loss() {
  if (losses_ > 0) figures_.loss = std::exchange(loss_sum_, 0) / static_cast<double>(losses_);
  losses_ = 0;
}

}  // namespace starling::actor
