#include "starling/engine/core/council.hpp"

#include <algorithm>
#include <string>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

void insert(std::vector<WorkerId>& ids, WorkerId id) {
  const auto place = std::ranges::lower_bound(ids, id);
  if (place == ids.end() || *place != id) ids.insert(place, id);
}

}  // namespace

void Council::on_configuration(const CouncilContext& context, ConfigurationPtr configuration) {
  STARLING_CHECK(!configuration_ || configuration->epoch > configuration_->epoch);
  configuration_ = std::move(configuration);
  promised_ = accepted_ = ballot_ = highest_ = {};
  accepted_value_ = value_ = nullptr;
  phase_ = Phase::idle;
  losses_ = 0;
  retry_at_ = {};
  asked_at_.reset();
  lost_since_.reset();
  answers_.clear();
  askers_.clear();
  std::erase_if(suspicions_, [&](const Suspicion& suspicion) {
    return !configuration_->contains(suspicion.id, suspicion.life);
  });
  std::erase_if(wishes_, [&](const Wish& wish) {
    const Member* member = configuration_->find(wish.member.id);
    if (wish.leave) return member == nullptr || member->life != wish.member.life;
    return member != nullptr && member->life >= wish.member.life;
  });
  review(context);
}

void Council::suspect(const CouncilContext& context, WorkerId id) {
  const Member* member = configuration_ ? configuration_->find(id) : nullptr;
  if (member == nullptr || id == options_.self.id || suspects(id)) return;
  suspicions_.push_back({id, member->life, context.now});
  wake(context, context.now + options_.patience);
  review(context);
}

void Council::trust(const CouncilContext& context, WorkerId id) {
  std::erase_if(suspicions_, [&](const Suspicion& suspicion) { return suspicion.id == id; });
  lost_since_.reset();
  review(context);
}

void Council::join(const CouncilContext& context, const Member& member) {
  const Member* known = configuration_ ? configuration_->find(member.id) : nullptr;
  if (known != nullptr && known->life >= member.life) return;
  wish(context, {member, false, context.now + options_.wish_holds});
}

void Council::leave(const CouncilContext& context, const Member& member) {
  if (!configuration_ || !configuration_->contains(member.id, member.life)) return;
  wish(context, {member, true, context.now + options_.wish_holds});
}

void Council::wish(const CouncilContext& context, const Wish& wish) {
  const auto same = std::ranges::find_if(
      wishes_, [&](const Wish& other) { return other.member.id == wish.member.id; });
  if (same == wishes_.end())
    wishes_.push_back(wish);
  else if (same->member.life <= wish.member.life)
    *same = wish;
  review(context);
}

void Council::hold(const CouncilContext& context, std::vector<RangeId> full) {
  if (full == held_) return;
  held_ = std::move(full);
  for (const WorkerId asker : askers_)
    context.out.push_back(CouncilSend{asker, Holdings{configuration_->epoch, held_}});
}

bool Council::suspects(WorkerId id) const {
  return std::ranges::find(suspicions_, id, &Suspicion::id) != suspicions_.end();
}

WorkerId Council::leader() const {
  for (const WorkerId id : configuration_->council)
    if (!suspects(id)) return id;
  return configuration_->council.front();
}

bool Council::on(const CouncilContext& context, WorkerId from, const CouncilMessage& message) {
  const auto epoch_of = [](const auto& m) { return m.epoch; };
  const bool asks =
      std::holds_alternative<Ask>(message) || std::holds_alternative<Holdings>(message);
  if (!configuration_) return false;
  const Epoch expected = configuration_->epoch + (asks ? 0 : 1);
  if (std::visit(epoch_of, message) != expected) return false;
  std::visit([&](const auto& m) { hear(context, from, m); }, message);
  return true;
}

