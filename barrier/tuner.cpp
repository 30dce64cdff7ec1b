#include "starling/barrier/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "starling/base/text.hpp"

namespace starling::barrier {
namespace {

/// The limits of log2(beta). With the least, a worker draws one other in 256 steps.
constexpr double waiting_sample_level_min = -8;
constexpr double staleness_sample_level_min = 2;
const double sample_level_max = std::log2(Tuned::sample_max);

/// The sample size with which a worker begins, as log2(beta).
constexpr double waiting_sample_level_first = 0;
constexpr double staleness_sample_level_first = 3;
constexpr double progress_sample_level_first = -2;

/// A worker ahead of all others has odds of waiting, the ratio of waiting to working, that are
/// larger by this share, and a worker behind all others has odds that are smaller by it. So workers
/// of equal speed stay together.
constexpr double lead_gain = 0.5;
/// How far an error of 1 moves log2(beta) under a target of waiting, and log2(1 + s) under a target
/// of staleness.
constexpr double waiting_gain = 0.05;
constexpr double staleness_gain = 0.15;
/// How far log2(1 + s) moves if the error rises by 1.
constexpr double staleness_damping = 0.45;
/// How far a draw raises log2(beta) if the bound s does not hold among the drawn workers
/// (steer_staleness()), and lowers it if the bound holds.
constexpr double sample_rise = 0.1;
constexpr double sample_fall = sample_rise / 8;
/// The weight of one step in the smoothed step time.
constexpr double step_time_weight = 0.1;
/// A step that takes longer, as a multiple of the smoothed step time, counts as this long.
constexpr double step_time_ratio_max = 8;
/// A draw of this many answers has half the weight in the smoothed lag and lead.
constexpr double lag_window = 16;
/// A worker whose smoothed lag is below this is the slowest: no beta makes it wait.
constexpr double no_lag = 0.05;

/// Progress: the first share of waiting at which steer_waiting() aims, and the limits of this
/// share. Then the ratio at which a worker aims: the smoothed descent at the end of a move, divided
/// by that at its start.
constexpr double share_first = 0.02;
constexpr double share_min = 0.01;
constexpr double share_max = 0.5;
constexpr double descent_ratio = 0.2;
/// How many octaves the share moves in a step per unit of the ratio's error.
constexpr double share_gain = 0.1;
/// The weight of one step in the smoothed descents.
constexpr double descent_weight = 1.0 / 16;

/// Returns the share of waiting that a worker with this lead aims at, if all workers together aim
/// at `target`.
double own_target(double target, double lead) {
  const double odds = target / (1 - target) * (1 + lead_gain * lead);
  return odds / (1 + odds);
}

/// Waiting: an integral controller on log2(beta). A step's error is the time that the worker might
/// have waited by its own target and did not, in units of what the job's target allows in one step.
void steer_waiting(double target, double own_target, TunerState& state, const Observation& seen) {
  if (seen.step_time <= 0) return;
  // The mean is that of the steps before: a mean that contains this step would let long steps count
  // for less than short ones.
  const double mean = state.step_time.value_or(seen.step_time);
  state.step_time = mean + step_time_weight * (seen.step_time - mean);
  // The step may contain a pause of the job, so its time is bounded.
  const double step_time = std::min(seen.step_time, step_time_ratio_max * mean);
  const double allowed = own_target * (step_time + seen.waited);
  const double error = (allowed - seen.waited) / (target * mean);
  if (error > 0 && state.mean_lag.value_or(1) < no_lag) return;
  state.sample_level = std::clamp(state.sample_level + waiting_gain * error,
                                  waiting_sample_level_min, sample_level_max);
}

/// Returns `value` moved towards `seen` by the weight of one step.
double smooth(double value, double seen) { return value + descent_weight * (seen - value); }

/// Progress: more waiting while moves of the model go too far, less while they do not. beta follows
/// the target at once, because the share of waiting is about in proportion to it.
void steer_progress(TunerState& state, const Observation& seen) {
  if (seen.descent && std::isfinite(seen.descent->at_start) &&
      std::isfinite(seen.descent->at_end)) {
    state.descent = {smooth(state.descent.at_start, seen.descent->at_start),
                     smooth(state.descent.at_end, seen.descent->at_end)};
    const double ratio = state.descent.at_start > 0
                             ? std::clamp(state.descent.at_end / state.descent.at_start, -1.0, 1.0)
                             : -1;
    const double former = state.waiting_share;
    state.waiting_share =
        std::clamp(former * std::exp2(share_gain * (descent_ratio - ratio)), share_min, share_max);
    const double rise = std::log2(state.waiting_share / former);
    if (rise < 0 || state.mean_lag.value_or(1) >= no_lag)
      state.sample_level =
          std::clamp(state.sample_level + rise, waiting_sample_level_min, sample_level_max);
  }
  steer_waiting(state.waiting_share, state.waiting_share, state, seen);
}

/// Returns how far a mean lag is above the target, about in proportion to the target; from -1 to 1,
/// negative if it is below.
double staleness_error(const Tuned& rule, double mean_lag) {
  return std::clamp(1.5 * (mean_lag - rule.target) / (rule.target + 0.5), -1.0, 1.0);
}

/// Staleness: beta is as large as makes the bound s hold among the others that the worker sees, and
/// a proportional and integral controller moves log2(1 + s). Its integral lets s rise only while s
/// is near the lags that the worker sees, because a larger s changes nothing else.
void steer_staleness(const Tuned& rule, double former_lag, TunerState& state,
                     const Observation& seen) {
  if (seen.answers == 0) return;
  const double s = state.staleness();
  const bool holds = seen.largest_lag <= 1.5 * s + 2;
  state.sample_level = std::clamp(state.sample_level + (holds ? -sample_fall : sample_rise),
                                  staleness_sample_level_min, sample_level_max);
  const double error = staleness_error(rule, *state.mean_lag);
  double level =
      state.staleness_level - staleness_damping * (error - staleness_error(rule, former_lag));
  const bool binds = seen.was_refused || 2 * seen.largest_lag >= s;
  if (error > 0 || binds) level -= staleness_gain * error;
  state.staleness_level = std::clamp(level, 0.0, std::log2(1.0 + Tuned::staleness_max));
}

/// Returns the whole number to use now, such that the numbers used have the mean `value`.
std::size_t next_whole(double value, double& carry) {
  carry += value;
  const double whole = std::floor(carry);
  carry -= whole;
  return static_cast<std::size_t>(whole);
}

}  // namespace

Tuned Tuned::parse(SpecReader& reader) {
  const std::string examples = "; valid: tuned:waiting=5%, tuned:staleness=3 or tuned:progress";
  const std::string waiting = reader.text("waiting", "");
  const std::string staleness = reader.text("staleness", "");
  std::vector<std::string> given;
  if (!waiting.empty()) given.emplace_back("waiting");
  if (!staleness.empty()) given.emplace_back("staleness");
  if (reader.flag("progress")) given.emplace_back("progress");
  Tuned rule;
  if (given.empty()) {
    reader.refuse("give a target" + examples);
  } else if (given.size() > 1) {
    reader.refuse(given[0] + " and " + given[1] +
                  " are both given, but s and beta can meet one target only" + examples);
  } else if (!staleness.empty()) {
    rule.measure = Measure::staleness;
    const auto steps = parse_number(staleness);
    if (steps && *steps > 0 && *steps <= static_cast<double>(target_max))
      rule.target = *steps;
    else
      reader.refuse("staleness=" + staleness + ": valid: a number of steps above 0, to " +
                    std::to_string(target_max) + ", as in staleness=3");
  } else if (!waiting.empty()) {
    const auto percent = waiting.ends_with('%')
                             ? parse_number(std::string_view{waiting}.substr(0, waiting.size() - 1))
                             : Result<double>{Error{"no percentage"}};
    if (percent && *percent > 0 && *percent < 100)
      rule.target = *percent / 100;
    else
      reader.refuse("waiting=" + waiting + ": valid: above 0% and below 100%, as in waiting=5%");
  } else {
    rule.measure = Measure::progress;
  }
  return rule;
}

std::string Tuned::options() const {
  if (measure == Measure::progress) return "progress";
  if (measure == Measure::staleness) return "staleness=" + print_number(target);
  return "waiting=" + print_percent(target);
}

double TunerState::staleness() const { return std::exp2(staleness_level) - 1; }
double TunerState::beta() const { return std::exp2(sample_level); }

TunerState first_state(const Tuned& rule) {
  if (rule.measure == Tuned::Measure::waiting) return {.sample_level = waiting_sample_level_first};
  if (rule.measure == Tuned::Measure::progress)
    return {.sample_level = progress_sample_level_first, .waiting_share = share_first};
  return {.sample_level = staleness_sample_level_first,
          .staleness_level = std::log2(1 + rule.target)};
}

TunerState next(const Tuned& rule, TunerState state, const Observation& seen) {
  const double former_lag = state.mean_lag.value_or(seen.mean_lag);
  if (seen.answers > 0) {
    const auto answers = static_cast<double>(seen.answers);
    const double weight = answers / (answers + lag_window);
    state.mean_lag = former_lag + weight * (seen.mean_lag - former_lag);
    state.lead += weight * (seen.lead - state.lead);
  }
  if (rule.measure == Tuned::Measure::waiting)
    steer_waiting(rule.target, own_target(rule.target, state.lead), state, seen);
  else if (rule.measure == Tuned::Measure::progress)
    steer_progress(state, seen);
  else
    steer_staleness(rule, former_lag, state, seen);
  return state;
}

Tuner::Tuner(Tuned rule) : rule_(rule), state_(first_state(rule)) { choose(); }

void Tuner::choose() {
  const Step staleness = next_whole(state_.staleness(), staleness_carry_);
  barrier_ = sampled(Ssp{staleness}, next_whole(state_.beta(), beta_carry_));
}

void Tuner::arrive(Time now, Step own_step, std::optional<Descent> descent) {
  descent_ = descent;
  arrived_at_ = now;
  own_step_ = own_step;
  draws_ = answers_ = behind_ = 0;
  lag_sum_ = largest_lag_ = 0;
}

void Tuner::see(Step other_step) {
  if (draws_ != 1) return;
  const bool behind = own_step_ > other_step;
  const double lag = behind ? static_cast<double>(own_step_ - other_step) : 0;
  ++answers_;
  behind_ += behind ? 1 : 0;
  lag_sum_ += lag;
  largest_lag_ = std::max(largest_lag_, lag);
}

void Tuner::pass(Time now) {
  if (!arrived_at_) return;
  const auto seconds = [](Time time) { return std::chrono::duration<double>(time).count(); };
  Observation seen;
  if (passed_at_) seen.step_time = seconds(*arrived_at_ - *passed_at_);
  seen.waited = seconds(now - *arrived_at_);
  seen.was_refused = draws_ > 1;
  seen.answers = answers_;
  if (answers_ > 0) {
    const auto answers = static_cast<double>(answers_);
    seen.mean_lag = lag_sum_ / answers;
    seen.lead = 2 * static_cast<double>(behind_) / answers - 1;
  }
  seen.largest_lag = largest_lag_;
  seen.descent = descent_;
  state_ = next(rule_, state_, seen);
  passed_at_ = now;
  arrived_at_.reset();
  choose();
}

void TunedSum::add(const std::optional<Tuner>& tuner) {
  if (tuner) add({1, tuner->state().staleness(), tuner->state().beta()});
}

void TunedSum::add(const TunedSum& other) {
  workers += other.workers;
  staleness += other.staleness;
  beta += other.beta;
}

std::string print(const TunedSum& sum) {
  if (sum.workers == 0) return {};
  const auto two_digits = [](double value) { return print_number(std::round(100 * value) / 100); };
  return "s " + two_digits(sum.mean_staleness()) + ", beta " + two_digits(sum.mean_beta()) +
         "; means over the workers";
}

std::optional<Tuner> make_tuner(const Barrier& barrier) {
  const auto* rule = std::get_if<Tuned>(&barrier.rule);
  return rule == nullptr ? std::nullopt : std::optional<Tuner>{std::in_place, *rule};
}

}  // namespace starling::barrier
