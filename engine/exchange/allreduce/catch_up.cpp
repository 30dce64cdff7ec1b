#include "starling/engine/exchange/allreduce/catch_up.hpp"

#include <algorithm>
#include <string>

namespace starling::core {
namespace {

/// True if the sender of the report has the state of the range after the missing round.
bool has_state(const RoundReport& report, const CatchUp::Missing& missing, RangeId range) {
  if (!report.round) return false;
  const bool has_round = *report.round == missing.round;
  if (!missing.shards_optimizer) return has_round;
  const bool has_next = *report.round + 1 == missing.round;
  return (has_round && std::ranges::binary_search(report.state, range)) ||
         (has_next && std::ranges::binary_search(report.next_state, range));
}

}  // namespace

/// Values come from the worker with the lowest id that has completed the round, and the optimizer's
/// state from the same worker if that has it.
Result<CatchUp> CatchUp::plan(const RoundReports& reports, const Missing& missing,
                              std::size_t ranges, const std::function<bool(RangeId)>& lacks_state) {
  CatchUp plan;
  plan.round_ = missing.round;
  const auto completed = std::ranges::find_if(
      reports, [&](const auto& report) { return report.second.round == missing.round; });
  for (RangeId range = 0; range < ranges; ++range) {
    const bool needs_state = lacks_state(range);
    const bool comes_with_values =
        missing.lacks_values && needs_state && has_state(completed->second, missing, range);
    if (missing.lacks_values)
      plan.parts_.push_back({completed->first, range, true, comes_with_values});
    if (!needs_state || comes_with_values) continue;
    const auto source = std::ranges::find_if(
        reports, [&](const auto& report) { return has_state(report.second, missing, range); });
    if (source == reports.end())
      return Error{"the state of the optimizer of range " + std::to_string(range) +
                   " is lost, because both workers that held it left or died before another worker "
                   "had received it; valid: start from a checkpoint"};
    plan.parts_.push_back({source->first, range, false, true});
  }
  plan.missing_ = plan.parts_.size();
  if (missing.lacks_values) plan.values_.resize(ranges);
  return plan;
}

std::optional<CatchUp::Request> CatchUp::next(Epoch epoch) {
  if (asked_ == parts_.size()) return std::nullopt;
  Part& part = parts_[asked_++];
  part.is_awaited = true;
  return Request{part.source, {epoch, part.range, round_, part.wants_state}};
}

bool CatchUp::take(MemberId from, const CatchUpReply& reply, const Layout& layout,
                   const Applier& applier) {
  const auto part = std::ranges::find_if(parts_, [&](const Part& one) {
    return one.is_awaited && one.source == from && one.range == reply.range;
  });
  if (part == parts_.end() || !fits(layout, applier, reply.copy->state)) return false;
  if (part->wants_state && reply.copy->state.slots.empty() && applier.slot_count() > 0)
    return false;
  part->is_awaited = false;
  --missing_;
  const RangeState& state = reply.copy->state;
  const std::size_t width = applier.element_bytes();
  if (part->wants_state)
    state_[reply.range] =
        state.slots.empty() ? Buffer::zeros(0, width) : Buffer::copy_of(state.slots.bytes(), width);
  if (!part->wants_values) return true;
  values_[reply.range] = {.value = Buffer::copy_of(state.value.bytes(), width),
                          .slots = Buffer::zeros(0, width),
                          .updates = state.updates,
                          .samples = state.samples};
  progress_ = reply.copy->progress;
  return true;
}

}  // namespace starling::core
