#include "starling/engine/core/worker/worker.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {
Worker::Worker(WorkerOptions options)
    : options_(std::move(options)),
      step_(options_.first_step),
      samples_(options_.samples),
      awaits_deal_(options_.awaits_deal),
      has_part_(!options_.joins) {
  if (has_part_) {
    part_ = std::exchange(options_.first_part, std::nullopt);
    if (part_)
      begin_deal(options_.deal_first_step);
    else
      deal_first_step_ = options_.deal_first_step;
    former_share_ = share_of_present_workers();
  }
  if (!options_.central)
    gate_.emplace(options_.barrier, options_.recheck, options_.id, options_.workers);
}

void Worker::start(const Context& context) {
  STARLING_CHECK(phase_ == Phase::idle);
  started_at_ = context.now;
  if (options_.joins) return enter(context);
  if (stopping_ || step_ >= options_.last_step) return finish(context);
  first_step_ = step_;
  begin_step(context);
}

/// Asks the exchange or others at which step to begin, or waits for the coordinator's Proceed.
void Worker::enter(const Context& context) {
  phase_ = Phase::entering;
  if (options_.exchange_is_barrier) return context.out.push_back(Enter{});
  if (gate_ && gate_->enter(context)) begin_at(context, gate_->entry_step());
}

void Worker::begin_at(const Context& context, Step first) {
  begins_first_ = gate_ && gate_->begins_first();
  // The worker ends if the others have ended, or if it is too late to begin and no deal can set a
  // later last step.
  const bool ends = first >= barrier::finished || is_last(first);
  // A worker that ends at once, in a job without a last step, keeps the step that it has.
  const Step last = ends ? std::min(first, options_.last_step) : first;
  if (last < barrier::finished) step_ = last;
  first_step_ = step_;
  if (options_.bsp && !ends) {
    is_entry_ = true;
    phase_ = Phase::writing;
    context.out.push_back(Enter{step_ + 1});
    return;
  }
  notify_waiters(context);
  if (stopping_ || ends) return finish(context);
  begin_step(context);
}

/// True if the worker ends after `step`, and no deal can change that.
bool Worker::is_last(Step step) const {
  const bool is_limited = part_ && (part_->steps || part_->samples);
  const bool may_change = awaits_deal_ || (is_limited && !deal_first_step_);
  return !may_change && (step >= options_.last_step || has_taken_all());
}

bool Worker::has_taken_all() const noexcept {
  return hands_in_early() && deal_first_step_ &&
         samples_taken() - deal_first_samples_ >= *part_->samples;
}

void Worker::begin_step(const Context& context) {
  if (awaits_deal_) {
    phase_ = Phase::held;
    return;
  }
  if (std::exchange(begins_first_, false))
    step_ = first_step_ = std::max(step_, part_ ? part_->reached : 0);
  if (part_ && !deal_first_step_) begin_deal(step_);
  if (step_ >= options_.last_step || has_taken_all()) return finish(context);
  step_started_at_ = context.now;
  failures_ = 0;
  share_ = share_at(step_);
  if (share_.taken)
    samples_of_step_ = std::min(part_->order->size_after(part_->index, *share_.taken),
                                *part_->samples - *share_.taken);
  if (options_.asks_for_plan) {
    phase_ = Phase::planning;
    context.out.push_back(Plan{step_, share_});
    return;
  }
  read(context, std::nullopt);
}

/// The worker's part of the deal begins after `first_step` steps.
void Worker::begin_deal(Step first_step) {
  deal_first_step_ = first_step;
  deal_first_samples_ = samples_taken();
  if (part_->steps) options_.last_step = std::min(part_->steps_max, first_step + *part_->steps);
}

void Worker::on_deal(const Context& context, std::optional<DealPart> part) {
  has_part_ = part.has_value();
  if (!part && phase_ == Phase::done) return;  // keeps its last deal, for its progress
  const auto begun = steps_begun();
  if (begun && part_ && !part_->order) former_share_ = share_at(*begun);
  part_ = std::move(part);
  work_meter_.restart();
  deal_first_step_.reset();
  if (begun && part_) begin_deal(*begun);
  awaits_deal_ = false;
  if (phase_ == Phase::held) begin_step(context);
}

