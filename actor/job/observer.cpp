#include "starling/actor/job/observer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "starling/engine/core/training/exchanges.hpp"

namespace starling::actor {
namespace {

/// The request id of first_checkpoint_request().
constexpr std::uint64_t first_request_id = 1;
constexpr core::Time tick_period = std::chrono::milliseconds{20};
/// How long the observer of a failed job waits for the owners' ranges.
constexpr core::Time collect_timeout = std::chrono::seconds{5};

/// The most bytes of models that wait to be evaluated; one model may be larger.
constexpr std::size_t waiting_bytes_max = std::size_t{64} << 20U;
constexpr std::size_t waiting_evaluations_max = 8;

/// Returns the most models that may wait to be evaluated: 1 if the user has a stop_when, which is
/// to see a recent model.
std::size_t waiting_evaluations_limit(const core::Layout& layout, const JobOptions& options) {
  if (options.stop_when) return 1;
  const std::size_t bytes = std::max<std::size_t>(1, layout.size * sizeof(double));
  return std::clamp<std::size_t>(waiting_bytes_max / bytes, 1, waiting_evaluations_max);
}

double mean_step_of(const std::vector<core::LedgerEntry>& entries) {
  double sum = 0;
  for (const auto& entry : entries) sum += static_cast<double>(entry.step);
  return sum / static_cast<double>(entries.size());
}

/// Returns the first round after `round` that is saved.
core::Step next_saved_round(const JobOptions& options, core::Step round) {
  return (round / options.checkpoint_every + 1) * options.checkpoint_every;
}

/// Returns the sum of one time of all reports, in nanoseconds.
double sum_of(const std::vector<actor::Report>& reports, core::Time actor::Report::*field) {
  double sum = 0;
  for (const auto& report : reports) sum += static_cast<double>((report.*field).count());
  return sum;
}

}  // namespace

bool saves_rounds(const JobOptions& options) {
  return barrier::is_bsp(options.barrier) && options.on_checkpoint && options.checkpoint_every > 0;
}

core::Snapshot first_checkpoint_request(const JobOptions& options, core::Step round) {
  return {.request_id = first_request_id, .round = next_saved_round(options, round)};
}

ObserverHost::ObserverHost(caf::actor_config& config, JobContextPtr job_context,
                           const JobOptions& options,
                           const std::vector<core::LedgerEntry>& first_entries, Deliver deliver)
    : actor::ObserverActor::base(config),
      job_context_(std::move(job_context)),
      options_(options),
      deliver_(std::move(deliver)),
      reports_(options.workers),
      ended_at_(options.workers, core::Time::max()),
      running_workers_(options.workers),
      last_request_id_(first_request_id),
      waiting_evaluations_max_(waiting_evaluations_limit(job_context_->task->layout(), options)),
      next_progress_at_(options.progress_every),
      evaluations_(options.evaluate_every, mean_step_of(first_entries)),
      checkpoints_(saves_rounds(options) ? 0 : options.checkpoint_every,
                   mean_step_of(first_entries)) {
  for (std::size_t w = 0; w < reports_.size(); ++w) {
    reports_[w].step = first_entries.at(w).step;
    reports_[w].samples = first_entries[w].samples;
    steps_sum_ += first_entries[w].step;
    ++workers_at_step_[first_entries[w].step];
  }
  if (saves_rounds(options)) expect_round(first_request_id);
  set_exception_handler([this](const std::exception_ptr& thrown) -> caf::error {
    const auto fault = run_catching([&] { std::rethrow_exception(thrown); });
    deliver_({.end = Outcome::End::failed,
              .error = "observer: " + fault.value_or(""),
              .last = {},
              .model = {}});
    return caf::exit_reason::user_shutdown;
  });
}

actor::ObserverActor::behavior_type ObserverHost::make_behavior() {
  return {[this](const actor::DirectoryPtr& directory) { directory_ = directory; },
          [this](const actor::JobActorsPtr& actors) { actors_ = actors; },
          [this](actor::actors_atom) { return actors_; },
          [this](actor::start_atom) { on_tick(); },
          [this](const actor::Report& report) { on_report(report); },
          [this](const core::RangeState& state) { on_state(state); },
          [this](const actor::Evaluated& evaluated) { on_evaluated(evaluated); },
          [this](const actor::Failure& failure) { on_failure(failure); },
          [this](const core::Stop&) { stop(Outcome::End::stopped); },
          [this](actor::timer_atom) { on_tick(); },
          [this](actor::quit_atom) { quit(); }};
}

void ObserverHost::on_report(const actor::Report& report) {
  actor::Report& last = reports_.at(report.worker);
  if (last.is_done) return;
  count_step(last.step, report);
  steps_sum_ += report.step - last.step;
  computed_steps_ += report.step - last.step;
  last = report;
  loss_sum_ += report.loss_sum;
  loss_count_ += report.loss_count;
  if (!report.is_done) {
    actor::send(this, directory_->workers[report.worker], actor::report_credit_atom_v);
    return collect_what_is_due();
  }
  ended_at_[report.worker] = job_context_->now();
  if (--running_workers_ > 0) return collect_what_is_due();
  if (phase_ > Phase::stopping) return;
  count_final_evaluation();
  phase_ = Phase::collecting;
  collect(Purpose::outcome);
}

/// Updates the largest lag after a worker's step has grown from `from`. The others have sent their
/// reports before this one, so they had made those steps when this worker was at the step of its
/// report, or at the one before if the report is prompt. (The last report of a worker may be of a
/// step that it has left long ago, so it is compared with no later ones of others.) Once the worker
/// has made its last step, others no longer fall behind it, but the first report of each of them
/// after that shows how far it was behind then.
void ObserverHost::count_step(core::Step from, const actor::Report& report) {
  const core::Step left = report.is_prompt ? report.step - 1 : report.step;
  const core::Step highest = std::max(workers_at_step_.rbegin()->first, highest_ended_);
  if (highest > left) figures_.max_lag = std::max(figures_.max_lag, highest - left);
  ++workers_at_step_[report.step];
  if (const auto old = workers_at_step_.find(from); --old->second == 0) workers_at_step_.erase(old);
  if (!report.is_done) return;
  highest_ended_ = std::max(highest_ended_, report.step);
  if (const auto end = workers_at_step_.find(report.step); --end->second == 0)
    workers_at_step_.erase(end);
}

void ObserverHost::on_tick() {
  if (phase_ == Phase::over || !directory_) return;
  const core::Time now = job_context_->now();
  if (phase_ == Phase::running && options_.time && now >= *options_.time)
    stop(Outcome::End::reached);
  if (phase_ == Phase::running && options_.stop.stop_requested()) stop(Outcome::End::stopped);
  if (now >= give_up_at_) return finish();
  if (now >= next_progress_at_) {
    next_progress_at_ = now + options_.progress_every;
    report_progress();
  }
  actor::send_later(this, actor::ObserverActor{this}, tick_period, actor::timer_atom_v);
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
  for (const auto& worker : directory_->workers) actor::send(this, worker, actor::no_delays_atom_v);
}

void ObserverHost::on_failure(const actor::Failure& failure) {
  if (phase_ == Phase::over) return;
  if (outcome_.end != Outcome::End::failed) {
    outcome_.end = Outcome::End::failed;
    outcome_.error = failure.why;
  }
  // If an owner is lost, the model cannot be collected; in phase `evaluating` it was collected
  // before.
  if (failure.is_owner_lost || phase_ == Phase::evaluating) return finish();
  if (phase_ == Phase::collecting) return;
  phase_ = Phase::collecting;
  drop_evaluations();
  give_up_at_ = job_context_->now() + collect_timeout;
  collect(Purpose::outcome);
}

void ObserverHost::save(const std::vector<core::RangeState>& states) {
  if (options_.on_checkpoint)
    call("on_checkpoint", [&] { options_.on_checkpoint(states, job_context_->deals.get()); });
}

void ObserverHost::collect(Purpose purpose) {
  update_deal_figures();
  Collection collection{purpose, ++last_request_id_, mean_step(), figures_.data_epoch, {}, {}};
  collection.states.assign(job_context_->task->layout().ranges.size(), {});
  for (const auto& report : reports_)
    collection.acknowledged.push_back({0, report.step, report.samples});
  collections_.push_back(std::move(collection));
  for (const auto& owner : directory_->owners)
    actor::send(this, owner, core::Snapshot{last_request_id_});
}

/// Under bsp: requests the first round after `round` that is to be saved. Only one round is
/// requested at a time: if the disk is slower than the rounds, some rounds are not saved, so that
/// rounds neither wait for the disk nor queue in memory.
void ObserverHost::request_round_after(core::Step round) {
  expect_round(++last_request_id_);
  for (const auto& owner : directory_->owners)
    actor::send(this, owner, core::Snapshot{last_request_id_, next_saved_round(options_, round)});
}

void ObserverHost::expect_round(std::uint64_t request_id) {
  round_request_id_ = request_id;
  round_states_.assign(job_context_->task->layout().ranges.size(), {});
}

void ObserverHost::on_state(const core::RangeState& state) {
  if (phase_ == Phase::over) return;
  if (round_request_id_ != 0 && state.request_id == round_request_id_) {
    // The owner has completed a later round already. Skips one more round to be saved, so that the
    // request reaches the owners in time for the round after it.
    if (is_missing(state)) return request_round_after(state.round + options_.checkpoint_every);
    round_states_.at(state.range) = state;
    if (std::ranges::any_of(round_states_, is_missing)) return;
    save(round_states_);
    return request_round_after(state.round);
  }
  const auto at = std::ranges::find(collections_, state.request_id, &Collection::request_id);
  if (at == collections_.end()) return;
  at->states.at(state.range) = state;
  raise_to_acknowledged(at->states[state.range], at->acknowledged);
  if (std::ranges::any_of(at->states, is_missing)) return;
  if (at->purpose == Purpose::evaluate) return evaluate_next();
  Collection whole = std::move(*at);
  collections_.erase(at);
  on_collected(std::move(whole));
}

/// Raises a range's ledger entries to the acknowledged steps: if a worker's last steps did not
/// change the range, its owner does not know of these steps.
void ObserverHost::raise_to_acknowledged(core::RangeState& state,
                                         const std::vector<core::LedgerEntry>& acknowledged) const {
  // Under bsp, every step updates all ranges. If the model lags, its ledgers say what it contains.
  if (barrier::is_bsp(options_.barrier) || core::exchange_type(options_.exchange).model_lags)
    return;
  for (std::size_t w = 0; w < state.ledger.size(); ++w) {
    core::LedgerEntry& entry = state.ledger[w];
    if (entry.step >= acknowledged[w].step) continue;
    state.samples += acknowledged[w].samples - entry.samples;
    entry = acknowledged[w];
  }
}

void ObserverHost::on_collected(Collection collection) {
  if (collection.purpose == Purpose::save) return save(collection.states);
  outcome_.model = std::move(collection.states);
  begin_final_evaluation();
}

/// In central mode, first asks the coordinator for its figures, since it knows of every step.
void ObserverHost::begin_final_evaluation() {
  const auto begin = [this] {
    phase_ = Phase::evaluating;
    if (!reached_model_.empty())
      outcome_.end_states = std::exchange(outcome_.model, reached_model_);
    if (outcome_.end == Outcome::End::failed) return finish();
    evaluate_next();
  };
  ask_coordinator(begin);
}

void ObserverHost::report_progress() {
  if (!options_.on_progress || phase_ > Phase::stopping) return;
  const auto show = [this] {
    if (phase_ > Phase::stopping) return;
    update_figures();
    update_loss();
    call("on_progress", [&] {
      if (!options_.on_progress(figures_)) stop(Outcome::End::stopped);
    });
  };
  ask_coordinator(show);
}

void ObserverHost::ask_coordinator(std::function<void()> then) {
  if (!directory_->coordinator) return then();
  request(directory_->coordinator, std::chrono::seconds{2}, actor::steps_atom_v)
      .then(
          [this, then](const core::StepsReport& steps) {
            coordinated_ = steps;
            then();
          },
          [then](const caf::error&) { then(); });
}

void ObserverHost::finish() {
  if (phase_ == Phase::over) return;
  phase_ = Phase::over;
  update_figures();
  update_loss();
  outcome_.last = figures_;
  if (job_context_->visits)
    outcome_.last.longest_gap = job_context_->visits->longest_gap(figures_.elapsed);
  outcome_.deals = job_context_->deals.get();
  deliver_(std::move(outcome_));
}

double ObserverHost::mean_step() const {
  return static_cast<double>(steps_sum_) / static_cast<double>(reports_.size());
}

void ObserverHost::update_figures() {
  std::vector<core::Step> steps;
  core::Time active{};
  const core::Time now = job_context_->now();
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  barrier::TunedSum tuned;
  figures_.reads = {};
  for (std::size_t w = 0; w < reports_.size(); ++w) {
    steps.push_back(reports_[w].step);
    active += std::min(now, ended_at_[w]);
    draws += reports_[w].draws;
    passes += reports_[w].passes;
    tuned.add(reports_[w].tuned);
    figures_.reads += reports_[w].reads;
  }
  figures_.draws = coordinated_ ? coordinated_->draws : draws;
  figures_.passes = coordinated_ ? coordinated_->passes : passes;
  figures_.tuned = coordinated_ ? coordinated_->tuned : tuned;
  if (coordinated_) figures_.max_lag = coordinated_->max_lag;
  update_deal_figures();
  std::ranges::sort(steps);
  figures_.elapsed = std::min(now, *std::ranges::max_element(ended_at_));
  figures_.updates = std::accumulate(steps.begin(), steps.end(), std::uint64_t{0});
  figures_.spread = {steps.front(), steps[steps.size() / 2], steps.back()};
  const double wait_time = sum_of(reports_, &actor::Report::wait_time);
  const auto total = static_cast<double>(active.count());
  if (total > 0) figures_.waiting_share = wait_time / total;
  const double work_time = total - wait_time - sum_of(reports_, &actor::Report::delay_time);
  if (computed_steps_ > 0)
    figures_.mean_work_time =
        core::Time{std::llround(std::max(0.0, work_time) / static_cast<double>(computed_steps_))};
}

/// If deals are revised, updates how far the workers have got in them and, if batches are dynamic,
/// how many samples each worker takes at a step.
void ObserverHost::update_deal_figures() {
  figures_.batches.clear();
  std::vector<double> epochs;
  std::optional<core::Step> last_step;
  for (const auto& report : reports_) {
    if (report.deal.batch > 0) figures_.batches.push_back(report.deal.batch);
    if (report.deal.data_epoch) epochs.push_back(*report.deal.data_epoch);
    last_step = std::max(last_step, report.deal.last_step);
  }
  if (last_step) figures_.last_step = std::max(last_step, figures_.last_step);
  if (!epochs.empty())
    figures_.data_epoch =
        std::accumulate(epochs.begin(), epochs.end(), 0.0) / static_cast<double>(epochs.size());
}

void ObserverHost::update_loss(bool keeps_losses) {
  if (loss_count_ > 0) figures_.loss = loss_sum_ / static_cast<double>(loss_count_);
  if (keeps_losses) return;
  loss_sum_ = 0;
  loss_count_ = 0;
}

}  // namespace starling::actor
