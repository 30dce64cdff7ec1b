/// How a RoundExchange handles a change of the configuration.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "starling/engine/exchange/allreduce/round_exchange.hpp"

namespace starling::core {
namespace {

RangeValues without_slots(const RangeValues& values) {
  RangeValues without = values;
  without.slots = Buffer::zeros(0, values.value->element_bytes());
  return without;
}

}  // namespace

/// A complete sum that waits for the worker's next step is applied now: it might be the only one
/// with the last update of a worker that is gone.
void RoundExchange::on_configuration(const Context& context, const ConfigurationPtr& next,
                                     Epoch former) {
  if (is_ready_ && sum_->is_complete()) complete_round(context);
  configuration_ = next;
  if (!options_.self.works) return;
  begin_epoch(context);
  if (former == 0 && next->epoch == 1) {
    take_initial_states();
    is_ready_ = true;
    return;
  }
  const RoundReport own = report();
  for (const MemberIncarnation& worker : workers_)
    if (worker.id != options_.self.id) context.send(worker.id, own);
  resume_if_all_reported(context);
}

/// Aborts what the former configuration had in progress.
void RoundExchange::begin_epoch(const Context& context) {
  is_ready_ = false;
  have_all_ended_ = false;
  catch_up_.reset();
  reports_.clear();
  if (sum_)
    if (auto state = sum_->shard_state(); state && !state->empty()) next_state_ = *std::move(state);
  sum_.reset();
  workers_ = other_workers(*configuration_, options_.self.id);
  const auto place =
      std::ranges::upper_bound(workers_, options_.self.id, {}, &MemberIncarnation::id);
  rank_ = static_cast<collective::Rank>(place - workers_.begin());
  if (rounds_.shards_optimizer) {
    shards_ = std::make_shared<const OptimizerShards>(*configuration_);
    // This member must not leave yet: the others have the state of their new shards only after the
    // first sum.
    others_have_rounds_ = false;
  }
  workers_.insert(place, {options_.self.id, options_.self.incarnation});
  if (auto valid = RoundExchange::check_workers(options_.name, workers_.size()); !valid)
    return context.out.push_back(Fail{
        std::move(valid).error().within(std::to_string(workers_.size()) + " workers").message});
  sum_ = make_round_sum({options_.layout, sum_applier_, rounds_.algorithm, rounds_.buckets,
                         options_.window, configuration_->epoch, workers_.size(), rank_, residual_,
                         shards_});
}

void RoundExchange::take_initial_states() {
  for (const RangeState& state : *options_.initial_states) {
    model_.push_back(values_of(*options_.layout, *options_.applier, state));
    if (rounds_.sums_changes) base_.push_back(model_.back());
    if (!keeps_state(state.range)) model_.back() = without_slots(model_.back());
    for (MemberId worker = 0; worker < state.ledger.size(); ++worker) {
      const LedgerEntry& entry = state.ledger[worker];
      if (entry.step > 0 || entry.samples > 0)
        progress_[{worker, entry.incarnation}] = {entry.step, entry.samples};
      synced_step_ = std::max(synced_step_, entry.step);
    }
  }
}

bool RoundExchange::has_state(RangeId range) const {
  return model_[range].slots->size() ==
         options_.applier->slot_count() * options_.layout->ranges[range].count;
}

/// Says what this member has of the last round, and of the next one.
RoundReport RoundExchange::report() const {
  RoundReport own{.epoch = configuration_->epoch, .round = {}};
  if (!has_model()) return own;
  own.round = synced_step_;
  if (!shards_) return own;
  for (RangeId range = 0; range < model_.size(); ++range) {
    if (has_state(range)) own.state.push_back(range);
    if (next_state_.contains(range)) own.next_state.push_back(range);
  }
  return own;
}

bool RoundExchange::on(const Context& context, MemberId from, const RoundReport& report) {
  if (!is_current(report.epoch)) return report.epoch > configuration_->epoch;
  reports_[from] = report;
  resume_if_all_reported(context);
  return true;
}

/// Once all workers have reported: goes on from the latest round that any of them has, or first
/// gets what this member lacks of it from workers that have it.
void RoundExchange::resume_if_all_reported(const Context& context) {
  if (!sum_ || is_ready_ || catch_up_ || reports_.size() + 1 < workers_.size()) return;
  const auto own = has_model() ? std::optional{synced_step_} : std::nullopt;
  auto latest = own;
  for (const auto& [worker, report] : reports_) latest = std::max(latest, report.round);
  if (!latest)
    return context.out.push_back(
        Fail{"no worker has a copy of the parameters; valid: start from a checkpoint"});
  const bool is_behind = own != latest;
  if (!is_behind) next_state_.clear();  // no worker has completed the aborted round
  const auto lacks_state = [&](RangeId range) {
    if (!is_behind) return keeps_state(range) && !has_state(range);
    const bool has_own_optimizer = rounds_.sums_changes && has_model();
    return !has_own_optimizer && keeps_state(range) && !next_state_.contains(range);
  };
  auto plan = CatchUp::plan(reports_,
                            {.round = *latest,
                             .lacks_values = is_behind,
                             .shards_optimizer = shards_ && options_.applier->slot_count() > 0},
                            options_.layout->ranges.size(), lacks_state);
  if (!plan) return context.out.push_back(Fail{std::move(plan).error().message});
  if (plan->is_complete()) {
    is_ready_ = true;
    return go_on(context);
  }
  catch_up_ = *std::move(plan);
  for (std::size_t i = 0; i < options_.window; ++i) ask_for_next_range(context);
}

void RoundExchange::ask_for_next_range(const Context& context) {
  if (const auto next = catch_up_->next(configuration_->epoch))
    context.send(next->source, next->request);
}

/// No sum of this epoch is complete before the asking worker takes part in it. So that worker asks
/// for the last round that this member has completed or, if another worker has completed the round
/// after it, for the optimizer's state after that round. This member has this state in next_state_
/// or, once it has installed that round, in its copy.
bool RoundExchange::on(const Context& context, MemberId from, const CatchUpRequest& request) {
  if (!is_current(request.epoch) || !has_model()) return true;
  const auto next = next_state_.find(request.range);
  const bool is_next = request.round == synced_step_ + 1 && next != next_state_.end();
  if (!is_next && request.round != synced_step_) return true;
  RangeState asked = state(request.range);
  if (is_next) asked.slots = {next->second, 0, next->second->size(), nullptr};
  asked.ledger.clear();
  if (!request.wants_state) asked.slots = {};
  auto copy = std::make_shared<ModelCopy>(ModelCopy{std::move(asked), progress_of(progress_)});
  context.send(from, CatchUpReply{request.epoch, request.range, std::move(copy)});
  return true;
}

bool RoundExchange::on(const Context& context, MemberId from, const CatchUpReply& reply) {
  if (!is_current(reply.epoch) || !catch_up_ ||
      !catch_up_->take(from, reply, *options_.layout, *options_.applier))
    return true;
  if (catch_up_->is_complete())
    install(context);
  else
    ask_for_next_range(context);
  return true;
}

/// Installs the values and the state that have come, and goes on.
void RoundExchange::install(const Context& context) {
  const bool has_values = !catch_up_->values().empty();
  if (has_values) install_values();
  for (const auto& [range, slots] : catch_up_->state()) {
    model_[range].slots = slots;
    if (rounds_.sums_changes) base_[range].slots = slots;
  }
  catch_up_.reset();
  is_ready_ = true;
  if (has_values) {
    answer_worker(context);
    answer_pending_snapshot(context);
  }
  go_on(context);
}

/// Replaces the model by the one that has come. The latest round in it contains this worker's
/// steps, because no sum is complete without them.
void RoundExchange::install_values() {
  if (residual_) residual_->commit();
  auto& values = catch_up_->values();
  if (rounds_.sums_changes) base_ = values;
  if (rounds_.sums_changes && has_model())
    reset_model_to_base();
  else
    model_ = std::move(values);
  for (const auto& [range, slots] : std::exchange(next_state_, {})) model_[range].slots = slots;
  synced_step_ = catch_up_->round();
  progress_.clear();
  for (const WorkerProgress& one : catch_up_->progress())
    progress_[one.worker] = {one.step, one.samples};
  ++full_ranges_version_;
}

}  // namespace starling::core
