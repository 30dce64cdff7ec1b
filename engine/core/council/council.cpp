#include "starling/engine/core/council/council.hpp"

#include <algorithm>
#include <string>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

void insert(std::vector<MemberId>& ids, MemberId id) {
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
  cause_since_.reset();
  asked_at_.reset();
  lost_since_.reset();
  answers_.clear();
  reported_.clear();
  std::erase_if(reports_, [&](const auto& report) {
    return !configuration_->contains(report.first.id, report.first.incarnation);
  });
  requesters_.clear();
  std::erase_if(suspicions_, [&](const Suspicion& suspicion) {
    return !configuration_->contains(suspicion.id, suspicion.incarnation);
  });
  std::erase_if(pending_, [&](const PendingChange& change) {
    const Member& member = change.member;
    return change.leave ? !configuration_->contains(member.id, member.incarnation)
                        : configuration_->has_had(member.id, member.incarnation);
  });
  report_suspicions(context);
  review(context);
}

void Council::suspect(const CouncilContext& context, MemberId id, Incarnation incarnation) {
  if (!configuration_ || !configuration_->contains(id, incarnation)) return;
  if (id == options_.self.id || suspects(id)) return;
  suspicions_.push_back({id, incarnation, context.now});
  report_suspicions(context);
  review(context);
}

void Council::trust(const CouncilContext& context, MemberId id, Incarnation incarnation) {
  const auto is_meant = [&](const Suspicion& suspicion) {
    return suspicion.id == id && suspicion.incarnation == incarnation;
  };
  if (std::erase_if(suspicions_, is_meant) == 0) return;
  lost_since_.reset();
  report_suspicions(context);
  review(context);
}

void Council::join(const CouncilContext& context, const Member& member) {
  if (configuration_ && configuration_->has_had(member.id, member.incarnation)) return;
  add(context, {member, false, context.now + options_.change_holds});
}

void Council::leave(const CouncilContext& context, const Member& member) {
  if (!configuration_ || !configuration_->contains(member.id, member.incarnation)) return;
  add(context, {member, true, context.now + options_.change_holds});
}

void Council::add(const CouncilContext& context, const PendingChange& change) {
  const auto same = std::ranges::find_if(
      pending_, [&](const PendingChange& other) { return other.member.id == change.member.id; });
  if (same == pending_.end())
    pending_.push_back(change);
  else if (same->member.incarnation <= change.member.incarnation)
    *same = change;
  review(context);
}

void Council::on_full_ranges(const CouncilContext& context, std::vector<RangeId> full) {
  if (full == full_ranges_) return;
  full_ranges_ = std::move(full);
  for (const MemberId requester : requesters_)
    context.out.push_back(CouncilSend{requester, RangeReport{configuration_->epoch, full_ranges_}});
}

bool Council::suspects(MemberId id) const {
  return std::ranges::find(suspicions_, id, &Suspicion::id) != suspicions_.end();
}

bool Council::on(const CouncilContext& context, MemberId from, const CouncilMessage& message) {
  if (!configuration_) return false;
  if (const auto* report = std::get_if<SuspicionReport>(&message)) {
    receive(context, from, *report);
    return true;
  }
  const auto epoch_of = []<class M>(const M& m) {
    if constexpr (std::is_same_v<M, SuspicionReport>)
      return Epoch{0};
    else
      return m.epoch;
  };
  const bool is_of_now =
      std::holds_alternative<Ask>(message) || std::holds_alternative<RangeReport>(message);
  const Epoch expected = configuration_->epoch + (is_of_now ? 0 : 1);
  if (std::visit(epoch_of, message) != expected) return false;
  if (!is_of_now && !configuration_->in_council(from)) return true;  // has no vote
  std::visit([&](const auto& m) { receive(context, from, m); }, message);
  return true;
}

void Council::on_timer(const CouncilContext& context) {
  timer_.fired(context.now);
  for (const Suspicion& suspicion : suspicions_) {
    if (context.now < suspicion.since + options_.patience) continue;
    context.out.push_back(Fail{"member " + std::to_string(suspicion.id) +
                               " is silent, and no majority of the council decided without it"});
    return;
  }
  report_suspicions(context);
  review(context);
}

/// Reports suspicions that led to no decision in time to the council; sets timers for the others.
void Council::report_suspicions(const CouncilContext& context) {
  std::vector<MemberIncarnation> silent;
  for (const Suspicion& suspicion : suspicions_) {
    const Time due = suspicion.since + options_.report_after;
    if (due <= context.now) silent.push_back({suspicion.id, suspicion.incarnation});
    wake(context, due <= context.now ? suspicion.since + options_.patience : due);
  }
  if (silent == reported_) return;
  reported_ = std::move(silent);
  send_council(context, SuspicionReport{reported_});
}

