#include "starling/engine/core/worker/sample_gate.hpp"

#include <algorithm>

#include "starling/barrier/sampling.hpp"

namespace starling::core {

namespace {

/// A joining worker that finds no worker that has begun asks again after this time.
constexpr Time entry_retry = std::chrono::milliseconds{20};

}  // namespace

SampleGate::SampleGate(barrier::Barrier barrier, barrier::Recheck recheck, MemberId self,
                       Members members)
    : barrier_(std::move(barrier)), recheck_(recheck), self_(self), members_(std::move(members)) {
  exclude(self_);
}

bool SampleGate::begin(const Context& context, Step own, Time automatic) {
  own_ = own;
  automatic_ = automatic;
  return draw(context);
}

bool SampleGate::enter(const Context& context) {
  phase_ = Phase::entering;
  breadth_ = std::max<std::size_t>(1, barrier::observes(barrier_, others()));
  return draw(context);
}

bool SampleGate::resume(const Context& context) {
  timer_.forget();
  return phase_ != Phase::idle && draw(context);
}

std::uint32_t SampleGate::others() const {
  return static_cast<std::uint32_t>(members_->size() - excluded_.size());
}

bool SampleGate::draw(const Context& context) {
  ++draw_;
  seen_.clear();
  silent_.clear();
  laggard_.reset();
  if (phase_ == Phase::entering) {
    lowest_ = 0;
    if (others() == 0) {
      phase_ = Phase::idle;
      return true;
    }
    ask(context, static_cast<std::uint32_t>(std::min<std::size_t>(breadth_, others())));
    return false;
  }
  const auto beta = static_cast<std::uint32_t>(barrier::observes(barrier_, others()));
  if (beta == 0 || barrier::floor(barrier_, own_) == Step{0}) {
    phase_ = Phase::idle;
    return true;
  }
  ++counts_.draws;
  phase_ = Phase::asking;
  ask(context, beta);
  return false;
}

void SampleGate::ask(const Context& context, std::uint32_t count) {
  barrier::draw(others(), count, context.random, picks_);
  for (std::uint32_t pick : picks_) {
    for (const std::uint32_t position : excluded_) {
      if (pick < position) break;
      ++pick;
    }
    const MemberId other = (*members_)[pick];
    silent_.push_back(other);
    context.send(ToWorker{other}, StepQuery{self_, draw_});
  }
  wait_until(context, context.now + query_timeout);
}

bool SampleGate::on(const Context& context, const StepAnswer& answer) {
  const bool asks = phase_ == Phase::asking || phase_ == Phase::entering;
  if (!asks || answer.draw != draw_) return false;
  const auto asked = std::ranges::find(silent_, answer.from);
  if (asked == silent_.end()) return false;
  silent_.erase(asked);
  seen_.push_back(answer.step);
  if (phase_ == Phase::entering) return silent_.empty() && judge_entry(context);
  const auto floor = barrier::floor(barrier_, own_);
  if (floor && answer.step < *floor) {
    refuse(context, answer.from);
    return false;
  }
  return silent_.empty() && judge(context);
}

bool SampleGate::on(const Context& context, const Notice& notice) {
  return phase_ == Phase::refused && notice.draw == draw_ && draw(context);
}

bool SampleGate::on_timer(const Context& context) {
  timer_.fired(context.now);
  if (phase_ == Phase::idle) return false;
  if (context.now < deadline_) {
    timer_.want(context, deadline_);
    return false;
  }
  if (phase_ == Phase::entering) return silent_.empty() ? draw(context) : judge_entry(context);
  if (phase_ == Phase::asking) {
    // Silent workers count as behind: as step 0, which only a rule without a floor can still admit.
    seen_.resize(seen_.size() + silent_.size(), 0);
    return judge(context);
  }
  if (!waits_for_notice()) return draw(context);
  ask_for_notice(context);  // the request or its answer may have been lost
  wait_until(context, context.now + query_timeout);
  return false;
}

bool SampleGate::on_left(const Context& context, MemberId worker) {
  exclude(worker);
  const bool concerns_draw = laggard_ == worker || std::ranges::count(silent_, worker) > 0;
  return phase_ != Phase::idle && concerns_draw && draw(context);
}

bool SampleGate::on_members(const Context& context, Members members,
                            const std::vector<MemberId>& changed) {
  members_ = std::move(members);
  excluded_.clear();
  exclude(self_);
  const auto has_changed = [&](MemberId id) { return std::ranges::binary_search(changed, id); };
  const bool concerns_draw =
      (laggard_ && has_changed(*laggard_)) || std::ranges::any_of(silent_, has_changed);
  return phase_ != Phase::idle && concerns_draw && draw(context);
}

void SampleGate::exclude(MemberId worker) {
  const auto at = std::ranges::find(*members_, worker);
  if (at == members_->end()) return;
  const auto position = static_cast<std::uint32_t>(at - members_->begin());
  const auto place = std::ranges::lower_bound(excluded_, position);
  if (place == excluded_.end() || *place != position) excluded_.insert(place, position);
}

/// Decides a draw once all have answered or time is up.
bool SampleGate::judge(const Context& context) {
  if (!barrier::admits(barrier_, own_, seen_)) {
    refuse(context, std::nullopt);
    return false;
  }
  phase_ = Phase::idle;
  ++counts_.passes;
  return true;
}

/// Decides at which step to begin, or when to ask again.
bool SampleGate::judge_entry(const Context& context) {
  const bool heard_all = silent_.empty() && seen_.size() == others();
  std::erase(seen_, not_begun);
  silent_.clear();
  const bool first_of_all = members_->empty() || std::ranges::min(*members_) == self_;
  if (!seen_.empty() || (heard_all && first_of_all)) {
    lowest_ = seen_.empty() ? 0 : std::ranges::min(seen_);
    phase_ = Phase::idle;
    return true;
  }
  breadth_ = std::min(2 * breadth_, members_->size() + 1);
  wait_until(context, context.now + entry_retry);
  return false;
}

void SampleGate::refuse(const Context& context, std::optional<MemberId> laggard) {
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
  context.send(ToWorker{*laggard_}, NotifyRequest{self_, draw_, *barrier::floor(barrier_, own_)});
}

void SampleGate::wait_until(const Context& context, Time deadline) {
  deadline_ = deadline;
  timer_.want(context, deadline);
}

}  // namespace starling::core
