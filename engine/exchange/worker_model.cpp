#include "starling/engine/exchange/worker_model.hpp"

namespace starling::core {

bool is_valid(const ExchangeScope& scope, const ModelRequest& request) {
  return scope.has_range(request.range);
}

bool is_valid(const ExchangeScope& scope, const ModelReply& reply) {
  return scope.has_range(reply.range) && (!reply.copy || is_valid(scope, reply.range, *reply.copy));
}

WorkerModel::WorkerModel(ExchangeOptions options) : options_(std::move(options)) {
  if (options_.self.works) values_.resize(options_.layout->ranges.size());
}

void WorkerModel::take_initial_states() {
  const std::vector<RangeState>& states = *options_.initial_states;
  for (const RangeState& state : states)
    values_.at(state.range) = values_of(*options_.layout, *options_.applier, state);
  for (MemberId worker = 0; worker < options_.workers; ++worker) {
    const LedgerEntry entry = first_ledger_entry(states, worker);
    if (entry.step > 0 || entry.samples > 0)
      record_progress({worker, entry.incarnation}, {entry.step, entry.samples});
  }
}

bool WorkerModel::initial_state_contains(RangeId range, Step step) const {
  const std::vector<LedgerEntry>& ledger = (*options_.initial_states)[range].ledger;
  if (self().id >= ledger.size()) return false;
  const LedgerEntry& entry = ledger[self().id];
  return entry.incarnation == self().incarnation && step <= entry.step;
}

void WorkerModel::record_progress(const MemberIncarnation& worker, const WorkerSteps& progress) {
  WorkerSteps& known = progress_[worker];
  if (progress.step >= known.step) known = progress;
}

void WorkerModel::record_progress(const std::vector<WorkerProgress>& workers) {
  for (const WorkerProgress& one : workers) record_progress(one.worker, {one.step, one.samples});
}

WorkerSteps WorkerModel::known_steps(const MemberIncarnation& worker) const {
  const auto known = progress_.find(worker);
  return known == progress_.end() ? WorkerSteps{} : known->second;
}

std::uint64_t WorkerModel::samples_of_all() const {
  std::uint64_t samples = 0;
  for (const auto& [worker, progress] : progress_) samples += progress.samples;
  return samples;
}

ModelReply WorkerModel::reply_to(const ModelRequest& request) const {
  ModelReply reply{.range = request.range, .copy = nullptr};
  if (!has_copy(request.range)) return reply;
  auto copy =
      std::make_shared<ModelCopy>(ModelCopy{.state = state(request.range), .progress = progress()});
  copy->state.ledger.clear();
  reply.copy = std::move(copy);
  return reply;
}

/// Returns false if the sender has no copy, or a copy that does not fit, which only a faulty member
/// sends.
bool WorkerModel::install(const ModelReply& reply) {
  if (!reply.copy || !fits(*options_.layout, *options_.applier, reply.copy->state)) return false;
  values_[reply.range] = values_of(*options_.layout, *options_.applier, reply.copy->state);
  record_progress(reply.copy->progress);
  ++full_ranges_version_;
  source_.on_copy();
  return true;
}

std::optional<Value> WorkerModel::value(RangeId range, const Rows& rows) const {
  if (!answers_for(range) || !has_rows(options_.layout->ranges[range], rows)) return std::nullopt;
  return Value{range, 0, slice_of(options_.layout->ranges[range], values_[range], rows)};
}

RangeState WorkerModel::state(RangeId range) const {
  RangeState state = state_of(range, values_[range], progress_, options_.workers);
  // values_[range].samples has only the samples that were known when the last learning rate was
  // chosen.
  state.samples = samples_of_all();
  return state;
}

}  // namespace starling::core
