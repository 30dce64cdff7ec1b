#include "starling/engine/core/council/council.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

void insert_sorted(std::vector<MemberId>& ids, MemberId id) {
  const auto position = std::ranges::lower_bound(ids, id);
  if (position == ids.end() || *position != id) ids.insert(position, id);
}

}  // namespace

void Council::on_configuration(const CouncilContext& context, ConfigurationPtr configuration) {
  STARLING_CHECK(!configuration_ || configuration->epoch > configuration_->epoch);
  configuration_ = std::move(configuration);
  promised_ = accepted_ = ballot_ = highest_ = {};
  accepted_value_ = value_ = nullptr;
  phase_ = Phase::idle;
  lost_ballots_ = 0;
  retry_at_ = {};
  change_due_at_ = asked_at_ = range_lost_at_ = std::nullopt;
  range_reports_.clear();
  own_report_.clear();
  std::erase_if(suspicion_reports_, [&](const auto& report) {
    return !configuration_->contains(report.first.id, report.first.incarnation);
  });
  requesters_.clear();
  std::erase_if(suspicions_, [&](const Suspicion& suspicion) {
    return !configuration_->contains(suspicion.id, suspicion.incarnation);
  });
  std::erase_if(requests_, [&](const auto& r) {
    if (r.is_leave && options_.node_by_node) return true;
    return r.is_leave ? !configuration_->contains(r.member.id, r.member.incarnation)
                      : configuration_->is_or_was_member(r.member.id, r.member.incarnation);
  });
  report_suspicions(context);
  propose_if_due(context);
}

void Council::suspect(const CouncilContext& context, MemberId id, Incarnation incarnation) {
  if (!configuration_ || !configuration_->contains(id, incarnation)) return;
  if (id == options_.self.id || suspects(id)) return;
  suspicions_.push_back({id, incarnation, context.now});
  report_suspicions(context);
  propose_if_due(context);
}

void Council::trust(const CouncilContext& context, MemberId id, Incarnation incarnation) {
  const auto is_same = [&](const Suspicion& suspicion) {
    return suspicion.id == id && suspicion.incarnation == incarnation;
  };
  if (std::erase_if(suspicions_, is_same) == 0) return;
  range_lost_at_.reset();
  report_suspicions(context);
  propose_if_due(context);
}

void Council::join(const CouncilContext& context, const Member& member) {
  if (configuration_ && configuration_->is_or_was_member(member.id, member.incarnation)) return;
  add(context, {member, false, context.now + options_.request_expiry});
}

void Council::leave(const CouncilContext& context, const Member& member, Epoch epoch) {
  if (!configuration_ || !configuration_->contains(member.id, member.incarnation)) return;
  if (options_.node_by_node && epoch != configuration_->epoch) return;
  add(context, {member, true, context.now + options_.request_expiry});
}

void Council::add(const CouncilContext& context, const Request& request) {
  const auto earlier = std::ranges::find_if(
      requests_, [&](const Request& other) { return other.member.id == request.member.id; });
  if (earlier == requests_.end())
    requests_.push_back(request);
  else if (earlier->member.incarnation <= request.member.incarnation)
    *earlier = request;
  propose_if_due(context);
}

void Council::on_full_ranges(const CouncilContext& context, std::vector<RangeId> full) {
  if (full == full_ranges_) return;
  full_ranges_ = std::move(full);
  for (const MemberId requester : requesters_)
    context.out.push_back(CouncilSend{requester, RangeReport{configuration_->epoch, full_ranges_}});
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
  const bool is_query =
      std::holds_alternative<RangeQuery>(message) || std::holds_alternative<RangeReport>(message);
  const Epoch expected = configuration_->epoch + (is_query ? 0 : 1);
  if (std::visit(epoch_of, message) != expected) return false;
  if (!is_query && !configuration_->in_council(from)) return true;  // the sender has no vote
  std::visit([&](const auto& m) { receive(context, from, m); }, message);
  return true;
}

