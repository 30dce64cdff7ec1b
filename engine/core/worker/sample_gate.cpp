#include "starling/engine/core/worker/sample_gate.hpp"

#include <algorithm>

#include "starling/barrier/sampling.hpp"

namespace starling::core {

namespace {

/// If none of the drawn workers has begun, a joining worker draws again after this time.
constexpr Time entry_retry = std::chrono::milliseconds{20};

std::uint64_t to_nanoseconds(Time duration) {
  return std::min(static_cast<std::uint64_t>(std::max(duration, Time{}).count()),
                  PaceReport::duration_max_ns);
}

Time to_time(std::uint64_t nanoseconds) { return Time{static_cast<Time::rep>(nanoseconds)}; }

/// Returns the pace of the worker that has sent `answer`, by the clock of its receiver.
barrier::Pace pace_in(const StepAnswer& answer, Time now) {
  if (!answer.pace) return {.step = answer.step};
  return {.step = answer.step,
          .pushed_at = now - to_time(answer.pace->since_push_ns),
          .interval = to_time(answer.pace->interval_ns),
          .waits = answer.pace->waits,
          .duration = to_time(answer.pace->duration_ns)};
}

}  // namespace

SampleGate::SampleGate(barrier::Barrier barrier, barrier::Recheck recheck, MemberId self,
                       WorkerIds workers)
    : barrier_(std::move(barrier)),
      tuner_(barrier::make_tuner(barrier_)),
      recheck_(recheck),
      self_(self),
      decides_by_paces_(barrier::needs_paces(barrier_) && !barrier::always_passes(barrier_)) {
  set_workers(std::move(workers));
  if (barrier::is_weighted(barrier_)) weights_.emplace(barrier_.weighting);
}

void SampleGate::on_push(const Context& context, Time step_time) {
  if (decides_by_paces_) own_pace_.record_push(context.now, step_time, context.random.real());
}

std::optional<PaceReport> SampleGate::pace_report(Time now) const {
  if (own_pace_.pushed_at == Time{}) return std::nullopt;
  return PaceReport{.since_push_ns = to_nanoseconds(now - own_pace_.pushed_at),
                    .interval_ns = to_nanoseconds(own_pace_.interval),
                    .duration_ns = to_nanoseconds(own_pace_.duration),
                    .waits = own_pace_.waits && phase_ != Phase::idle};
}

bool SampleGate::begin(const Context& context, Step own_step, Time automatic_interval,
                       std::optional<barrier::Descent> descent) {
  own_step_ = own_step;
  if (own_step < run_end_) return pass(context);
  automatic_interval_ = automatic_interval;
  if (tuner_) tuner_->arrive(context.now, own_step, descent);
  return start_draw(context);
}

bool SampleGate::enter(const Context& context) {
  phase_ = Phase::entering;
  entry_sample_size_ =
      std::max<std::size_t>(1, barrier::seen_workers(current_barrier(), candidate_count()));
  return start_draw(context);
}

std::uint32_t SampleGate::candidate_count() const {
  return static_cast<std::uint32_t>(workers_->size() - 1);
}

bool SampleGate::start_draw(const Context& context) {
  ++draw_number_;
  // If a change of the members replaces a draw before it is decided, both are one draw to the
  // tuner.
  if (tuner_ && phase_ != Phase::asking) tuner_->begin_draw();
  seen_steps_.clear();
  seen_paces_.clear();
  seen_from_.clear();
  unanswered_.clear();
  laggard_.reset();
  if (phase_ == Phase::entering) {
    entry_step_ = 0;
    if (candidate_count() == 0) {
      begins_first_ = true;
      phase_ = Phase::idle;
      return true;
    }
    ask_random(context, static_cast<std::uint32_t>(
                            std::min<std::size_t>(entry_sample_size_, candidate_count())));
    return false;
  }
  const auto beta =
      static_cast<std::uint32_t>(barrier::seen_workers(current_barrier(), candidate_count()));
  if (beta == 0 || barrier::floor(current_barrier(), own_step_) == Step{0}) return pass(context);
  ++counts_.draws;
  phase_ = Phase::asking;
  ask_random(context, beta);
  return false;
}

void SampleGate::ask_random(const Context& context, std::uint32_t count) {
  if (weights_)
    barrier::draw_weighted(candidate_count(), count,
                           weights_->weights(*workers_, own_position_, context.now), context.random,
                           drawn_positions_);
  else
    barrier::draw(candidate_count(), count, context.random, drawn_positions_);
  for (const std::uint32_t pick : drawn_positions_) {
    const MemberId other = (*workers_)[pick < own_position_ ? pick : pick + 1];
    unanswered_.push_back(other);
    if (weights_) weights_->on_question(other, context.now);
    context.send(ToMember{other}, StepQuery{self_, draw_number_});
  }
  wait_until(context, context.now + query_timeout);
}

bool SampleGate::on(const Context& context, const StepAnswer& answer) {
  if (weights_) weights_->on_answer(answer.from, answer.step, context.now);
  if (answer.draw != draw_number_) return false;
  // After a draw has refused the worker, further answers to the draw still tell a tuner the lags.
  if (phase_ == Phase::refused && tuner_) take_answer(answer);
  const bool asks = phase_ == Phase::asking || phase_ == Phase::entering;
  if (!asks || !take_answer(answer)) return false;
  seen_steps_.push_back(answer.step);
  if (phase_ == Phase::entering || decides_by_paces_) seen_from_.push_back(answer.from);
  if (phase_ == Phase::entering) return unanswered_.empty() && decide_entry(context);
  if (decides_by_paces_) seen_paces_.push_back(pace_in(answer, context.now));
  const auto floor = barrier::floor(current_barrier(), own_step_);
  if (can_laggard_decide() && floor && answer.step < *floor) {
    wait_to_draw_again(context, answer.from);
    return false;
  }
  return unanswered_.empty() && decide(context);
}

bool SampleGate::take_answer(const StepAnswer& answer) {
  const auto asked = std::ranges::find(unanswered_, answer.from);
  if (asked == unanswered_.end()) return false;
  unanswered_.erase(asked);
  if (tuner_ && phase_ != Phase::entering) tuner_->see(answer.step);
  return true;
}

bool SampleGate::on(const Context& context, const Notice& notice) {
  return phase_ == Phase::refused && notice.draw == draw_number_ && start_draw(context);
}

bool SampleGate::on_timer(const Context& context) {
  timer_.remove_due(context.now);
  if (phase_ == Phase::idle) return false;
  if (context.now < deadline_) {
    timer_.ensure(context, deadline_);
    return false;
  }
  if (phase_ == Phase::entering)
    return unanswered_.empty() ? start_draw(context) : decide_entry(context);
  if (phase_ == Phase::asking) {
    // Workers that have not answered count as being at step 0. This worker can then pass only if
    // its rule sets no lowest step (barrier::floor()).
    seen_steps_.resize(seen_steps_.size() + unanswered_.size(), 0);
    if (decides_by_paces_) seen_paces_.resize(seen_steps_.size());
    return decide(context);
  }
  if (!waits_only_for_notice()) return start_draw(context);
  ask_for_notice(context);  // the request or its answer may have been lost
  wait_until(context, context.now + query_timeout);
  return false;
}

bool SampleGate::on_members(const Context& context, WorkerIds workers,
                            const std::vector<MemberId>& changed) {
  set_workers(std::move(workers));
  if (weights_) weights_->forget(changed);
  const auto has_changed = [&](MemberId id) { return std::ranges::binary_search(changed, id); };
  // A draw by paces that is not decided yet also forgets the answers of workers that have changed.
  // So does the draw of a joining worker, which compares the number of answers with the number of
  // all other workers.
  const bool affects_draw =
      candidate_count() == 0 || (laggard_ && has_changed(*laggard_)) ||
      std::ranges::any_of(unanswered_, has_changed) ||
      (phase_ != Phase::refused && std::ranges::any_of(seen_from_, has_changed));
  return phase_ != Phase::idle && affects_draw && start_draw(context);
}

void SampleGate::set_workers(WorkerIds workers) {
  workers_ = std::move(workers);
  const auto self = std::ranges::find(*workers_, self_);
  STARLING_CHECK(self != workers_->end());
  own_position_ = static_cast<std::uint32_t>(self - workers_->begin());
}

/// Decides a draw after all drawn workers have answered, or after query_timeout.
bool SampleGate::decide(const Context& context) {
  const bool passes = decides_by_paces_
                          ? decide_by_paces()
                          : barrier::admits(current_barrier(), own_step_, seen_steps_);
  if (!passes) {
    wait_to_draw_again(context, first_laggard());
    return false;
  }
  ++counts_.passes;
  return pass(context);
}

bool SampleGate::decide_by_paces() {
  own_pace_.step = own_step_;
  run_end_ = barrier::run_to(barrier_, own_pace_, seen_paces_);
  return run_end_ > own_step_;
}

std::optional<MemberId> SampleGate::first_laggard() const {
  const auto floor = barrier::floor(barrier_, own_step_);
  for (std::size_t i = 0; floor && i < seen_from_.size(); ++i)
    if (seen_paces_[i].step < *floor) return seen_from_[i];
  return std::nullopt;
}

bool SampleGate::pass(const Context& context) {
  phase_ = Phase::idle;
  if (tuner_) tuner_->pass(context.now);
  return true;
}

/// Decides at which step the worker begins, or sets when it draws again.
bool SampleGate::decide_entry(const Context& context) {
  const bool all_answered = unanswered_.empty() && seen_steps_.size() == candidate_count();
  const bool some_wait = std::erase(seen_steps_, not_begun) > 0;
  const bool some_ended = std::erase(seen_steps_, barrier::finished) > 0;
  unanswered_.clear();
  seen_from_.clear();
  const bool is_lowest_id = workers_->empty() || std::ranges::min(*workers_) == self_;
  // A worker that has not begun may just have learned its first step from one that still ran, so it
  // is asked once more.
  const bool all_ended = all_answered && some_ended && seen_steps_.empty();
  const bool is_certain = all_ended && (!some_wait || has_seen_all_ended_);
  has_seen_all_ended_ = all_ended;
  const bool is_first = all_answered && !some_ended && is_lowest_id;
  if (!seen_steps_.empty() || is_certain || is_first) {
    const Step without_others = is_certain ? barrier::finished : 0;
    entry_step_ = seen_steps_.empty() ? without_others : std::ranges::min(seen_steps_);
    begins_first_ = seen_steps_.empty() && !is_certain;
    phase_ = Phase::idle;
    return true;
  }
  entry_sample_size_ = std::min(2 * entry_sample_size_, workers_->size() + 1);
  wait_until(context, context.now + entry_retry);
  return false;
}

void SampleGate::wait_to_draw_again(const Context& context, std::optional<MemberId> laggard) {
  phase_ = Phase::refused;
  laggard_ = laggard;
  own_pace_.waits = true;
  if (recheck_.notify && laggard) ask_for_notice(context);
  const bool is_fixed = recheck_.interval && *recheck_.interval != barrier::Recheck::automatic;
  const Time default_wait = waits_only_for_notice() ? query_timeout : automatic_interval_;
  wait_until(context, context.now + (is_fixed ? *recheck_.interval : default_wait));
}

bool SampleGate::waits_only_for_notice() const {
  return recheck_.notify && laggard_ && !recheck_.interval;
}

void SampleGate::ask_for_notice(const Context& context) const {
  context.send(ToMember{*laggard_},
               NotifyRequest{self_, draw_number_, *barrier::floor(current_barrier(), own_step_)});
}

void SampleGate::wait_until(const Context& context, Time deadline) {
  deadline_ = deadline;
  timer_.ensure(context, deadline);
}

}  // namespace starling::core
