/// Schedules, topologies and numbers that the tests of collectives share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"

namespace starling::collective {

/// The NVLink lanes between the eight devices of a DGX-1V, as `nvidia-smi topo -m` lists them: six
/// lanes a device.
inline constexpr const char* dgx_1v =
    "0 1 1\n0 2 1\n0 3 2\n0 4 2\n1 2 2\n1 3 1\n1 5 2\n2 3 2\n2 6 1\n3 7 1\n"
    "4 5 1\n4 6 1\n4 7 2\n5 6 2\n5 7 1\n6 7 2\n";

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

/// Returns all algorithms that so many members can run, with several options.
inline std::vector<Algorithm> algorithms_for(std::size_t members) {
  std::vector<Algorithm> algorithms{Ring{}, BinomialTree{}, DoubleTree{}, Halving{}, Parts{}};
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