// --- answering proposers ------------------------------------------------------------------------

void Council::receive(const CouncilContext& context, MemberId from, const Ask&) {
  insert(requesters_, from);
  context.out.push_back(CouncilSend{from, RangeReport{configuration_->epoch, full_ranges_}});
}

/// Raises the highest known round. Returns false if the ballot's round is too far ahead: then the
/// known round rises by a part of the way, so that a sender that repeats the ballot is believed in
/// the end, because it may know rounds that this member does not.
bool Council::learn_round(const Ballot& ballot) {
  const bool is_near =
      ballot.round <= highest_.round || ballot.round - highest_.round <= round_jump_max;
  highest_ = std::max(highest_, is_near ? ballot : Ballot{highest_.round + round_jump_max, 0});
  return is_near;
}

void Council::receive(const CouncilContext& context, MemberId from, const Prepare& prepare) {
  if (!configuration_->in_council(options_.self.id)) return;
  if (!learn_round(prepare.ballot)) return;
  if (prepare.ballot < promised_) {
    context.out.push_back(CouncilSend{from, Nack{prepare.epoch, promised_}});
    return;
  }
  promised_ = prepare.ballot;
  context.out.push_back(
      CouncilSend{from, Promise{prepare.epoch, prepare.ballot, accepted_, accepted_value_}});
}

void Council::receive(const CouncilContext& context, MemberId from, const Accept& accept) {
  if (!configuration_->in_council(options_.self.id)) return;
  if (!learn_round(accept.ballot)) return;
  if (accept.ballot < promised_) {
    context.out.push_back(CouncilSend{from, Nack{accept.epoch, promised_}});
    return;
  }
  promised_ = accepted_ = accept.ballot;
  accepted_value_ = accept.value;
  context.out.push_back(CouncilSend{from, Accepted{accept.epoch, accept.ballot}});
}

// --- proposing ----------------------------------------------------------------------------------

void Council::receive(const CouncilContext& context, MemberId from, const RangeReport& report) {
  const auto known =
      std::ranges::find(answers_, from, &std::pair<MemberId, std::vector<RangeId>>::first);
  if (known == answers_.end())
    answers_.emplace_back(from, report.full);
  else
    known->second = report.full;
  review(context);
}

void Council::receive(const CouncilContext& context, MemberId from, const Promise& promise) {
  if (phase_ != Phase::preparing || promise.ballot != ballot_) return;
  if (promise.value && (!value_ || promise.accepted > best_accepted_)) {
    best_accepted_ = promise.accepted;
    value_ = promise.value;
  }
  insert(voters_, from);
  if (!is_quorum(configuration_->council, voters_)) return;
  // Proposes again a value that may have been decided already, else the changes wanted now.
  if (!value_) value_ = next(context);
  if (!value_) {
    phase_ = Phase::idle;
    return;
  }
  phase_ = Phase::accepting;
  voters_.clear();
  send_council(context, Accept{configuration_->epoch + 1, ballot_, value_});
}

void Council::receive(const CouncilContext& context, MemberId from, const Accepted& accepted) {
  if (phase_ != Phase::accepting || accepted.ballot != ballot_) return;
  insert(voters_, from);
  if (!is_quorum(configuration_->council, voters_)) return;
  phase_ = Phase::idle;
  context.out.push_back(Decided{value_});
}

void Council::receive(const CouncilContext& context, MemberId, const Nack& nack) {
  (void)learn_round(nack.promised);
  if (phase_ == Phase::idle || nack.promised <= ballot_) return;
  phase_ = Phase::idle;
  Time wait = options_.back_off;
  for (unsigned i = 0; i < losses_ && wait < options_.back_off_max; ++i) wait *= 2;
  ++losses_;
  retry_at_ = context.now + wait +
              Time{static_cast<Time::rep>(
                  context.random.below(static_cast<std::uint64_t>(wait.count()) + 1))};
  wake(context, retry_at_);
}

void Council::receive(const CouncilContext& context, MemberId from, const SuspicionReport& report) {
  const Member* sender = configuration_->find(from);
  if (sender == nullptr) return;
  reports_[{from, sender->incarnation}] = report.silent;
  review(context);
}

/// Proposes the next configuration where a change is due and it is this member's turn.
void Council::review(const CouncilContext& context) {
  std::erase_if(pending_, [&](const PendingChange& change) { return change.until < context.now; });
  if (!configuration_ || phase_ != Phase::idle) return;
  if (!configuration_->in_council(options_.self.id)) return;
  if (!has_cause(context.now)) return cause_since_.reset();
  if (!cause_since_) cause_since_ = context.now;
  const Time turn = *cause_since_ + static_cast<Time::rep>(rank()) * options_.turn;
  const Time from = std::max(turn, retry_at_);
  if (context.now < from) return wake(context, from);
  if (!asked_at_) ask_everyone(context);
  if (next(context)) begin_ballot(context);
}

