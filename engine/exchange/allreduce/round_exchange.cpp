#include "starling/engine/exchange/allreduce/round_exchange.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/allreduce/adding_applier.hpp"

namespace starling::core {
RoundExchange::RoundExchange(ExchangeOptions options, RoundExchangeOptions rounds)
    : options_(std::move(options)),
      rounds_(std::move(rounds)),
      sum_applier_(rounds_.sums_changes ? adding_applier(*options_.applier) : options_.applier),
      residual_(options_.rounds_to_bf16 ? std::make_shared<SumResidual>() : nullptr),
      pending_snapshot_(options_.pending_snapshot) {
  STARLING_CHECK(rounds_.every >= 1 && rounds_.every <= sum_steps_max);
  STARLING_CHECK(rounds_.sums_changes || rounds_.every == 1);
  STARLING_CHECK(!rounds_.sums_changes || (!rounds_.overlaps && !rounds_.shards_optimizer));
  STARLING_CHECK(rounds_.buckets.empty() || (!rounds_.sums_changes && !rounds_.overlaps));
}

Result<void> RoundExchange::check_workers(std::string_view name, std::size_t workers) {
  if (workers <= allreduce_workers_max) return {};
  return Error{"exchange " + std::string{name} + " sums the updates of at most " +
               std::to_string(allreduce_workers_max) +
               " workers; valid: fewer workers, or another exchange"};
}

// --- this worker's reads and writes -------------------------------------------------------------

/// A worker that joins reads only after it has entered, and it enters only when it has a copy.
void RoundExchange::read(const Context& context, const Read& read) {
  STARLING_CHECK(has_model());
  context.out.push_back(read_from(
      *options_.layout, read, [&](RangeId range) -> const RangeValues& { return model_[range]; }));
}

void RoundExchange::write(const Context& context, Write write) {
  if (rounds_.sums_changes) {
    apply_to_own_copy(write);
    if (write.step < next_round_step()) return context.out.push_back(Written{write.step});
    write.update = {};
  }
  early_.reset();
  write_ = std::move(write);
  answer_worker(context);
  go_on(context);
}

void RoundExchange::write_parts(const Context& context, WriteParts write) {
  if (rounds_.buckets.empty() || write.step != next_round_step()) return;
  early_ = std::move(write);
  go_on(context);
}

/// Applies the mean gradient of the step at the full rate, whatever the number of its samples,
/// because the mean of the copies weighs changes by samples. For the schedule of the learning rate,
/// assumes that each other worker has computed as many samples since the last round as this one.
void RoundExchange::apply_to_own_copy(const Write& write) {
  const double weight = write.update.samples > 0 ? 1 : 0;
  for (const Update::Part& part : write.update.parts) {
    RangeValues& values = model_[part.range];
    values.samples = base_[part.range].samples + own_.samples * workers_.size();
    options_.applier->apply(*options_.layout, part.range, values, part.values, weight);
  }
  ++own_.steps;
  own_.samples += write.update.samples;
}

/// Returns how the worker's copy has changed since the last round.
Update RoundExchange::own_changes() const {
  constexpr std::uint64_t samples_max = std::numeric_limits<std::uint32_t>::max();
  Update changes{.parts = {},
                 .samples = static_cast<std::uint32_t>(std::min(own_.samples, samples_max))};
  for (RangeId range = 0; range < model_.size(); ++range)
    changes.parts.push_back({range, change_between(*base_[range].value, *model_[range].value)});
  return changes;
}

void RoundExchange::enter(const Context& context, const Enter&) {
  is_entering_ = true;
  answer_worker(context);
}

/// From now on this member takes part in sums without an update.
void RoundExchange::end(const Context& context, const EndWrites&) {
  has_ended_ = true;
  is_entering_ = false;
  early_.reset();
  go_on(context);
}

/// Tells the worker at which step it begins, or that its update counts.
void RoundExchange::answer_worker(const Context& context) {
  if (!has_model()) return;
  if (std::exchange(is_entering_, false)) context.out.push_back(Written{synced_step_});
  if (overlapped_write_ && overlapped_write_->step <= synced_step_) overlapped_write_.reset();
  if (!write_) return;
  const bool is_in_copy = write_->step <= synced_step_;
  const bool may_go_ahead = rounds_.overlaps && !overlapped_write_;
  if (!is_in_copy && !may_go_ahead) return;
  context.out.push_back(Written{write_->step});
  if (!is_in_copy) overlapped_write_ = std::move(write_);
  write_.reset();
}

// --- rounds -------------------------------------------------------------------------------------

const Write* RoundExchange::next_write() const {
  const auto& write = rounds_.overlaps ? overlapped_write_ : write_;
  return write ? &*write : nullptr;
}

/// Completes the round in progress if its sum is complete. Then starts the sum of the next round,
/// or of its next bucket, if that can be started and this member has its contribution to it.
void RoundExchange::go_on(const Context& context) {
  if (!is_ready_) return;
  if (sum_->is_complete() && !uses_copy()) complete_round(context);
  const Write* write = next_write();
  if (sum_->is_complete() || !sum_->can_start()) return;
  const bool has_contribution =
      write != nullptr || (has_ended_ && !have_all_ended_) || has_next_parts();
  if (!has_contribution) return;
  STARLING_CHECK(write == nullptr || write->step == next_round_step());
  run_sum(context, [&](auto& out) { start_sum(out); });
}

void RoundExchange::start_sum(RoundSum::Sends& out) {
  if (!rounds_.sums_changes) {
    const Update* update = nullptr;
    if (const Write* write = next_write())
      update = &write->update;
    else if (early_)
      update = &early_->parts.update;
    return sum_->start(out, update, 1, model_);
  }
  if (own_.steps == 0) return sum_->start(out, nullptr, 0, base_);
  const Update changes = own_changes();
  sum_->start(out, &changes, own_.steps, base_);
}

/// Lets `event` act on the sum, sends its messages, and goes on.
template <class Event>
void RoundExchange::run_sum(const Context& context, Event event) {
  RoundSum::Sends sends;
  event(sends);
  for (auto& send : sends) {
    const MemberId to = workers_[send.first].id;
    std::visit([&](auto& message) { context.send(to, std::move(message)); }, send.second);
  }
  go_on(context);
}

void RoundExchange::complete_round(const Context& context) {
  const RoundLength round = add_round_to(progress_);
  if (residual_) residual_->commit();
  sum_->apply(rounds_.sums_changes ? base_ : model_);
  others_have_rounds_ = has_ended_ && next_write() == nullptr && own_.steps == 0;
  have_all_ended_ = round.steps == 0;
  if (have_all_ended_) return;
  synced_step_ += round.steps;
  for (RangeValues& range : rounds_.sums_changes ? base_ : model_) range.samples += round.samples;
  if (rounds_.sums_changes) reset_model_to_base();
  answer_worker(context);
  answer_pending_snapshot(context);
}

RoundExchange::RoundLength RoundExchange::add_round_to(StepsOfWorkers& progress) const {
  const auto contributions = sum_->contributions();
  RoundLength round;
  for (std::size_t rank = 0; rank < contributions.size(); ++rank) {
    if (!contributions[rank]) continue;
    WorkerSteps& worker = progress[workers_[rank]];
    worker.step = synced_step_ + contributions[rank]->steps;
    worker.samples += contributions[rank]->samples;
    round.steps = std::max(round.steps, contributions[rank]->steps);
    round.samples += contributions[rank]->samples;
  }
  return round;
}

/// Replaces the values of the worker's copy by those after the round. The state of the optimizer
/// stays the worker's own.
void RoundExchange::reset_model_to_base() {
  for (RangeId range = 0; range < model_.size(); ++range) {
    model_[range].value = base_[range].value;
    model_[range].samples = base_[range].samples;
    base_[range].slots = model_[range].slots;
    base_[range].updates = model_[range].updates;
  }
  own_ = {};
}

bool RoundExchange::on(const Context& context, MemberId from, const SumPiece& piece) {
  if (!sum_ || !is_current(piece.epoch)) return true;
  const auto rank = std::ranges::find(workers_, from, &MemberIncarnation::id) - workers_.begin();
  run_sum(context, [&](auto& out) { sum_->on(out, static_cast<collective::Rank>(rank), piece); });
  return true;
}

bool RoundExchange::on(const Context& context, MemberId from, const SumAck& ack) {
  if (!sum_ || !is_current(ack.epoch)) return true;
  const auto rank = std::ranges::find(workers_, from, &MemberIncarnation::id) - workers_.begin();
  run_sum(context, [&](auto& out) { sum_->on(out, static_cast<collective::Rank>(rank), ack); });
  return true;
}

// --- observers ----------------------------------------------------------------------------------

void RoundExchange::on(const Context& context, const Snapshot& request) {
  if (request.round == 0)
    return send_states_to_observer(*this, context, request, options_.layout->ranges.size());
  pending_snapshot_ = request;
  answer_pending_snapshot(context);
}

/// Answers the pending Snapshot with the states after the first round that ends at
/// Snapshot::round or later or, if a later round is complete already, with states without values.
void RoundExchange::answer_pending_snapshot(const Context& context) {
  if (pending_snapshot_.round == 0 || synced_step_ < pending_snapshot_.round) return;
  const bool is_too_late = synced_step_ - pending_snapshot_.round >= rounds_.every;
  const std::uint64_t request_id = pending_snapshot_.request_id;
  pending_snapshot_ = {};
  for (RangeId range = 0; range < model_.size(); ++range) {
    if (!answers_for(range)) continue;
    RangeState answer;
    // Does not call state(): it may return the state after a later sum, which is complete and waits
    // for the worker's next step.
    if (!is_too_late)
      answer = state_of(range, rounds_.sums_changes ? base_[range] : model_[range], progress_,
                        options_.workers);
    answer.range = range;
    answer.round = synced_step_;
    answer.request_id = request_id;
    context.send_to_observer(std::move(answer));
  }
}

bool RoundExchange::is_answerer(RangeId range) const {
  const auto answerer =
      shards_ ? std::optional{workers_[shards_->primary(range)].id} : first_worker(*configuration_);
  return answerer == options_.self.id;
}

CopyHash RoundExchange::copy_hash() const {
  CopyHash copy{.round = synced_step_};
  for (const RangeValues& range : rounds_.sums_changes ? base_ : model_)
    copy.hash = add_to_hash(copy.hash, std::as_const(*range.value).bytes());
  return copy;
}

std::optional<Value> RoundExchange::value(RangeId range, const Rows& rows) const {
  if (!has_copy(range) || !is_answerer(range) || !has_rows(options_.layout->ranges[range], rows))
    return std::nullopt;
  const RangeValues& values = rounds_.sums_changes ? base_[range] : model_[range];
  return Value{range, 0, slice_of(options_.layout->ranges[range], values, rows)};
}

/// If the state of the optimizer is in shards, several workers reply to observers, and overlap
/// lets some of them apply a complete sum later than others. So all return the state after that
/// sum.
RangeState RoundExchange::state(RangeId range) const {
  RangeValues values = rounds_.sums_changes ? base_[range] : model_[range];
  StepsOfWorkers progress = progress_;
  Step round = synced_step_;
  const RangeValues* next = is_ready_ && sum_->is_complete() ? sum_->applied(range) : nullptr;
  if (next != nullptr) {
    values = *next;
    const RoundLength length = add_round_to(progress);
    values.samples += length.samples;
    round += length.steps;
  }
  RangeState state = state_of(range, values, progress, options_.workers);
  state.round = round;
  return state;
}

std::vector<WorkerProgress> RoundExchange::progress() const {
  StepsOfWorkers all = progress_;
  if (own_.steps > 0) {
    WorkerSteps& self = all[{options_.self.id, options_.self.incarnation}];
    self = {synced_step_ + own_.steps, self.samples + own_.samples};
  }
  return progress_of(all);
}

}  // namespace starling::core
