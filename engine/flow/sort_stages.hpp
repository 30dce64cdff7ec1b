/// Makes the three stages of a sort: a sample of the keys, the splitters, and the shuffle by range.
/// Thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/flow/shuffle_stages.hpp"

namespace starling::flow {

/// A uniform sample of the keys of one part.
template <class K>
struct KeySample {
  std::vector<K> keys;
  /// The number of keys in the part.
  std::uint64_t count = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.keys, m.count); }
};

/// Samples up to `size` keys of each part (reservoir sampling: Vitter, 1985, algorithm R).
template <class K, Chain C, class KeyOf>
[[nodiscard]] StagePtr sample_stage(const C& chain, const KeyOf& key_of, std::size_t size) {
  return make_stage(chain, "sample keys", [key_of, size](Task& task, const C& c) {
    KeySample<K> sample;
    Random random = Random::stream(0, task.part());
    c.run(task, task.part(), [&](const auto& record) {
      ++sample.count;
      if (sample.keys.size() < size) {
        sample.keys.push_back(std::invoke(key_of, record));
      } else if (const std::uint64_t i = random.below(sample.count); i < size) {
        sample.keys[i] = std::invoke(key_of, record);
      }
      return true;
    });
    return sample;
  });
}

/// Makes a RangePartitioner of all samples; the stage has one part.
template <class K>
[[nodiscard]] StagePtr splitter_stage(const StagePtr& samples, Part parts) {
  auto stage = std::make_shared<Stage>();
  stage->description = {"choose splitters", 1};
  stage->inputs = {samples};
  stage->reads = [samples](Part) { return std::vector<StageRead>{{samples, std::nullopt, 0}}; };
  stage->form = output_form<RangePartitioner<K>>();
  stage->run = [samples, parts](Task& task) -> Output {
    std::vector<SampledKey<K>> keys;
    for (const KeySample<K>* sample : task.outputs<KeySample<K>>(samples))
      for (const K& key : sample->keys)
        keys.push_back(
            {key, static_cast<double>(sample->count) / static_cast<double>(sample->keys.size())});
    return std::make_shared<const RangePartitioner<K>>(choose_splitters(std::move(keys), parts));
  };
  return stage;
}

/// The record of a sort by `KeyOf`. std::identity needs no key beside the record.
template <class T, class K, class KeyOf>
using SortRecord =
    std::conditional_t<std::is_same_v<KeyOf, std::identity>, OwnSortKey<T>, WithSortKey<K, T>>;

/// Shuffles records into ranges of keys, sorted within each.
template <class K, Chain C, class KeyOf>
[[nodiscard]] StagePtr sort_stage(const C& chain, const KeyOf& key_of, Part parts) {
  using R = SortRecord<typename C::Value, K, KeyOf>;
  // With this many samples for each part of the result, the largest part is rarely twice as large
  // as the mean.
  constexpr std::size_t samples_per_part = 64;
  constexpr std::size_t least_of_input_part = 32;
  const std::size_t inputs = std::max<std::size_t>(chain.parts(), 1);
  const StagePtr samples = sample_stage<K>(
      chain, key_of, std::max(least_of_input_part, samples_per_part * parts / inputs));
  const StagePtr splitters = splitter_stage<K>(samples, parts);
  const auto compute = [key_of, parts, splitters](Task& task, const C& c) {
    const RangePartitioner<K>& partitioner = *task.outputs<RangePartitioner<K>>(splitters)[0];
    // Another node may have made the partitioner.
    if (partitioner.parts() > parts)
      throw TaskFailure{Error{"the splitters make " + std::to_string(partitioner.parts()) +
                              " parts; valid: at most " + std::to_string(parts)}};
    const Part input_parts = c.parts();
    BucketWriter<R, SortingBuffer<R, KeyOrder>> writer{task, parts};
    c.run(task, task.part(), [&]<class T>(T&& record) {
      decltype(auto) key = std::invoke(key_of, std::as_const(record));
      if (!has_order(key))
        throw std::invalid_argument{
            "the key of sort_by() is NaN; valid: numbers; filter() leaves others out"};
      const Part part = partitioner.part_of(key, task.part(), input_parts);
      if constexpr (std::is_same_v<KeyOf, std::identity>)
        writer.add(part, std::forward<T>(record));
      else
        writer.add(part, key, std::forward<T>(record));
      return true;
    });
    return writer.finish();
  };
  auto stage = make_stage(chain, "sort_by", compute, "range(" + std::to_string(parts) + ")");
  stage->inputs.push_back(splitters);
  stage->reads = [chain, splitters](Part part) {
    std::vector<StageRead> reads{{splitters, std::nullopt, 0}};
    chain.add_reads(part, reads);
    return reads;
  };
  return stage;
}

}  // namespace starling::flow
