#include "starling/engine/core/sample_gate.hpp"

#include <algorithm>

#include "starling/barrier/sampling.hpp"

namespace starling::core {

bool SampleGate::begin(const Context& context, Step own, Time automatic) {
  own_ = own;
  automatic_ = automatic;
  return draw(context);
}

bool SampleGate::again(const Context& context) { return phase_ != Phase::idle && draw(context); }

bool SampleGate::draw(const Context& context) {
  ++draw_;
  ++counts_.draws;
  seen_.clear();
  silent_.clear();
  laggard_.reset();
  const auto& members = *members_;
  const auto self = std::ranges::find(members, self_) - members.begin();
  const auto others = static_cast<std::uint32_t>(members.size() - (self < std::ssize(members)));
  const auto beta = static_cast<std::uint32_t>(barrier::observes(barrier_, others));
  if (beta == 0 || barrier::floor(barrier_, own_) == Step{0}) return pass();

  barrier::draw(others, beta, context.random, picks_);
  for (const std::uint32_t pick : picks_) {
    const WorkerId other = members[pick + (std::cmp_greater_equal(pick, self) ? 1 : 0)];
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
  if (floor && answer.step < *floor) return refuse(context, answer.from);
  if (!silent_.empty()) return false;
  return barrier::admits(barrier_, own_, seen_) ? pass() : refuse(context, std::nullopt);
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
  if (phase_ == Phase::refused) return draw(context);
  // The silent count as behind: as step 0, which only a rule without a floor can still admit.
  seen_.resize(seen_.size() + silent_.size(), 0);
  return barrier::admits(barrier_, own_, seen_) ? pass() : refuse(context, std::nullopt);
}

bool SampleGate::on_left(const Context& context, WorkerId worker) {
  auto remaining = *members_;
  std::erase(remaining, worker);
  members_ = std::make_shared<const std::vector<WorkerId>>(std::move(remaining));
  const bool concerns_draw = laggard_ == worker || std::ranges::count(silent_, worker) > 0;
  return phase_ != Phase::idle && concerns_draw && draw(context);
}

bool SampleGate::pass() {
  phase_ = Phase::idle;
  ++counts_.passes;
  return true;
}

bool SampleGate::refuse(const Context& context, std::optional<WorkerId> laggard) {
  phase_ = Phase::refused;
  laggard_ = laggard;
  const bool notified = recheck_.notify && laggard;
  if (notified)
    context.send(ToWorker{*laggard}, NotifyAt{self_, draw_, *barrier::floor(barrier_, own_)});
  if (recheck_.interval && *recheck_.interval != barrier::Recheck::automatic)
    wait_until(context, context.now + *recheck_.interval);
  else if (recheck_.interval || !notified)  // someone must look again
    wait_until(context, context.now + automatic_);
  else
    deadline_ = Time::max();
  return false;
}

void SampleGate::wait_until(const Context& context, Time deadline) {
  deadline_ = deadline;
  alarm_.want(context, deadline);
}

}  // namespace starling::core
