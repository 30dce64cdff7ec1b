#include "starling/engine/exchange/collective/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/check.hpp"

namespace starling::collective {

std::vector<Chunk> equal_chunks(std::size_t n) {
  return {n, Chunk{.share = 1.0 / static_cast<double>(n)}};
}

Schedule with_broadcast(Schedule reduce) {
  const std::size_t reduce_rounds = reduce.rounds.size();
  reduce.rounds.reserve(2 * reduce_rounds);
  for (std::size_t r = reduce_rounds; r-- > 0;) {
    Round back = reduce.rounds[r];
    for (Move& move : back) {
      std::swap(move.from, move.to);
      move.action = ReceiveAction::copy;
    }
    reduce.rounds.push_back(std::move(back));
  }
  return reduce;
}

Schedule pipelined(const Schedule& schedule, std::size_t slices) {
  STARLING_CHECK(slices >= 1);
  Schedule result{schedule.members, schedule.ports, {}, {}};
  for (const Chunk& chunk : schedule.chunks)
    for (std::size_t s = 0; s < slices; ++s) {
      result.chunks.push_back(chunk);
      result.chunks.back().share /= static_cast<double>(slices);
    }
  if (schedule.rounds.empty()) return result;
  result.rounds.resize(schedule.rounds.size() + slices - 1);
  for (std::size_t r = 0; r < schedule.rounds.size(); ++r)
    for (Move move : schedule.rounds[r]) {
      const auto first = static_cast<ChunkId>(move.chunk * slices);
      for (std::size_t s = 0; s < slices; ++s) {
        move.chunk = static_cast<ChunkId>(first + s);
        result.rounds[r + s].push_back(move);
      }
    }
  return result;
}

std::vector<std::size_t> chunk_bounds(std::span<const Chunk> chunks, std::size_t size) {
  std::vector<std::size_t> bounds{0};
  double share = 0;
  for (const Chunk& chunk : chunks) {
    share += chunk.share;
    const auto end = static_cast<std::size_t>(std::llround(share * static_cast<double>(size)));
    bounds.push_back(std::min(end, size));
  }
  bounds.back() = size;
  return bounds;
}

std::vector<std::size_t> slice_bounds(std::span<const Chunk> chunks, std::size_t size,
                                      std::uint32_t slices) {
  const auto chunk_begins = chunk_bounds(chunks, size);
  std::vector<std::size_t> bounds;
  bounds.reserve(chunks.size() * slices + 1);
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const std::size_t begin = chunk_begins[chunk];
    const std::size_t chunk_size = chunk_begins[chunk + 1] - begin;
    for (std::uint32_t slice = 0; slice < slices; ++slice)
      bounds.push_back(begin + chunk_size * slice / slices);
  }
  bounds.push_back(size);
  return bounds;
}

std::vector<std::vector<ScheduledMove>> moves_by_chunk(const Schedule& schedule) {
  std::vector<std::vector<ScheduledMove>> moves(schedule.chunks.size());
  for (std::size_t r = 0; r < schedule.rounds.size(); ++r)
    for (const Move& move : schedule.rounds[r]) moves[move.chunk].push_back({r, move});
  return moves;
}

std::size_t count_moves(const Schedule& schedule) {
  std::size_t moves = 0;
  for (const Round& round : schedule.rounds) moves += round.size();
  return moves;
}

std::string print(const Move& move) {
  return std::to_string(move.from) + " -> " + std::to_string(move.to) +
         (move.action == ReceiveAction::add ? " adds chunk " : " copies chunk ") +
         std::to_string(move.chunk);
}

}  // namespace starling::collective