void Council::on_timer(const CouncilContext& context) {
  alarm_.fired(context.now);
  for (const Suspicion& suspicion : suspicions_) {
    if (context.now < suspicion.since + options_.patience) {
      wake(context, suspicion.since + options_.patience);
      continue;
    }
    context.out.push_back(Fail{"member " + std::to_string(suspicion.id) +
                               " is silent, and no majority of the council decided without it"});
    return;
  }
  std::erase_if(wishes_, [&](const Wish& wish) { return wish.until < context.now; });
  review(context);
}

// --- whoever is asked ---------------------------------------------------------------------------

void Council::hear(const CouncilContext& context, WorkerId from, const Ask&) {
  insert(askers_, from);
  context.out.push_back(CouncilSend{from, Holdings{configuration_->epoch, held_}});
}

void Council::hear(const CouncilContext& context, WorkerId from, const Prepare& prepare) {
  if (!configuration_->in_council(options_.self.id)) return;
  highest_ = std::max(highest_, prepare.ballot);
  if (prepare.ballot < promised_) {
    context.out.push_back(CouncilSend{from, Refuse{prepare.epoch, promised_}});
    return;
  }
  promised_ = prepare.ballot;
  context.out.push_back(
      CouncilSend{from, Promise{prepare.epoch, prepare.ballot, accepted_, accepted_value_}});
}

void Council::hear(const CouncilContext& context, WorkerId from, const Accept& accept) {
  if (!configuration_->in_council(options_.self.id)) return;
  highest_ = std::max(highest_, accept.ballot);
  if (accept.ballot < promised_) {
    context.out.push_back(CouncilSend{from, Refuse{accept.epoch, promised_}});
    return;
  }
  promised_ = accepted_ = accept.ballot;
  accepted_value_ = accept.value;
  context.out.push_back(CouncilSend{from, Accepted{accept.epoch, accept.ballot}});
}

// --- whoever proposes ---------------------------------------------------------------------------

void Council::hear(const CouncilContext& context, WorkerId from, const Holdings& holdings) {
  const auto known =
      std::ranges::find(answers_, from, &std::pair<WorkerId, std::vector<RangeId>>::first);
  if (known == answers_.end())
    answers_.emplace_back(from, holdings.full);
  else
    known->second = holdings.full;
  review(context);
}

void Council::hear(const CouncilContext& context, WorkerId from, const Promise& promise) {
  if (phase_ != Phase::preparing || promise.ballot != ballot_) return;
  if (promise.value && (!value_ || promise.accepted > best_accepted_)) {
    best_accepted_ = promise.accepted;
    value_ = promise.value;
  }
  insert(voters_, from);
  if (!is_quorum(configuration_->council, voters_)) return;
  // Whatever may have been decided already is proposed again; else what is wanted now.
  if (!value_) value_ = next(context);
  if (!value_) {
    phase_ = Phase::idle;
    return;
  }
  phase_ = Phase::accepting;
  voters_.clear();
  send_council(context, Accept{configuration_->epoch + 1, ballot_, value_});
}

void Council::hear(const CouncilContext& context, WorkerId from, const Accepted& accepted) {
  if (phase_ != Phase::accepting || accepted.ballot != ballot_) return;
  insert(voters_, from);
  if (!is_quorum(configuration_->council, voters_)) return;
  phase_ = Phase::idle;
  context.out.push_back(Decided{value_});
}

void Council::hear(const CouncilContext& context, WorkerId, const Refuse& refuse) {
  highest_ = std::max(highest_, refuse.promised);
  if (phase_ == Phase::idle || refuse.promised <= ballot_) return;
  phase_ = Phase::idle;
  Time wait = options_.back_off;
  for (unsigned i = 0; i < losses_ && wait < options_.back_off_max; ++i) wait *= 2;
  ++losses_;
  retry_at_ = context.now + wait +
              Time{static_cast<Time::rep>(
                  context.random.below(static_cast<std::uint64_t>(wait.count()) + 1))};
  wake(context, retry_at_);
}