void Council::on_timer(const CouncilContext& context) {
  timer_.remove_due(context.now);
  for (const Suspicion& suspicion : suspicions_) {
    if (context.now < suspicion.suspected_at + options_.stuck_after) continue;
    context.out.push_back(
        Fail{"member " + std::to_string(suspicion.id) +
             " is silent, and no majority of the council has decided to remove it"});
    return;
  }
  report_suspicions(context);
  propose_if_due(context);
}

/// Reports the suspicions that are older than `report_after` to the council; sets timers.
void Council::report_suspicions(const CouncilContext& context) {
  std::vector<MemberIncarnation> silent;
  for (const Suspicion& suspicion : suspicions_) {
    const Time due = suspicion.suspected_at + options_.report_after;
    if (due <= context.now) silent.push_back({suspicion.id, suspicion.incarnation});
    timer_.ensure(context,
                  due <= context.now ? suspicion.suspected_at + options_.stuck_after : due);
  }
  if (silent == own_report_) return;
  own_report_ = std::move(silent);
  send_council(context, SuspicionReport{own_report_});
}

// --- answering proposers ------------------------------------------------------------------------

void Council::receive(const CouncilContext& context, MemberId from, const RangeQuery&) {
  insert_sorted(requesters_, from);
  context.out.push_back(CouncilSend{from, RangeReport{configuration_->epoch, full_ranges_}});
}

/// Raises the highest known ballot to `ballot` if that is higher. Returns false if the round of
/// `ballot` is more than round_jump_max above the highest known round, which then rises by
/// round_jump_max only. If the sender is correct and repeats its ballot, this member will accept
/// the ballot in the end.
bool Council::learn_round(const Ballot& ballot) {
  const bool is_near =
      ballot.round <= highest_.round || ballot.round - highest_.round <= round_jump_max;
  highest_ = std::max(highest_, is_near ? ballot : Ballot{highest_.round + round_jump_max, 0});
  return is_near;
}

void Council::receive(const CouncilContext& context, MemberId from, const Prepare& prepare) {
  if (!configuration_->in_council(options_.self.id) || !learn_round(prepare.ballot)) return;
  if (prepare.ballot < promised_) {
    context.out.push_back(CouncilSend{from, Nack{prepare.epoch, promised_}});
    return;
  }
  promised_ = prepare.ballot;
  context.out.push_back(
      CouncilSend{from, Promise{prepare.epoch, prepare.ballot, accepted_, accepted_value_}});
}

void Council::receive(const CouncilContext& context, MemberId from, const Accept& accept) {
  if (!configuration_->in_council(options_.self.id) || !learn_round(accept.ballot)) return;
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
  range_reports_[from] = report.full;
  if (!is_awaiting_answers(context.now)) propose_if_due(context);
}

void Council::receive(const CouncilContext& context, MemberId from, const Promise& promise) {
  if (phase_ != Phase::preparing || promise.ballot != ballot_) return;
  if (promise.value && (!value_ || promise.accepted > highest_accepted_)) {
    highest_accepted_ = promise.accepted;
    value_ = promise.value;
  }
  insert_sorted(voters_, from);
  if (!is_quorum(configuration_->council, voters_)) return;
  // Proposes the value that an earlier ballot may have decided; if there is none, its own.
  if (!value_) value_ = choose_proposal(context);
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
  insert_sorted(voters_, from);
  if (!is_quorum(configuration_->council, voters_)) return;
  phase_ = Phase::idle;
  context.out.push_back(Decided{value_});
}

void Council::receive(const CouncilContext& context, MemberId, const Nack& nack) {
  (void)learn_round(nack.promised);
  if (phase_ == Phase::idle || nack.promised <= ballot_) return;
  phase_ = Phase::idle;
  Time wait = options_.back_off;
  for (unsigned i = 0; i < lost_ballots_ && wait < options_.back_off_max; ++i) wait *= 2;
  ++lost_ballots_;
  retry_at_ = context.now + wait +
              Time{static_cast<Time::rep>(
                  context.random.below(static_cast<std::uint64_t>(wait.count()) + 1))};
  timer_.ensure(context, retry_at_);
}