std::optional<Step> Worker::steps_begun() const noexcept {
  switch (phase_) {
    case Phase::idle:
    case Phase::entering:
      return std::nullopt;
    case Phase::planning:
    case Phase::reading:
    case Phase::computing:
    case Phase::failed:
      return step_ + 1;
    case Phase::writing:
      return is_entry_ ? std::nullopt : std::optional{step_ + 1};
    case Phase::held:
      return begins_first_ ? std::nullopt : std::optional{step_};
    default:
      return step_;
  }
}

bool Worker::knows_taken() const noexcept {
  const bool is_making_step =
      phase_ == Phase::planning || phase_ == Phase::reading || phase_ == Phase::computing;
  return !hands_in_early() || !is_making_step;
}

std::optional<std::uint64_t> Worker::dealt_taken() const noexcept {
  if (!has_part_) return std::nullopt;
  if (hands_in_early()) return deal_first_step_ ? samples_taken() - deal_first_samples_ : 0;
  const auto begun = steps_begun();
  return begun && deal_first_step_ && *begun > *deal_first_step_ ? *begun - *deal_first_step_ : 0;
}

DealProgress Worker::deal_progress() const {
  if (!part_ || !part_->order) return {};
  if (hands_in_early()) {
    const std::uint64_t taken = samples_ - std::min(samples_, deal_first_samples_);
    DealProgress progress{.data_epoch = part_->order->epochs_after_samples(part_->index, taken),
                          .last_step = options_.last_step};
    if (*part_->samples < barrier::unlimited) {
      const std::uint64_t left = *part_->samples - std::min(taken, *part_->samples);
      const std::uint64_t batch = part_->order->batch_size();
      progress.last_step = std::min(options_.last_step, step_ + (left + batch - 1) / batch);
    }
    return progress;
  }
  const Step first = deal_first_step_.value_or(step_);
  return {part_->order->epochs_after(step_ - std::min(step_, first)), options_.last_step,
          part_->batch};
}

/// Returns this worker's part of the step after `step`. Requires: its part of the deal has begun.
WorkShare Worker::share_at(Step step) const {
  if (!part_) return share_of_present_workers();
  const bool begins_together = options_.bsp && !part_->order;
  if (begins_together && former_share_ && step < part_->common_first_step) return *former_share_;
  WorkShare share{part_->index, part_->count, part_->order, *deal_first_step_};
  if (hands_in_early()) share.taken = samples_taken() - deal_first_samples_;
  return share;
}

WorkShare Worker::share_of_present_workers() const {
  if (!options_.workers) return {};
  const std::vector<MemberId>& all = *options_.workers;
  const auto own = std::ranges::lower_bound(all, options_.id);
  return {static_cast<std::uint32_t>(own - all.begin()), static_cast<std::uint32_t>(all.size())};
}

void Worker::on_plan(const Context& context, Step step, std::vector<RangeRows> plan) {
  if (phase_ != Phase::planning || step != step_) return;
  read(context, std::move(plan));
}

void Worker::read(const Context& context, std::optional<std::vector<RangeRows>> plan) {
  phase_ = Phase::reading;
  // The worker has passed no barrier before its first step, so no barrier promises how new the
  // values are that this step reads.
  const bool is_first = step_ == first_step_;
  const Step oldest = is_first ? 0 : barrier::promised_floor(options_.barrier, step_).value_or(0);
  context.out.push_back(Read{step_, std::move(plan), oldest, std::max(floor_, oldest)});
}

void Worker::on_values(const Context& context, Step step, std::vector<Value> values) {
  if (phase_ != Phase::reading || step != step_) return;
  phase_ = Phase::computing;
  compute_started_at_ = context.now;
  values_ = std::move(values);
  compute(context);
}

void Worker::compute(const Context& context) {
  std::uint64_t samples_max = UINT64_MAX;
  if (share_.taken)
    samples_max = must_hand_in() ? micro_batch_of(samples_of_step_) : samples_of_step_;
  context.out.push_back(Compute{step_, values_, share_, samples_max, former_});
}

