#include "starling/engine/live/observer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace starling::live {
namespace {

/// That of the first round to be saved, which nobody has to ask for.
constexpr std::uint64_t first_ticket = 1;
constexpr core::Time tick = std::chrono::milliseconds{20};
/// How long a failed job may take to hand over its model.
constexpr core::Time rescue_time = std::chrono::seconds{5};

double threshold(core::Step every) {
  return every == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(every);
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
  return barrier::is_bulk_synchronous(options.barrier) && options.on_checkpoint &&
         options.checkpoint_every > 0;
}

core::Snapshot first_saved(const JobOptions& options, core::Step round) {
  return {.ticket = first_ticket, .round = next_saved(options, round)};
}

ObserverHost::ObserverHost(caf::actor_config& config, ScenePtr scene, const JobOptions& options,
                           const std::vector<core::LedgerEntry>& first, Deliver deliver)
    : actor::ObserverActor::base(config),
      scene_(std::move(scene)),
      options_(options),
      deliver_(std::move(deliver)),
      reports_(options.workers),
      ended_(options.workers, core::Time::max()),
      running_(options.workers),
      last_ticket_(first_ticket),
      next_show_(options.progress_every),
      next_evaluation_(threshold(options.evaluate_every)),
      next_checkpoint_(threshold(saves_rounds(options) ? 0 : options.checkpoint_every)) {
  for (std::size_t w = 0; w < reports_.size(); ++w) {
    reports_[w].step = first.at(w).step;
    reports_[w].samples = first[w].samples;
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
  last = report;
  loss_sum_ += report.loss_sum;
  losses_ += report.losses;
  computed_ += report.losses;
  if (!report.done) {
    actor::send(this, directory_->workers[report.worker], actor::credit_atom_v);
    return;
  }
  ended_[report.worker] = scene_->now();
  if (--running_ == 0 && phase_ <= Phase::stopping) {
    phase_ = Phase::collecting;
    collect({.last = true});
  }
}

/// The largest lag is of workers that run: who is done has no step to wait for.
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
  const core::Time now = scene_->now();
  if (phase_ == Phase::running && options_.time && now >= *options_.time)
    stop(Outcome::End::reached);
  if (phase_ == Phase::running && options_.stop.stop_requested()) stop(Outcome::End::stopped);
  if (now >= give_up_) return finish();
  if (now >= next_show_) {
    next_show_ = now + options_.progress_every;
    show();
  }
  if (phase_ == Phase::running) {
    const double at = mean_step();
    Purpose purpose{.evaluate = at >= next_evaluation_ && !evaluating_,
                    .save = at >= next_checkpoint_};
    if ((purpose.evaluate || purpose.save) && !purpose_) collect(purpose);
  }
  actor::send_later(this, actor::ObserverActor{this}, tick, actor::tick_atom_v);
}

void ObserverHost::stop(Outcome::End why) {
  if (phase_ != Phase::running) return;
  phase_ = Phase::stopping;
  outcome_.end = why;
  if (directory_->coordinator)
    actor::send(this, directory_->coordinator, core::Stop{});
  else
    for (const auto& worker : directory_->workers) actor::send(this, worker, core::Stop{});
  for (const auto& worker : directory_->workers) actor::send(this, worker, actor::hurry_atom_v);
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
  give_up_ = scene_->now() + rescue_time;
  collect({.last = true});
}

/// Runs a callback of the user's; what it throws ends the job.
template <class F>
void ObserverHost::call(std::string_view callback, F&& run) {
  if (auto fault = fault_of(std::forward<F>(run)))
    on_failure({std::string{callback} + ": " + *std::move(fault)});
}

void ObserverHost::save(const std::vector<core::RangeState>& states) {
  if (options_.on_checkpoint) call("on_checkpoint", [&] { options_.on_checkpoint(states); });
}

void ObserverHost::collect(Purpose purpose) {
  const bool under_way = purpose_.has_value();
  if (under_way) purpose.save = purpose.save || purpose_->save;
  purpose_ = purpose;
  ticket_ = ++last_ticket_;  // answers to an earlier request no longer count
  states_.assign(scene_->task->layout().ranges.size(), {});
  settled_.clear();
  for (const auto& report : reports_) settled_.push_back({0, report.step, report.samples});
  if (purpose.evaluate) {
    figures_.evaluated_at = mean_step();
    next_evaluation_ = figures_.evaluated_at + threshold(options_.evaluate_every);
  }
  if (purpose.save) next_checkpoint_ = mean_step() + threshold(options_.checkpoint_every);
  for (const auto& owner : directory_->owners) actor::send(this, owner, core::Snapshot{ticket_});
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
  round_states_.assign(scene_->task->layout().ranges.size(), {});
}

void ObserverHost::on_state(const core::RangeState& state) {
  if (phase_ == Phase::over) return;
  const auto is_missing = [](const core::RangeState& s) { return !s.value.buffer; };
  if (round_ticket_ != 0 && state.ticket == round_ticket_) {
    // Too late for that round; the next but one leaves time to ask.
    if (is_missing(state)) return ask_for_round(state.round + options_.checkpoint_every);
    round_states_.at(state.range) = state;
    if (std::ranges::any_of(round_states_, is_missing)) return;
    save(round_states_);
    return ask_for_round(state.round);
  }
  if (!purpose_ || state.ticket != ticket_) return;
  states_.at(state.range) = state;
  settle(states_[state.range].ledger);
  if (std::ranges::none_of(states_, is_missing)) collected();
}

/// A range that a worker's last steps did not concern knows of them only what others say.
void ObserverHost::settle(std::vector<core::LedgerEntry>& ledger) const {
  if (barrier::is_bulk_synchronous(options_.barrier)) return;  // there, every step concerns all
  for (std::size_t w = 0; w < ledger.size(); ++w)
    if (ledger[w].step < settled_[w].step) ledger[w] = settled_[w];
}

void ObserverHost::collected() {
  const Purpose purpose = *std::exchange(purpose_, std::nullopt);
  auto states = std::exchange(states_, {});  // kept no longer than needed: they may be large
  if (purpose.last && !reached_.empty()) states = reached_;
  if (purpose.last) outcome_.model = states;
  if (purpose.save) save(states);
  if (purpose.last) {
    ask_coordinator();
  } else if (purpose.evaluate) {
    evaluated_ = std::move(states);
    evaluate(false);
  }
}

/// In central mode the coordinator saw every step; its figures replace the reported ones.
void ObserverHost::ask_coordinator() {
  if (!directory_->coordinator) return evaluate(true);
  request(directory_->coordinator, std::chrono::seconds{2}, actor::step_atom_v)
      .then(
          [this](const actor::StepsReport& steps) {
            figures_.max_lag = steps.spread_max;
            figures_.draws = steps.draws;
            figures_.passes = steps.passes;
            evaluate(true);
          },
          [this](const caf::error&) { evaluate(true); });
}

void ObserverHost::evaluate(bool last) {
  if (last) {
    phase_ = Phase::evaluating;
    if (outcome_.end == Outcome::End::failed) return finish();
  }
  evaluating_ = true;
  const StopWhen* stop_when = !last && options_.stop_when ? &options_.stop_when : nullptr;
  if (stop_when != nullptr) update_figures();
  scene_->pool->submit([scene = scene_, self = actor::ObserverActor{this}, last,
                        states = last ? outcome_.model : evaluated_, stop_when, figures = figures_,
                        train = last && options_.evaluate_train](Scratch& scratch) noexcept {
    actor::Evaluated result{.final = last, .train = {}, .test = {}};
    const auto fault = fault_of([&] {
      if (stop_when != nullptr) result.stop = (*stop_when)(figures, states);
      result.test = scene->task->evaluate(states, false, scratch);
      if (train) result.train = scene->task->evaluate(states, true, scratch);
    });
    if (fault)
      actor::post(self, actor::Failure{"evaluation: " + *fault});
    else
      actor::post(self, std::move(result));
  });
}

void ObserverHost::on_evaluated(const actor::Evaluated& evaluated) {
  evaluating_ = false;
  if (phase_ == Phase::over) return;
  ++figures_.evaluations;
  figures_.test = evaluated.test;
  if (!evaluated.train.empty()) figures_.train = evaluated.train;
  if (evaluated.final) {
    if (reached_.empty()) figures_.evaluated_at = mean_step();
    return finish();
  }
  if (evaluated.stop) stop(Outcome::End::reached);
  check_target();
  evaluated_.clear();
}

void ObserverHost::check_target() {
  if (!options_.until || phase_ != Phase::running || !reached(*options_.until, figures_.test))
    return;
  reached_ = evaluated_;
  stop(Outcome::End::reached);
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
  double sum = 0;
  for (const auto& report : reports_) sum += static_cast<double>(report.step);
  return sum / static_cast<double>(reports_.size());
}

void ObserverHost::update_figures() {
  std::vector<core::Step> steps;
  core::Time active{};
  const core::Time now = scene_->now();
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

}  // namespace starling::live