void Council::receive(const CouncilContext& context, MemberId from, const SuspicionReport& report) {
  const Member* sender = configuration_->find(from);
  if (sender == nullptr) return;
  suspicion_reports_[{from, sender->incarnation}] = report.silent;
  propose_if_due(context);
}

/// Proposes the next configuration if a change is due and it is this member's turn.
void Council::propose_if_due(const CouncilContext& context) {
  std::erase_if(requests_, [&](const Request& r) { return r.expires_at < context.now; });
  if (!configuration_ || phase_ != Phase::idle) return;
  if (!configuration_->in_council(options_.self.id)) return;
  if (!is_change_due(context.now)) {
    change_due_at_ = range_lost_at_ = std::nullopt;
    return;
  }
  if (!change_due_at_) change_due_at_ = context.now;
  const auto turns = static_cast<Time::rep>(earlier_proposers());
  const Time propose_at = std::max(*change_due_at_ + turns * options_.turn, retry_at_);
  if (context.now < propose_at) return timer_.ensure(context, propose_at);
  if (!asked_at_) ask_everyone(context);
  if (choose_proposal(context)) begin_ballot(context);
}

/// Returns how many council members propose before this one.
std::size_t Council::earlier_proposers() const {
  return static_cast<std::size_t>(std::ranges::count_if(configuration_->council, [&](MemberId id) {
    return id < options_.self.id && !suspects(id);
  }));
}

/// True if the next configuration would change anything, or lose a range, if all owners were full
/// and all members held the same ranges.
bool Council::is_change_due(Time now) const {
  PendingChanges with_all_full = pending_changes(now);
  with_all_full.full.clear();
  for (const Ownership& range : configuration_->ranges) {
    auto& full = with_all_full.full.emplace_back();
    for (const RangeOwner& owner : range.owners) full.push_back(owner.id);
  }
  with_all_full.unplaced_ranges = 0;
  for (const Member& member : configuration_->members) with_all_full.held[member.id] = {};
  const Successor successor = next_configuration(*configuration_, with_all_full);
  return successor.next || !successor.lost.empty();
}

void Council::ask_everyone(const CouncilContext& context) {
  asked_at_ = context.now;
  for (const Member& member : configuration_->members)
    context.out.push_back(CouncilSend{member.id, RangeQuery{configuration_->epoch}});
  timer_.ensure(context, context.now + options_.answer_timeout);
}

/// True if no answer is missing from the members that may hold the range.
bool Council::have_holders_answered(RangeId range) const {
  if (configuration_->ranges.empty()) return has_everyone_answered();
  return std::ranges::none_of(configuration_->ranges[range].owners,
                              [&](const RangeOwner& owner) { return is_answer_missing(owner.id); });
}

/// Returns the members to remove so that no remaining member reports another, except pairs in
/// `staying`. In each pair of a reporter and a reported member, one must go. The members in
/// `staying` stay. Among the others, the member in the most pairs goes first; among equals, the one
/// that most members report, then the one with the highest id. This repeats until no pair is left.
std::vector<MemberId> Council::choose_conflicting(std::span<const MemberId> staying) const {
  using Pair = std::pair<MemberId, MemberId>;  // a reporter and the member that it suspects
  std::vector<Pair> pairs;
  const auto stays = [&](MemberId id) { return is_among(staying, id); };
  for (const auto& [reporter, silent] : suspicion_reports_)
    for (const auto& [suspect, incarnation] : silent)
      if (configuration_->contains(suspect, incarnation) && !suspects(reporter.id) &&
          !suspects(suspect) && !(stays(reporter.id) && stays(suspect)))
        pairs.emplace_back(reporter.id, suspect);
  std::vector<MemberId> removed;
  const auto remove = [&](MemberId id) {
    removed.push_back(id);
    std::erase_if(pairs, [&](const Pair& pair) { return pair.first == id || pair.second == id; });
  };
  const auto is_decided = [&](const Pair& p) { return stays(p.first) || stays(p.second); };
  for (auto pair = pairs.begin(); (pair = std::ranges::find_if(pairs, is_decided)) != pairs.end();)
    remove(stays(pair->first) ? pair->second : pair->first);
  while (!pairs.empty()) {
    std::map<MemberId, Pair> counts;  // by member: its pairs, and those in which it is reported
    for (const auto& [reporter, suspect] : pairs) {
      ++counts[reporter].first;
      ++counts[suspect].first;
      ++counts[suspect].second;
    }
    remove(std::ranges::max_element(counts, {}, [](const auto& entry) {
             return std::pair{entry.second, entry.first};
           })->first);
  }
  return removed;
}

