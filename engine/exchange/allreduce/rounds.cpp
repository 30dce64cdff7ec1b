#include "starling/engine/exchange/allreduce/rounds.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/allreduce/adding_applier.hpp"

namespace starling::core {
namespace {

/// Returns the same values with no state of an optimizer.
RangeValues without_slots(const RangeValues& values) {
  RangeValues without = values;
  without.slots = Buffer::zeros(0, values.value->element_bytes());
  return without;
}

}  // namespace

Rounds::Rounds(ExchangeOptions options, RoundsOptions rounds)
    : options_(std::move(options)),
      rounds_(std::move(rounds)),
      sum_applier_(rounds_.sums_changes ? adding_applier(*options_.applier) : options_.applier),
      residual_(options_.rounds_to_bf16 ? std::make_shared<SumResidual>() : nullptr),
      pending_snapshot_(options_.pending_snapshot) {
  STARLING_CHECK(rounds_.every >= 1 && rounds_.every <= sum_steps_max);
  STARLING_CHECK(rounds_.sums_changes || rounds_.every == 1);
  STARLING_CHECK(!rounds_.sums_changes || !rounds_.overlaps);
}

Result<void> Rounds::check_workers(std::string_view name, std::size_t workers) {
  if (workers <= allreduce_workers_max) return {};
  return Error{"exchange " + std::string{name} + " sums the updates of at most " +
               std::to_string(allreduce_workers_max) +
               "; valid: fewer workers, or another exchange"};
}

// --- this worker's reads and writes -------------------------------------------------------------

/// A worker that joins reads after it has entered, which it does once it has a copy.
void Rounds::read(const Context& context, const Read& read) {
  STARLING_CHECK(has_model());
  context.out.push_back(read_from(
      *options_.layout, read, [&](RangeId range) -> const RangeValues& { return model_[range]; }));
}

void Rounds::write(const Context& context, Write write) {
  if (rounds_.sums_changes) {
    apply_to_own_copy(write);
    if (write.step < next_round()) return context.out.push_back(Written{write.step});
    write.update = {};
  }
  write_ = std::move(write);
  answer_worker(context);
  go_on(context);
}

/// Applies the mean gradient of the step at the full rate, however many samples it is of: the mean
/// of the copies weighs changes by samples. The schedule assumes that the others have got as far
/// since the last round.
void Rounds::apply_to_own_copy(const Write& write) {
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
Update Rounds::own_changes() const {
  constexpr std::uint64_t samples_max = std::numeric_limits<std::uint32_t>::max();
  Update changes{.parts = {},
                 .samples = static_cast<std::uint32_t>(std::min(own_.samples, samples_max))};
  for (RangeId range = 0; range < model_.size(); ++range)
    changes.parts.push_back({range, change_between(*base_[range].value, *model_[range].value)});
  return changes;
}

void Rounds::enter(const Context& context, const Enter&) {
  is_entering_ = true;
  answer_worker(context);
}

/// From now on this member takes part in sums without an update.
void Rounds::end(const Context& context, const EndWrites&) {
  has_ended_ = true;
  is_entering_ = false;
  go_on(context);
}

/// Tells the worker at which step it begins, or that its update counts.
void Rounds::answer_worker(const Context& context) {
  if (!has_model()) return;
  if (std::exchange(is_entering_, false)) context.out.push_back(Written{round_});
  if (ahead_ && ahead_->step <= round_) ahead_.reset();
  if (!write_) return;
  const bool is_in_copy = write_->step <= round_;
  const bool may_go_ahead = rounds_.overlaps && !ahead_;
  if (!is_in_copy && !may_go_ahead) return;
  context.out.push_back(Written{write_->step});
  if (!is_in_copy) ahead_ = std::move(write_);
  write_.reset();
}

// --- rounds -------------------------------------------------------------------------------------

const Write* Rounds::next_write() const {
  const auto& write = rounds_.overlaps ? ahead_ : write_;
  return write ? &*write : nullptr;
}

/// Completes the round in progress if its sum is complete. Then starts the sum of the next one if
/// this member has all before it, and its part of it.
void Rounds::go_on(const Context& context) {
  if (!is_ready_) return;
  if (sum_->is_complete() && !needs_copy()) complete_round(context);
  const Write* write = next_write();
  const bool has_part = write != nullptr || (has_ended_ && !have_all_ended_);
  if (!has_part || sum_->is_complete() || !sum_->can_start()) return;
  STARLING_CHECK(write == nullptr || write->step == next_round());
  run_sum(context, [&](auto& out) { start_sum(out); });
}

void Rounds::start_sum(RoundSum::Sends& out) {
  if (!rounds_.sums_changes) {
    const Write* write = next_write();
    return sum_->start(out, write != nullptr ? &write->update : nullptr, 1);
  }
  if (own_.steps == 0) return sum_->start(out, nullptr, 0);
  const Update changes = own_changes();
  sum_->start(out, &changes, own_.steps);
}

/// Lets `event` act on the sum, sends its messages, and goes on.
template <class Event>
void Rounds::run_sum(const Context& context, Event event) {
  RoundSum::Sends sends;
  event(sends);
  for (auto& send : sends) {
    const MemberId to = workers_[send.first].id;
    std::visit([&](auto& message) { context.send(to, std::move(message)); }, send.second);
  }
  go_on(context);
}

void Rounds::complete_round(const Context& context) {
  const auto parts = sum_->parts();
  if (residual_) residual_->commit();
  sum_->apply(rounds_.sums_changes ? base_ : model_);
  others_have_rounds_ = has_ended_ && next_write() == nullptr && own_.steps == 0;
  have_all_ended_ = std::ranges::none_of(parts, [](const auto& part) { return part.has_value(); });
  if (have_all_ended_) return;
  Step steps = 0;
  std::uint64_t samples = 0;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (!parts[rank]) continue;
    WorkerSteps& worker = progress_[workers_[rank]];
    worker.step = round_ + parts[rank]->steps;
    worker.samples += parts[rank]->samples;
    steps = std::max(steps, parts[rank]->steps);
    samples += parts[rank]->samples;
  }
  round_ += steps;
  for (RangeValues& range : rounds_.sums_changes ? base_ : model_) range.samples += samples;
  if (rounds_.sums_changes) share_round();
  answer_worker(context);
  observe_round(context);
}

/// Goes on from the values after the round. The state of the optimizer stays the worker's own.
void Rounds::share_round() {
  for (RangeId range = 0; range < model_.size(); ++range) {
    model_[range].value = base_[range].value;
    model_[range].samples = base_[range].samples;
  }
  own_ = {};
}

bool Rounds::on(const Context& context, MemberId from, const SumPiece& piece) {
  if (!sum_ || !is_of_now(piece.epoch)) return true;
  const auto rank = std::ranges::find(workers_, from, &MemberIncarnation::id) - workers_.begin();
  run_sum(context, [&](auto& out) { sum_->on(out, static_cast<collective::Rank>(rank), piece); });
  return true;
}

bool Rounds::on(const Context& context, MemberId from, const SumProgress& progress) {
  if (!sum_ || !is_of_now(progress.epoch)) return true;
  const auto rank = std::ranges::find(workers_, from, &MemberIncarnation::id) - workers_.begin();
  run_sum(context,
          [&](auto& out) { sum_->on(out, static_cast<collective::Rank>(rank), progress); });
  return true;
}

// --- members ------------------------------------------------------------------------------------

/// A complete sum that waits for the worker's next step is applied now: it might be the only one
/// with the last update of a worker that is gone.
void Rounds::on_configuration(const Context& context, const ConfigurationPtr& next, Epoch former) {
  if (is_ready_ && sum_->is_complete()) complete_round(context);
  configuration_ = next;
  if (!options_.self.works) return;
  begin_epoch(context);
  if (former == 0 && next->epoch == 1) {
    take_initial_states();
    is_ready_ = true;
    return;
  }
  const auto round = has_model() ? std::optional{round_} : std::nullopt;
  for (const MemberIncarnation& worker : workers_)
    if (worker.id != options_.self.id) context.send(worker.id, RoundReport{next->epoch, round});
  agree(context);
}

/// Aborts what the former configuration had in progress.
void Rounds::begin_epoch(const Context& context) {
  is_ready_ = false;
  have_all_ended_ = false;
  catch_up_.reset();
  reports_.clear();
  sum_.reset();
  workers_ = other_workers(*configuration_, options_.self.id);
  const auto place =
      std::ranges::upper_bound(workers_, options_.self.id, {}, &MemberIncarnation::id);
  const auto rank = static_cast<collective::Rank>(place - workers_.begin());
  workers_.insert(place, {options_.self.id, options_.self.incarnation});
  if (auto valid = Rounds::check_workers(options_.name, workers_.size()); !valid)
    return context.out.push_back(Fail{
        std::move(valid).error().within(std::to_string(workers_.size()) + " workers").message});
  sum_ = make_round_sum({options_.layout, sum_applier_, rounds_.algorithm, options_.window,
                         configuration_->epoch, workers_.size(), rank, residual_});
}

void Rounds::take_initial_states() {
  for (const RangeState& state : *options_.initial_states) {
    model_.push_back(values_of(*options_.layout, *options_.applier, state));
    if (rounds_.sums_changes) base_.push_back(without_slots(model_.back()));
    for (MemberId worker = 0; worker < state.ledger.size(); ++worker) {
      const LedgerEntry& entry = state.ledger[worker];
      if (entry.step > 0 || entry.samples > 0)
        progress_[{worker, entry.incarnation}] = {entry.step, entry.samples};
      round_ = std::max(round_, entry.step);
    }
  }
}

bool Rounds::on(const Context& context, MemberId from, const RoundReport& report) {
  if (!is_of_now(report.epoch)) return report.epoch > configuration_->epoch;
  reports_[from] = report.round;
  agree(context);
  return true;
}

/// Once all workers have reported: goes on from the latest round that any of them has, or first
/// gets the model of this round from the worker with the lowest id that has it.
void Rounds::agree(const Context& context) {
  if (!sum_ || is_ready_ || catch_up_ || reports_.size() + 1 < workers_.size()) return;
  const auto own = has_model() ? std::optional{round_} : std::nullopt;
  auto latest = own;
  for (const auto& [worker, round] : reports_) latest = std::max(latest, round);
  if (!latest)
    return context.out.push_back(
        Fail{"no worker has a copy of the parameters; valid: start from a checkpoint"});
  if (own == latest) {
    is_ready_ = true;
    return go_on(context);
  }
  const auto source =
      std::ranges::find_if(reports_, [&](const auto& report) { return report.second == latest; });
  const std::size_t ranges = options_.layout->ranges.size();
  catch_up_ = {
      .source = source->first, .round = *latest, .next = 0, .ranges = {}, .missing = ranges};
  catch_up_->ranges.resize(ranges);
  for (std::size_t i = 0; i < options_.window; ++i) ask_for_next_range(context);
}

void Rounds::ask_for_next_range(const Context& context) {
  if (catch_up_->next == catch_up_->ranges.size()) return;
  context.send(catch_up_->source, CatchUpRequest{configuration_->epoch, catch_up_->next++});
}

/// The model is of the round that this member has reported: no sum is complete without the one who
/// asks.
bool Rounds::on(const Context& context, MemberId from, const CatchUpRequest& request) {
  if (!is_of_now(request.epoch) || !has_model()) return true;
  auto copy = std::make_shared<ModelCopy>(ModelCopy{state(request.range), progress_of(progress_)});
  copy->state.ledger.clear();
  context.send(from, CatchUpReply{request.epoch, request.range, std::move(copy)});
  return true;
}

bool Rounds::on(const Context& context, MemberId from, const CatchUpReply& reply) {
  if (!is_of_now(reply.epoch) || !catch_up_ || catch_up_->source != from ||
      catch_up_->ranges[reply.range] ||
      !fits(*options_.layout, *options_.applier, reply.copy->state))
    return true;
  catch_up_->ranges[reply.range] =
      values_of(*options_.layout, *options_.applier, reply.copy->state);
  if (--catch_up_->missing == 0)
    install(context, reply.copy->progress);
  else
    ask_for_next_range(context);
  return true;
}

/// Replaces the model by the one that has come. The round that it contains contains this worker's
/// steps, because no sum is complete without them.
void Rounds::install(const Context& context, const std::vector<WorkerProgress>& progress) {
  if (residual_) residual_->commit();
  if (rounds_.sums_changes) {
    base_.clear();
    for (const auto& range : catch_up_->ranges) base_.push_back(without_slots(*range));
  }
  if (rounds_.sums_changes && has_model()) {
    share_round();
  } else {
    model_.clear();
    for (auto& range : catch_up_->ranges) model_.push_back(*std::move(range));
  }
  round_ = catch_up_->round;
  progress_.clear();
  for (const WorkerProgress& one : progress) progress_[one.worker] = {one.step, one.samples};
  catch_up_.reset();
  ++changes_;
  is_ready_ = true;
  answer_worker(context);
  observe_round(context);
  go_on(context);
}

// --- observers ----------------------------------------------------------------------------------

void Rounds::on(const Context& context, const Snapshot& request) {
  if (request.round == 0)
    return observe_states(*this, context, request, options_.layout->ranges.size());
  pending_snapshot_ = request;
  observe_round(context);
}

/// Answers a Snapshot of the first round that ends at its step or later; if that one is over, says
/// so.
void Rounds::observe_round(const Context& context) {
  if (pending_snapshot_.round == 0 || round_ < pending_snapshot_.round) return;
  const bool is_over = round_ - pending_snapshot_.round >= rounds_.every;
  const std::uint64_t request_id = pending_snapshot_.request_id;
  pending_snapshot_ = {};
  for (RangeId range = 0; range < model_.size(); ++range) {
    if (!answers_for(range)) continue;
    RangeState answer;
    if (!is_over) answer = state(range);
    answer.range = range;
    answer.round = round_;
    answer.request_id = request_id;
    context.observe(std::move(answer));
  }
}

CopyHash Rounds::copy_hash() const {
  CopyHash copy{.round = round_};
  for (const RangeValues& range : rounds_.sums_changes ? base_ : model_)
    copy.hash = add_to_hash(copy.hash, std::as_const(*range.value).bytes());
  return copy;
}

std::optional<Value> Rounds::value(RangeId range, const Rows& rows) const {
  if (!answers_for(range) || !has_rows(options_.layout->ranges[range], rows)) return std::nullopt;
  const RangeValues& values = rounds_.sums_changes ? base_[range] : model_[range];
  return Value{range, 0, slice_of(options_.layout->ranges[range], values, rows)};
}

RangeState Rounds::state(RangeId range) const {
  RangeValues values = model_[range];
  if (rounds_.sums_changes) {
    values.value = base_[range].value;
    values.samples = base_[range].samples;
  }
  RangeState state = state_of(range, values, progress_, options_.workers);
  state.round = round_;
  return state;
}

std::vector<WorkerProgress> Rounds::progress() const {
  StepsOfWorkers all = progress_;
  if (own_.steps > 0) {
    WorkerSteps& self = all[{options_.self.id, options_.self.incarnation}];
    self = {round_ + own_.steps, self.samples + own_.samples};
  }
  return progress_of(all);
}

}  // namespace starling::core