/// Another worker has computed its batch. If this worker has not begun to compute the step yet, it
/// will compute one micro-batch.
void Worker::on(const Context& context, const HandIn& hand_in) {
  const bool was_told = must_hand_in();
  hand_in_step_ = std::max(hand_in_step_, hand_in.step);
  if (!was_told && must_hand_in() && phase_ == Phase::computing && share_.taken)
    context.out.push_back(HandInNow{step_});
}

void Worker::on_update(const Context& context, Step step, Update update, Time postponed) {
  if (phase_ != Phase::computing || step != step_) return;
  const bool is_whole = share_.taken && update.samples > 0 && update.samples == samples_of_step_;
  if (is_whole && !must_hand_in()) context.send(ToCoordinator{}, BatchDone{options_.id, step_ + 1});
  descent_ = update.descent;
  if (barrier::moves_with_descent(options_.barrier))
    former_ = std::make_shared<const FormerStep>(FormerStep{std::move(values_), update.parts});
  values_.clear();  // releases the buffers, so that an owner need not copy a range to change it
  phase_ = Phase::writing;
  wait_started_at_ = context.now;
  samples_in_flight_ = update.samples;
  work_meter_.add(update.samples, context.now - compute_started_at_ - postponed);
  const std::uint64_t samples_total = samples_ + update.samples;
  context.out.push_back(Write{step_ + 1, std::move(update), samples_total});
}

void Worker::on_parts(const Context& context, Step step, EarlyParts parts) {
  if (phase_ != Phase::computing || step != step_) return;
  context.out.push_back(WriteParts{step_ + 1, std::move(parts)});
}

void Worker::on_failure(const Context& context, Step step, const std::string& why) {
  const bool planning = phase_ == Phase::planning;
  if ((!planning && phase_ != Phase::computing) || step != step_) return;
  if (++failures_ < options_.attempts) {
    if (planning)
      context.out.push_back(Plan{step_, share_});
    else
      compute(context);
    return;
  }
  phase_ = Phase::failed;
  context.out.push_back(Fail{"worker " + std::to_string(options_.id) + " failed " +
                             std::to_string(failures_) + " times at step " +
                             std::to_string(step_ + 1) + ": " + why});
}

void Worker::on_written(const Context& context, Step step) {
  if (phase_ == Phase::entering && options_.exchange_is_barrier) return begin_at(context, step);
  if (phase_ == Phase::writing && step == step_ + 1) finish_step(context);
}

void Worker::finish_step(const Context& context) {
  if (waits_in_exchange()) wait_time_ += context.now - wait_started_at_;
  ++step_;
  samples_ += std::exchange(samples_in_flight_, 0);
  if (!std::exchange(is_entry_, false)) step_times_.add(context.now - step_started_at_);
  if (gate_) gate_->on_push(context, context.now - step_started_at_);
  notify_waiters(context);
  if (stopping_ || is_last(step_)) return finish(context);
  wait_started_at_ = context.now;
  phase_ = Phase::waiting;
  ask_to_pass_barrier(context);
}

void Worker::finish(const Context& context) {
  if (phase_ == Phase::waiting) wait_time_ += context.now - wait_started_at_;
  phase_ = Phase::done;
  ended_at_ = context.now;
  if (gate_) gate_->stop_asking();
  send_ended(context);
  notify_waiters(context);
}

void Worker::send_ended(const Context& context) const {
  context.out.push_back(EndWrites{step_});
  if (!gate_) context.send(ToCoordinator{}, Ended{options_.id, step_, is_leaving_});
  context.out.push_back(Done{step_});
}

void Worker::on(const Context& context, const Stop&) {
  stopping_ = true;
  if (phase_ == Phase::waiting || phase_ == Phase::entering || phase_ == Phase::held)
    finish(context);
}

void Worker::leave(const Context& context) {
  is_leaving_ = !is_done();
  on(context, Stop{});
}

void Worker::on_workers(const Context& context, WorkerConfiguration next) {
  for (const MemberId id : next.changed) notify_requests_.erase(id);
  options_.workers = next.workers;
  if (gate_ && gate_->on_members(context, std::move(next.workers), next.changed)) go_on(context);
}

}  // namespace starling::core
