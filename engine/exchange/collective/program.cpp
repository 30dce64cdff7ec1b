#include "starling/engine/exchange/collective/program.hpp"

#include <algorithm>
#include <iterator>

namespace starling::collective {
namespace {

void sort_and_remove_duplicates(std::vector<Rank>& ranks) {
  std::ranges::sort(ranks);
  const auto rest = std::ranges::unique(ranks);
  ranks.erase(rest.begin(), rest.end());
}

/// Returns true if `from` contributes to a result that `to` gets.
bool contributes(const Schedule& schedule, Rank from, Rank to) {
  return std::ranges::any_of(schedule.chunks, [&](const Chunk& chunk) {
    return chunk.destination.value_or(to) == to && chunk.source.value_or(from) == from;
  });
}

}  // namespace

Program make_program(const Schedule& schedule, Rank self) {
  Program program{self, schedule.chunks, {}, {}, {}, {}, {}};
  program.instructions.resize(schedule.chunks.size());
  for (std::uint32_t r = 0; r < schedule.rounds.size(); ++r) {
    const auto add = [&](const Move& move, Instruction::Kind kind, Rank peer) {
      program.instructions[move.chunk].push_back({kind, move.action, peer, r});
      (kind == Instruction::Kind::send ? program.receivers : program.senders).push_back(peer);
    };
    for (const Move& move : schedule.rounds[r])
      if (move.from == self) add(move, Instruction::Kind::send, move.to);
    for (const Move& move : schedule.rounds[r])
      if (move.to == self) add(move, Instruction::Kind::receive, move.from);
  }
  sort_and_remove_duplicates(program.senders);
  sort_and_remove_duplicates(program.receivers);
  std::ranges::copy_if(program.receivers, std::back_inserter(program.last_acks_from),
                       [&](Rank to) { return !contributes(schedule, to, self); });
  std::ranges::copy_if(program.senders, std::back_inserter(program.last_acks_to),
                       [&](Rank from) { return !contributes(schedule, self, from); });
  return program;
}

}  // namespace starling::collective
