#include "starling/engine/core/sample_gate.hpp"

#include <algorithm>

#include "starling/barrier/sampling.hpp"

namespace starling::core {

SampleGate::SampleGate(barrier::Barrier barrier, barrier::Recheck recheck, WorkerId self,
                       Members members)
    : barrier_(std::move(barrier)), recheck_(recheck), self_(self), members_(std::move(members)) {
  exclude(self_);
}

bool SampleGate::begin(const Context& context, Step own, Time automatic) {
  own_ = own;
  automatic_ = automatic;
  return draw(context);
}

bool SampleGate::resume(const Context& context) {
  alarm_.forget();
  return phase_ != Phase::idle && draw(context);
}

bool SampleGate::draw(const Context& context) {
  ++draw_;
  seen_.clear();
  silent_.clear();
  laggard_.reset();
  const auto others = static_cast<std::uint32_t>(members_->size() - excluded_.size());
  const auto beta = static_cast<std::uint32_t>(barrier::observes(barrier_, others));
  if (beta == 0 || barrier::floor(barrier_, own_) == Step{0}) {
    phase_ = Phase::idle;
    return true;
  }
  ++counts_.draws;
  barrier::draw(others, beta, context.random, picks_);
  for (std::uint32_t pick : picks_) {
    for (const std::uint32_t position : excluded_) {
      if (pick < position) break;
      ++pick;
    }
    const WorkerId other = (*members_)[pick];
    silent_.push_back(other);
    context.send(ToWorker{other}, StepQuery{self_, draw_});
  }
  phase_ = Phase::asking;
  wait_until(context, context.now + query_timeout);
  return false;
}

bool SampleGate::on(const Context& context, const StepAnswer& answer) {
  if (phase_ != Phase::asking || answer.draw != draw_) return false;
  const auto asked = std::ranges::find(silent_, answer.from);
  if (asked == silent_.end()) return false;
  silent_.erase(asked);
  seen_.push_back(answer.step);
  const auto floor = barrier::floor(barrier_, own_);
  if (floor && answer.step < *floor) {
    refuse(context, answer.from);
    return false;
  }
  return silent_.empty() && judge(context);
}

bool SampleGate::on(const Context& context, const CaughtUp& note) {
  return phase_ == Phase::refused && note.draw == draw_ && draw(context);
}

bool SampleGate::on_timer(const Context& context) {
  alarm_.fired(context.now);
  if (phase_ == Phase::idle) return false;
  if (context.now < deadline_) {
    alarm_.want(context, deadline_);
    return false;
  }
  if (phase_ == Phase::asking) {
    // The silent count as behind: as step 0, which only a rule without a floor can still admit.
    seen_.resize(seen_.size() + silent_.size(), 0);
    return judge(context);
  }
  if (!waits_for_notice()) return draw(context);
  ask_for_notice(context);  // the wish or its answer may have been lost
  wait_until(context, context.now + query_timeout);
  return false;
}

bool SampleGate::on_left(const Context& context, WorkerId worker) {
  exclude(worker);
  const bool concerns_draw = laggard_ == worker || std::ranges::count(silent_, worker) > 0;
  return phase_ != Phase::idle && concerns_draw && draw(context);
}

void SampleGate::exclude(WorkerId worker) {
  const auto at = std::ranges::find(*members_, worker);
  if (at == members_->end()) return;
  const auto position = static_cast<std::uint32_t>(at - members_->begin());
  const auto place = std::ranges::lower_bound(excluded_, position);
  if (place == excluded_.end() || *place != position) excluded_.insert(place, position);
}

/// Decides a draw of which everything is known that will be.
bool SampleGate::judge(const Context& context) {
  if (!barrier::admits(barrier_, own_, seen_)) {
    refuse(context, std::nullopt);
    return false;
  }
  phase_ = Phase::idle;
  ++counts_.passes;
  return true;
}

void SampleGate::refuse(const Context& context, std::optional<WorkerId> laggard) {
  phase_ = Phase::refused;
  laggard_ = laggard;
  if (recheck_.notify && laggard) ask_for_notice(context);
  const bool fixed = recheck_.interval && *recheck_.interval != barrier::Recheck::automatic;
  const Time otherwise = waits_for_notice() ? query_timeout : automatic_;
  wait_until(context, context.now + (fixed ? *recheck_.interval : otherwise));
}

bool SampleGate::waits_for_notice() const {
  return recheck_.notify && laggard_ && !recheck_.interval;
}

void SampleGate::ask_for_notice(const Context& context) const {
  context.send(ToWorker{*laggard_}, NotifyAt{self_, draw_, *barrier::floor(barrier_, own_)});
}

void SampleGate::wait_until(const Context& context, Time deadline) {
  deadline_ = deadline;
  alarm_.want(context, deadline);
}

}  // namespace starling::core
