#include "starling/engine/exchange/collective/program.hpp"

#include <algorithm>

namespace starling::collective {
namespace {

void sort_once_each(std::vector<Rank>& ranks) {
  std::ranges::sort(ranks);
  const auto rest = std::ranges::unique(ranks);
  ranks.erase(rest.begin(), rest.end());
}

}  // namespace

Program make_program(const Schedule& schedule, Rank self) {
  Program program{self, schedule.chunks, {}, {}, {}};
  program.instructions.resize(schedule.chunks.size());
  for (std::uint32_t r = 0; r < schedule.rounds.size(); ++r)
    for (const Move& move : schedule.rounds[r]) {
      auto& instructions = program.instructions[move.chunk];
      if (move.from == self) {
        instructions.push_back({Instruction::Kind::send, move.action, move.to, r});
        program.receivers.push_back(move.to);
      } else if (move.to == self) {
        instructions.push_back({Instruction::Kind::receive, move.action, move.from, r});
        program.senders.push_back(move.from);
      }
    }
  sort_once_each(program.senders);
  sort_once_each(program.receivers);
  return program;
}

}  // namespace starling::collective
