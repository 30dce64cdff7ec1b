#include "starling/engine/exchange/allreduce/allreduce.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

std::string_view algorithm_of(const ExchangeOptions& options) {
  const std::string_view argument = exchange_argument(options.name);
  if (argument.empty()) return allreduce_algorithms.front();
  const auto found = std::ranges::find(allreduce_algorithms, argument);
  STARLING_CHECK(found != allreduce_algorithms.end());
  return *found;
}

}  // namespace

static_assert(Exchange<AllreduceExchange>);

AllreduceExchange::AllreduceExchange(ExchangeOptions options)
    : options_(std::move(options)), pending_snapshot_(options_.pending_snapshot) {}

// --- this worker's reads and writes -------------------------------------------------------------

/// A worker that joins reads after it has entered, which it does once it has a copy.
void AllreduceExchange::read(const Context& context, const Read& read) {
  STARLING_CHECK(has_model());
  context.out.push_back(read_from(
      *options_.layout, read, [&](RangeId range) -> const RangeValues& { return model_[range]; }));
}

void AllreduceExchange::write(const Context& context, Write write) {
  write_ = std::move(write);
  answer_worker(context);
  begin_next_sum(context);
}

void AllreduceExchange::enter(const Context& context, const Enter&) {
  is_entering_ = true;
  answer_worker(context);
}

/// From now on this member takes part in sums without an update.
void AllreduceExchange::end(const Context& context, const EndWrites&) {
  has_ended_ = true;
  is_entering_ = false;
  begin_next_sum(context);
}

/// Tells the worker at which step it begins, or that the model contains its update.
void AllreduceExchange::answer_worker(const Context& context) {
  if (!has_model()) return;
  if (std::exchange(is_entering_, false)) context.out.push_back(Written{round_});
  if (!write_ || write_->step > round_) return;
  context.out.push_back(Written{write_->step});
  write_.reset();
}

// --- rounds -------------------------------------------------------------------------------------

/// Starts the sum of the next round if this member has all before it, and its part of it.
void AllreduceExchange::begin_next_sum(const Context& context) {
  const bool has_part = write_ || (has_ended_ && !have_all_ended_);
  if (!is_ready_ || !has_part || !sum_->can_start()) return;
  STARLING_CHECK(!write_ || write_->step == round_ + 1);
  run_sum(context, [&](auto& out) { sum_->start(out, write_ ? &write_->update : nullptr); });
}

/// Lets `event` act on the sum, sends its messages, and completes the round if the sum is complete.
template <class Event>
void AllreduceExchange::run_sum(const Context& context, Event event) {
  RoundSum::Sends sends;
  event(sends);
  for (auto& [rank, message] : sends)
    std::visit([&](auto& m) { context.send(workers_[rank].id, std::move(m)); }, message);
  if (sum_->is_complete()) complete_round(context);
  begin_next_sum(context);
}

void AllreduceExchange::complete_round(const Context& context) {
  const auto samples = sum_->samples();
  sum_->apply(model_);
  others_have_rounds_ = has_ended_ && !write_;
  have_all_ended_ =
      std::ranges::none_of(samples, [](const auto& update) { return update.has_value(); });
  if (have_all_ended_) return;
  ++round_;
  std::uint64_t in_round = 0;
  for (std::size_t rank = 0; rank < samples.size(); ++rank) {
    if (!samples[rank]) continue;
    WorkerSteps& steps = progress_[workers_[rank]];
    steps.step = round_;
    steps.samples += *samples[rank];
    in_round += *samples[rank];
  }
  for (RangeValues& range : model_) range.samples += in_round;
  answer_worker(context);
  observe_round(context);
}

bool AllreduceExchange::on(const Context& context, MemberId from, const SumPiece& piece) {
  if (!sum_ || !is_of_now(piece.epoch)) return true;
  const auto rank = std::ranges::find(workers_, from, &MemberIncarnation::id) - workers_.begin();
  run_sum(context, [&](auto& out) { sum_->on(out, static_cast<collective::Rank>(rank), piece); });
  return true;
}

bool AllreduceExchange::on(const Context& context, MemberId from, const SumProgress& progress) {
  if (!sum_ || !is_of_now(progress.epoch)) return true;
  const auto rank = std::ranges::find(workers_, from, &MemberIncarnation::id) - workers_.begin();
  run_sum(context,
          [&](auto& out) { sum_->on(out, static_cast<collective::Rank>(rank), progress); });
  return true;
}

// --- members ------------------------------------------------------------------------------------

