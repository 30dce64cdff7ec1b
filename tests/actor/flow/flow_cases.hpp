/// Random data and helpers for the tests of data sets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/flow/map_reduce.hpp"
#include "starling/base/random.hpp"

namespace starling::flow {

using Pairs = std::vector<std::pair<std::string, int>>;

inline MapReduce make_engine(std::size_t threads, Part parts = 5,
                             std::size_t memory_bytes = std::size_t{1} << 28U) {
  return MapReduce::make({.threads = threads, .parts = parts, .memory_bytes = memory_bytes})
      .value();
}

/// Draws up to `size_max` pairs with one of `keys` keys, some of which are not ASCII.
inline Pairs random_pairs(Random& random, std::size_t size_max, std::uint64_t keys) {
  Pairs pairs(random.below(size_max + 1));
  for (auto& [key, value] : pairs) {
    const std::uint64_t number = random.below(keys);
    key = (number % 3 == 0   ? "ключ"
           : number % 3 == 1 ? ""
                             : "a key that is allocated ") +
          std::to_string(number);
    value = static_cast<int>(random.below(1000)) - 500;
  }
  return pairs;
}

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
}

/// Runs a case for several threads, numbers of parts and keys: from no data to many records of one
/// key, and keys that are all different. `check(engine, random, size_max, keys)`.
template <class Check>
void for_each_case(const Check& check) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random = Random::stream(7, seed);
    const MapReduce engine = make_engine(1 + seed % 8, static_cast<Part>(1 + random.below(9)));
    const std::size_t size_max = seed % 10 == 0 ? 0 : random.below(200);
    const std::uint64_t keys = seed % 4 == 0 ? 1 : seed % 4 == 1 ? 1'000'000 : 1 + random.below(30);
    check(engine, random, size_max, keys);
  }
}

}  // namespace starling::flow