/// Something may have become worth proposing.
void Council::review(const CouncilContext& context) {
  if (!configuration_ || phase_ != Phase::idle || leader() != options_.self.id) return;
  if (!configuration_->in_council(options_.self.id)) return;
  if (!has_cause()) return;
  if (context.now < retry_at_) return wake(context, retry_at_);
  if (!asked_at_) ask_everyone(context);
  if (next(context)) begin_ballot(context);
}

/// True where the next configuration would be another one, were everyone full.
bool Council::has_cause() const {
  Wishes ideal = wishes();
  ideal.full.clear();
  for (const Ownership& range : configuration_->ranges) {
    auto& full = ideal.full.emplace_back();
    for (const RangeOwner& owner : range.owners) full.push_back(owner.id);
  }
  const Successor successor = next_configuration(*configuration_, ideal);
  return successor.next || !successor.lost.empty();
}

void Council::ask_everyone(const CouncilContext& context) {
  asked_at_ = context.now;
  for (const Member& member : configuration_->members)
    context.out.push_back(CouncilSend{member.id, Ask{configuration_->epoch}});
  wake(context, context.now + options_.ask_within);
}

bool Council::heard_all() const {
  return std::ranges::all_of(configuration_->members, [&](const Member& member) {
    return suspects(member.id) || std::ranges::any_of(answers_, [&](const auto& answer) {
             return answer.first == member.id;
           });
  });
}

bool Council::heard_owners_of(RangeId range) const {
  return std::ranges::all_of(configuration_->ranges[range].owners, [&](const RangeOwner& owner) {
    return suspects(owner.id) || std::ranges::any_of(answers_, [&](const auto& answer) {
             return answer.first == owner.id;
           });
  });
}

Wishes Council::wishes() const {
  Wishes all{.copies = options_.copies, .bulk = options_.bulk};
  for (const Wish& wish : wishes_) {
    if (wish.leave)
      all.leaves.push_back(wish.member.id);
    else
      all.joins.push_back(wish.member);
  }
  for (const Suspicion& suspicion : suspicions_) all.dead.push_back(suspicion.id);
  std::ranges::sort(all.dead);
  for (RangeId r = 0; r < configuration_->ranges.size(); ++r) {
    // A primary is one because it holds the range.
    const Ownership& range = configuration_->ranges[r];
    auto& full = all.full.emplace_back();
    if (!range.owners.empty()) full.push_back(range.owners.front().id);
    for (const auto& [id, ranges] : answers_)
      if (range.find(id) != nullptr && std::ranges::binary_search(ranges, r)) insert(full, id);
  }
  return all;
}

ConfigurationPtr Council::next(const CouncilContext& context) {
  if (!heard_all() && asked_at_ && context.now < *asked_at_ + options_.ask_within) {
    wake(context, *asked_at_ + options_.ask_within);
    return nullptr;
  }
  Wishes wanted = wishes();
  Successor successor = next_configuration(*configuration_, wanted);
  if (successor.lost.empty()) {
    lost_since_.reset();
    return successor.next;
  }
  // Whoever owns such a range and is alive answers in the end, or is suspected.
  if (!std::ranges::all_of(successor.lost, [&](RangeId r) { return heard_owners_of(r); }))
    return nullptr;
  if (!lost_since_) lost_since_ = context.now;
  if (context.now < *lost_since_ + options_.give_up_after) {
    wake(context, *lost_since_ + options_.give_up_after);
    return nullptr;
  }
  wanted.give_up = true;
  return next_configuration(*configuration_, wanted).next;
}

void Council::begin_ballot(const CouncilContext& context) {
  phase_ = Phase::preparing;
  ballot_ = {highest_.round + 1, options_.self.id};
  highest_ = ballot_;
  voters_.clear();
  best_accepted_ = {};
  value_ = nullptr;
  send_council(context, Prepare{configuration_->epoch + 1, ballot_});
}

void Council::send_council(const CouncilContext& context, const CouncilMessage& message) const {
  for (const WorkerId id : configuration_->council) context.out.push_back(CouncilSend{id, message});
}

void Council::wake(const CouncilContext& context, Time at) { alarm_.want(context, at); }

}  // namespace starling::core