void AllreduceExchange::on_configuration(const Context& context, const ConfigurationPtr& next,
                                         Epoch former) {
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
void AllreduceExchange::begin_epoch(const Context& context) {
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
  if (workers_.size() > allreduce_workers_max)
    return context.out.push_back(Fail{std::to_string(workers_.size()) +
                                      " workers; exchange allreduce sums over at most " +
                                      std::to_string(allreduce_workers_max)});
  sum_ = make_round_sum({options_.layout, options_.applier, algorithm_of(options_), options_.window,
                         configuration_->epoch, workers_.size(), rank});
}

void AllreduceExchange::take_initial_states() {
  for (const RangeState& state : *options_.initial_states) {
    model_.push_back(values_of(*options_.layout, *options_.applier, state));
    for (MemberId worker = 0; worker < state.ledger.size(); ++worker) {
      const LedgerEntry& entry = state.ledger[worker];
      if (entry.step > 0 || entry.samples > 0)
        progress_[{worker, entry.incarnation}] = {entry.step, entry.samples};
      round_ = std::max(round_, entry.step);
    }
  }
}

bool AllreduceExchange::on(const Context& context, MemberId from, const RoundReport& report) {
  if (!is_of_now(report.epoch)) return report.epoch > configuration_->epoch;
  reports_[from] = report.round;
  agree(context);
  return true;
}

/// Once all workers have reported: goes on from the latest round that any of them has, or first
/// gets the model of this round from the worker with the lowest id that has it.
void AllreduceExchange::agree(const Context& context) {
  if (!sum_ || is_ready_ || catch_up_ || reports_.size() + 1 < workers_.size()) return;
  const auto own = has_model() ? std::optional{round_} : std::nullopt;
  auto latest = own;
  for (const auto& [worker, round] : reports_) latest = std::max(latest, round);
  if (!latest)
    return context.out.push_back(
        Fail{"no worker has a copy of the parameters; valid: start from a checkpoint"});
  if (own == latest) {
    is_ready_ = true;
    return begin_next_sum(context);
  }
  const auto source =
      std::ranges::find_if(reports_, [&](const auto& report) { return report.second == latest; });
  const std::size_t ranges = options_.layout->ranges.size();
  catch_up_ = {
      .source = source->first, .round = *latest, .next = 0, .ranges = {}, .missing = ranges};
  catch_up_->ranges.resize(ranges);
  for (std::size_t i = 0; i < options_.window; ++i) ask_for_next_range(context);
}

void AllreduceExchange::ask_for_next_range(const Context& context) {
  if (catch_up_->next == catch_up_->ranges.size()) return;
  context.send(catch_up_->source, CatchUpRequest{configuration_->epoch, catch_up_->next++});
}

/// The model is of the round that this member has reported: no sum is complete without the one who
/// asks.
bool AllreduceExchange::on(const Context& context, MemberId from, const CatchUpRequest& request) {
  if (!is_of_now(request.epoch) || !has_model()) return true;
  auto copy = std::make_shared<ModelCopy>(ModelCopy{state(request.range), progress()});
  copy->state.ledger.clear();
  context.send(from, CatchUpReply{request.epoch, request.range, std::move(copy)});
  return true;
}

bool AllreduceExchange::on(const Context& context, MemberId from, const CatchUpReply& reply) {
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

/// Replaces the model by the one that has come.
void AllreduceExchange::install(const Context& context,
                                const std::vector<WorkerProgress>& progress) {
  model_.clear();
  for (auto& range : catch_up_->ranges) model_.push_back(*std::move(range));
  round_ = catch_up_->round;
  progress_.clear();
  for (const WorkerProgress& one : progress) progress_[one.worker] = {one.step, one.samples};
  catch_up_.reset();
  ++changes_;
  is_ready_ = true;
  answer_worker(context);
  observe_round(context);
  begin_next_sum(context);
}

// --- observers ----------------------------------------------------------------------------------

void AllreduceExchange::on(const Context& context, const Snapshot& request) {
  if (request.round == 0)
    return observe_states(*this, context, request, options_.layout->ranges.size());
  pending_snapshot_ = request;
  observe_round(context);
}

/// Answers a Snapshot of the present round; if the round is over, says so.
void AllreduceExchange::observe_round(const Context& context) {
  if (pending_snapshot_.round == 0 || round_ < pending_snapshot_.round) return;
  const bool is_over = round_ > pending_snapshot_.round;
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

std::optional<Value> AllreduceExchange::value(RangeId range, const Rows& rows) const {
  if (!answers_for(range) || !has_rows(options_.layout->ranges[range], rows)) return std::nullopt;
  return Value{range, 0, slice_of(options_.layout->ranges[range], model_[range], rows)};
}

RangeState AllreduceExchange::state(RangeId range) const {
  RangeState state = state_of(range, model_[range], progress_, options_.workers);
  state.round = round_;
  return state;
}

}  // namespace starling::core