PendingChanges Council::pending_changes(Time now, std::vector<MemberId> staying) const {
  PendingChanges changes{.replication_factor = options_.replication_factor,
                         .owners = options_.owners,
                         .bsp = options_.bsp,
                         .held = range_reports_,
                         .unplaced_ranges = options_.unplaced_ranges,
                         .node_by_node = options_.node_by_node};
  for (const Request& request : requests_) {
    if (request.expires_at < now) continue;
    if (request.is_leave)
      changes.leaves.push_back(request.member.id);
    else
      changes.joins.push_back(request.member);
  }
  for (const Suspicion& suspicion : suspicions_) changes.dead.push_back(suspicion.id);
  staying.push_back(options_.self.id);  // because others receive from it
  for (const MemberId id : choose_conflicting(staying)) changes.dead.push_back(id);
  std::ranges::sort(changes.dead);
  for (RangeId r = 0; r < configuration_->ranges.size(); ++r) {
    // A primary always holds its range.
    const Ownership& range = configuration_->ranges[r];
    auto& full = changes.full.emplace_back();
    if (!range.owners.empty()) full.push_back(range.owners.front().id);
    for (const auto& [id, ranges] : range_reports_)
      if (range.find(id) != nullptr && std::ranges::binary_search(ranges, r))
        insert_sorted(full, id);
  }
  return changes;
}

ConfigurationPtr Council::choose_proposal(const CouncilContext& context) {
  if (is_awaiting_answers(context.now)) {
    timer_.ensure(context, *asked_at_ + options_.answer_timeout);
    return nullptr;
  }
  PendingChanges changes = pending_changes(context.now);
  Successor successor = next_configuration(*configuration_, changes);
  if (!successor.lost.empty()) {
    // If reports of others would cost a range, lets its full owners stay, and others go instead.
    std::vector<MemberId> owners;
    for (const RangeId r : successor.lost)
      if (r < changes.full.size()) std::ranges::copy(changes.full[r], std::back_inserter(owners));
    Successor other = next_configuration(*configuration_, pending_changes(context.now, owners));
    if (other.next && other.lost.empty()) successor = std::move(other);
  }
  if (!successor.lost.empty() && !suspicions_.empty()) {
    // Reports of others must not cost a range: removes only members that this one suspects itself.
    std::erase_if(changes.dead, [&](MemberId id) { return !suspects(id); });
    successor = next_configuration(*configuration_, changes);
  }
  if (successor.lost.empty()) {
    range_lost_at_.reset();
    return successor.next;
  }
  // Waits until everybody who may hold the lost ranges has answered or is suspected.
  if (!std::ranges::all_of(successor.lost, [&](RangeId r) { return have_holders_answered(r); }))
    return nullptr;
  if (!range_lost_at_) range_lost_at_ = context.now;
  if (context.now < *range_lost_at_ + options_.give_up_after) {
    timer_.ensure(context, *range_lost_at_ + options_.give_up_after);
    return nullptr;
  }
  changes.gives_up_lost_ranges = true;
  return next_configuration(*configuration_, changes).next;
}

void Council::begin_ballot(const CouncilContext& context) {
  phase_ = Phase::preparing;
  highest_ = ballot_ = {highest_.round + 1, options_.self.id};
  voters_.clear();
  highest_accepted_ = {};
  value_ = nullptr;
  send_council(context, Prepare{configuration_->epoch + 1, ballot_});
}

}  // namespace starling::core
