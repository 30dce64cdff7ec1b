#include "starling/engine/exchange/collective/check.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace starling::collective {
namespace {

/// By member: whether a value holds the member's contribution. A value that does not exist holds
/// none.
using Contributions = std::vector<bool>;

bool is_empty(const Contributions& value) { return std::ranges::find(value, true) == value.end(); }

/// Returns "member 3", or "members 1, 2, 5": those for which `is_named` is true.
template <class Named>
std::string members_text(std::size_t members, Named is_named) {
  std::string list;
  std::size_t count = 0;
  for (std::size_t i = 0; i < members; ++i) {
    if (!is_named(i)) continue;
    list += (count++ > 0 ? ", " : " ") + std::to_string(i);
  }
  return (count == 1 ? "member" : "members") + list;
}

Error at(const ScheduledMove& scheduled, const std::string& fault) {
  return Error{"round " + std::to_string(scheduled.round + 1) + ": " + print(scheduled.move) +
               ": " + fault};
}

Result<void> check_names(const Schedule& schedule) {
  const std::size_t members = schedule.members;
  double share = 0;
  for (const Chunk& chunk : schedule.chunks) {
    share += chunk.share;
    if (!(chunk.share >= 0) || chunk.source.value_or(0) >= members ||
        chunk.destination.value_or(0) >= members)
      return Error{"chunk " + std::to_string(&chunk - schedule.chunks.data()) +
                   ": a negative share, or a source or a destination that is not a member"};
  }
  if (std::abs(share - 1) > 1e-9)
    return Error{"the chunks' shares sum to " + std::to_string(share) + ", not to 1"};
  for (std::size_t r = 0; r < schedule.rounds.size(); ++r)
    for (const Move& move : schedule.rounds[r]) {
      if (move.from >= members || move.to >= members || move.chunk >= schedule.chunks.size() ||
          move.port >= schedule.ports)
        return at({r, move}, "no such member, chunk or port");
      if (move.from == move.to) return at({r, move}, "sender and receiver are the same");
    }
  return {};
}

/// Follows one chunk through the rounds, and checks its moves.
class ChunkChecker {
 public:
  ChunkChecker(const Schedule& schedule, ChunkId chunk)
      : members_(schedule.members),
        chunk_(chunk),
        wanted_(members_, !schedule.chunks[chunk].source),
        destination_(schedule.chunks[chunk].destination),
        values_(members_, Contributions(members_, false)) {
    if (const auto source = schedule.chunks[chunk].source) wanted_[*source] = true;
    for (std::size_t i = 0; i < members_; ++i) values_[i][i] = wanted_[i];
  }

  /// Executes the moves of one round.
  Result<void> execute(const ScheduledMove* begin, const ScheduledMove* end) {
    for (const ScheduledMove* scheduled = begin; scheduled != end; ++scheduled)
      if (auto clear = check_conflicts(*scheduled, begin, end); !clear) return clear;
    std::vector<Contributions> sent;  // what the senders have before the round
    for (const ScheduledMove* scheduled = begin; scheduled != end; ++scheduled)
      sent.push_back(values_[scheduled->move.from]);
    for (const ScheduledMove* scheduled = begin; scheduled != end; ++scheduled)
      if (auto done = execute(*scheduled, sent[static_cast<std::size_t>(scheduled - begin)]); !done)
        return done;
    return {};
  }

  [[nodiscard]] Result<void> check_end() const {
    for (std::size_t i = 0; i < members_; ++i) {
      if (destination_.value_or(static_cast<Rank>(i)) != i || values_[i] == wanted_) continue;
      const auto lacks = [&](std::size_t j) { return wanted_[j] && !values_[i][j]; };
      return Error{"chunk " + std::to_string(chunk_) + " at member " + std::to_string(i) +
                   " lacks the contribution of " + members_text(members_, lacks)};
    }
    return {};
  }

 private:
  static Result<void> check_conflicts(const ScheduledMove& scheduled, const ScheduledMove* begin,
                                      const ScheduledMove* end) {
    for (const ScheduledMove* other = begin; other != end; ++other) {
      if (other == &scheduled) continue;
      if (other->move.to == scheduled.move.to && scheduled.move.action == ReceiveAction::copy)
        return at(scheduled, "in the same round, " + print(other->move) + " writes the same chunk");
      if (other->move == scheduled.move) return at(scheduled, "occurs twice in the round");
    }
    return {};
  }

  Result<void> execute(const ScheduledMove& scheduled, const Contributions& sent) {
    Contributions& value = values_[scheduled.move.to];
    if (is_empty(sent))
      return at(scheduled,
                "member " + std::to_string(scheduled.move.from) + " has no value of the chunk");
    if (scheduled.move.action == ReceiveAction::copy) {
      value = sent;
      return {};
    }
    if (is_empty(value))
      return at(scheduled,
                "member " + std::to_string(scheduled.move.to) + " has no value to add to");
    const auto is_doubled = [&](std::size_t i) { return sent[i] && value[i]; };
    for (std::size_t i = 0; i < members_; ++i)
      if (is_doubled(i))
        return at(scheduled,
                  "counts the contribution of " + members_text(members_, is_doubled) + " twice");
    for (std::size_t i = 0; i < members_; ++i) value[i] = value[i] || sent[i];
    return {};
  }

  std::size_t members_;
  ChunkId chunk_;
  /// The contributions that the result consists of.
  Contributions wanted_;
  std::optional<Rank> destination_;
  /// By member: the contributions that its value of this chunk holds.
  std::vector<Contributions> values_;
};

}  // namespace

Result<void> check(const Schedule& schedule) {
  if (auto named = check_names(schedule); !named) return named;
  const auto moves = moves_by_chunk(schedule);
  for (ChunkId c = 0; c < moves.size(); ++c) {
    ChunkChecker checker{schedule, c};
    const ScheduledMove* const last = moves[c].data() + moves[c].size();
    for (const ScheduledMove* begin = moves[c].data(); begin != last;) {
      const ScheduledMove* end = begin;
      while (end != last && end->round == begin->round) ++end;
      if (auto done = checker.execute(begin, end); !done) return done;
      begin = end;
    }
    if (auto done = checker.check_end(); !done) return done;
  }
  return {};
}

}  // namespace starling::collective