/// Returns how many council members are to propose before this one.
std::size_t Council::rank() const {
  return static_cast<std::size_t>(std::ranges::count_if(configuration_->council, [&](MemberId id) {
    return id < options_.self.id && !suspects(id);
  }));
}

/// True where the next configuration would differ, or a range be lost, if all owners were full.
bool Council::has_cause(Time now) const {
  PendingChanges ideal = pending(now);
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

/// True where `id` has answered, or is suspected and need not answer.
bool Council::heard(MemberId id) const {
  return suspects(id) ||
         std::ranges::any_of(answers_, [&](const auto& answer) { return answer.first == id; });
}

bool Council::answered_all() const {
  return std::ranges::all_of(configuration_->members,
                             [&](const Member& member) { return heard(member.id); });
}

bool Council::owners_answered_of(RangeId range) const {
  return std::ranges::all_of(configuration_->ranges[range].owners,
                             [&](const RangeOwner& owner) { return heard(owner.id); });
}

/// Returns the members to remove so that no member that stays suspects another that stays. This
/// member stays, for the others receive from it: in a report between it and another, the other
/// goes. Then the member in the most reports goes, and so on; among equals, the one that is
/// reported most.
std::vector<MemberId> Council::at_odds() const {
  using Pair = std::pair<MemberId, MemberId>;
  std::vector<Pair> open;
  const auto stays = [&](MemberId id) { return id == options_.self.id; };
  for (const auto& [by, silent] : reports_)
    for (const auto& [of, incarnation] : silent)
      if (configuration_->contains(of, incarnation) && !suspects(by.id) && !suspects(of) &&
          !(stays(by.id) && stays(of)))
        open.emplace_back(by.id, of);
  std::vector<MemberId> gone;
  const auto let_go = [&](MemberId id) {
    gone.push_back(id);
    std::erase_if(open, [&](const Pair& pair) { return pair.first == id || pair.second == id; });
  };
  const auto is_settled = [&](const Pair& pair) { return stays(pair.first) || stays(pair.second); };
  for (auto at = open.begin(); (at = std::ranges::find_if(open, is_settled)) != open.end();)
    let_go(stays(at->first) ? at->second : at->first);
  while (!open.empty()) {
    std::map<MemberId, Pair> counts;  // reports by or about it, reports about it
    for (const auto& [by, of] : open) {
      ++counts[by].first;
      ++counts[of].first;
      ++counts[of].second;
    }
    let_go(std::ranges::max_element(counts, {}, [](const auto& entry) {
             return std::pair{entry.second, entry.first};
           })->first);
  }
  return gone;
}

PendingChanges Council::pending(Time now) const {
  PendingChanges all{.copies = options_.copies, .owners = options_.owners, .bsp = options_.bsp};
  for (const PendingChange& change : pending_) {
    if (change.until < now) continue;
    if (change.leave)
      all.leaves.push_back(change.member.id);
    else
      all.joins.push_back(change.member);
  }
  for (const Suspicion& suspicion : suspicions_) all.dead.push_back(suspicion.id);
  for (const MemberId id : at_odds()) all.dead.push_back(id);
  std::ranges::sort(all.dead);
  for (RangeId r = 0; r < configuration_->ranges.size(); ++r) {
    // A primary always holds its range.
    const Ownership& range = configuration_->ranges[r];
    auto& full = all.full.emplace_back();
    if (!range.owners.empty()) full.push_back(range.owners.front().id);
    for (const auto& [id, ranges] : answers_)
      if (range.find(id) != nullptr && std::ranges::binary_search(ranges, r)) insert(full, id);
  }
  return all;
}

ConfigurationPtr Council::next(const CouncilContext& context) {
  if (!answered_all() && asked_at_ && context.now < *asked_at_ + options_.ask_within) {
    wake(context, *asked_at_ + options_.ask_within);
    return nullptr;
  }
  PendingChanges wanted = pending(context.now);
  Successor successor = next_configuration(*configuration_, wanted);
  if (!successor.lost.empty() && !suspicions_.empty()) {
    // Reports of other members must not cost a range: removes only what this member suspects.
    std::erase_if(wanted.dead, [&](MemberId id) { return !suspects(id); });
    successor = next_configuration(*configuration_, wanted);
  }
  if (successor.lost.empty()) {
    lost_since_.reset();
    return successor.next;
  }
  // Every owner of such a range answers in the end, or is suspected.
  if (!std::ranges::all_of(successor.lost, [&](RangeId r) { return owners_answered_of(r); }))
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
  for (const MemberId id : configuration_->council) context.out.push_back(CouncilSend{id, message});
}

void Council::wake(const CouncilContext& context, Time at) { timer_.want(context, at); }

}  // namespace starling::core
