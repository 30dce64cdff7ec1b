/// Random programs of typed data sets, for tests that compare how they run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/flow/chain/sources.hpp"
#include "starling/engine/flow/set.hpp"

namespace starling::flow {

using Records = Set<std::pair<std::string, std::int64_t>>;

/// Makes data sets of a runner, as MapReduce does.
class TestEngine {
 public:
  explicit TestEngine(std::shared_ptr<Runner> runner) : runner_(std::move(runner)) {}

  /// Returns a set of `count` records with at most `keys` keys.
  [[nodiscard]] Records records(std::uint64_t seed, std::uint64_t count, std::uint64_t keys,
                                Part parts) const {
    std::vector<std::pair<std::string, std::int64_t>> values;
    Random random = Random::stream(5, seed);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t key = random.below(keys);
      values.emplace_back((key % 3 == 0 ? "ключ " : "key ") + std::to_string(key),
                          static_cast<std::int64_t>(random.below(1000)) - 500);
    }
    using C = CollectionChain<std::pair<std::string, std::int64_t>>;
    return Set<std::pair<std::string, std::int64_t>, C>{runner_, C{std::move(values), parts}};
  }

 private:
  std::shared_ptr<Runner> runner_;
};

namespace detail {

inline std::pair<std::string, std::int64_t> sum_of(
    const std::pair<std::string, std::vector<std::int64_t>>& group) {
  std::int64_t sum = 0;
  std::int64_t place = 1;
  for (const std::int64_t value : group.second) sum += value * (place++ % 7);
  return {group.first, sum};
}

/// Applies one random operation.
inline Records apply(const TestEngine& engine, const Records& set, Random& random) {
  using Pair = std::pair<std::string, std::int64_t>;
  const auto parts = static_cast<Part>(1 + random.below(5));
  const auto number = static_cast<std::int64_t>(random.below(10));
  switch (random.below(13)) {
    case 0:
      return set.map([number](const Pair& pair) {
        return Pair{pair.first, pair.second * 3 + number};
      });
    case 1:
      return set.filter([number](const Pair& pair) { return pair.second % 5 != number % 5; });
    case 2:
      return set.flat_map([](const Pair& pair) {
        return std::vector<Pair>{pair, {pair.first + "'", pair.second / 2}};
      });
    case 3:
      return set.reduce_by_key(std::plus<>{}, parts);
    case 4:
      return set.group_by_key(parts).map(sum_of);
    case 5:
      return set.sort_by([](const Pair& pair) { return pair.second % 100; }, parts);
    case 6:
      return set.distinct(parts);
    case 7: {
      const Records other = engine.records(random(), random.below(30), 8, 2).distinct(2);
      return set.join(other, parts).map([](const auto& joined) {
        return Pair{joined.first, joined.second.first - joined.second.second};
      });
    }
    case 8:
      return set.union_with(engine.records(random(), random.below(20), 5, parts));
    case 9:
      return set.partition_by(HashPartitioner{parts});
    case 10:
      return set.zip_with_index().map([](const auto& indexed) {
        return Pair{indexed.first.first,
                    indexed.first.second ^ static_cast<std::int64_t>(indexed.second)};
      });
    case 11:
      return set.sample(0.7, random());
    default:
      return set.cache();
  }
}

}  // namespace detail

/// Runs the program of a seed: up to eight operations, with actions between them on whose results
/// the program depends. Returns a text of all that it has seen. If `save` is not null, it gets the
/// last set.
inline Result<std::string> run_random_program(
    const std::shared_ptr<Runner>& runner, std::uint64_t seed,
    const std::function<Result<std::uint64_t>(const Records&)>& save = nullptr) {
  const TestEngine engine{runner};
  Random random = Random::stream(11, seed);
  Records set = engine.records(seed, random.below(80), 1 + random.below(20),
                               static_cast<Part>(1 + random.below(6)));
  std::string seen;
  const std::uint64_t operations = 1 + random.below(8);
  for (std::uint64_t i = 0; i < operations; ++i) {
    set = detail::apply(engine, set, random);
    const std::uint64_t then = random.below(8);
    if (then == 0) {
      const auto count = set.count();
      if (!count) return count.error();
      seen += "count " + std::to_string(*count) + "\n";
      if (*count > 500) set = set.filter([](const auto& pair) { return pair.second % 3 == 0; });
    } else if (then == 1) {
      auto rounds = set.iterate(static_cast<std::uint32_t>(1 + random.below(3)),
                                [](const Records& current, std::uint32_t round) -> Records {
                                  return current
                                      .map([round](const auto& pair) {
                                        return std::pair{pair.first, pair.second + round};
                                      })
                                      .reduce_by_key(std::plus<>{}, 3);
                                });
      if (!rounds) return rounds.error();
      set = *rounds;
    } else if (then == 2) {
      const auto first = set.take(3);
      if (!first) return first.error();
      for (const auto& [key, value] : *first) seen += "first " + key + "\n";
    }
  }
  const auto all = set.collect();
  if (!all) return all.error();
  for (const auto& [key, value] : *all) seen += key + "=" + std::to_string(value) + "\n";
  if (!save) return seen;
  const auto saved = save(set);
  if (!saved) return saved.error();
  return seen + "saved " + std::to_string(*saved) + "\n";
}

/// Returns the number in a variable of the environment.
inline std::uint64_t number_from(const char* variable, std::uint64_t or_else) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? or_else : std::stoull(text);
}

}  // namespace starling::flow
