/// Schedules, topologies and numbers that the tests of collectives share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"

namespace starling::collective {

inline Topology topology(const std::string& text) { return Topology::parse(text, "t").value(); }

/// Returns an irregular connected topology: a cycle with chords.
inline Topology chords(std::size_t members) {
  std::string text;
  for (std::size_t i = 0; i + 1 < members; ++i)
    text +=
        std::to_string(i) + " " + std::to_string(i + 1) + " " + std::to_string(1 + i % 2) + "\n";
  for (std::size_t i = 0; i + 3 < members; i += 2)
    text += std::to_string(i) + " " + std::to_string(i + 3) + "\n";
  return members == 1 ? Topology{} : topology(text);
}

/// Returns all algorithms that `members` members can run, with several options.
inline std::vector<Algorithm> algorithms_for(std::size_t members) {
  std::vector<Algorithm> algorithms{Ring{},     BinomialTree{}, DoubleTree{},
                                    Doubling{}, Halving{},      Parts{}};
  for (const std::size_t size : {1, 2, 3, 4, 8})
    if (Groups{size}.check(members)) algorithms.emplace_back(Groups{size});
  for (const std::size_t k : {1, 2, 3, 4})
    if (BCube{k}.check(members)) algorithms.emplace_back(BCube{k});
  algorithms.emplace_back(PackedTrees{"chords", std::make_shared<Topology>(chords(members))});
  return algorithms;
}

inline Schedule make(const Algorithm& algorithm, std::size_t members,
                     Operation operation = Operation::all_reduce, Rank root = 0) {
  return make_schedule(algorithm, operation, members, root).value();
}

/// Names a schedule in messages of tests.
inline std::string label(const Algorithm& algorithm, Operation operation, std::size_t members,
                         Rank root) {
  return print(algorithm) + " " + std::string{name(operation)} + " among " +
         std::to_string(members) + ", root " + std::to_string(root);
}

}  // namespace starling::collective
