/// Chains that bring equal keys together after a shuffle by hash. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "starling/engine/flow/chain/shuffle_reader.hpp"
#include "starling/engine/flow/shuffle/key_groups.hpp"

namespace starling::flow {

/// Gives one value for each key, to which `combine` has reduced all values of the key.
template <class K, class V, class Combine>
class ReduceChain : public StageReaderChain {
 public:
  using Value = std::pair<K, V>;

  ReduceChain(StagePtr shuffle, const char* name, Part parts, Combine combine)
      : StageReaderChain(std::move(shuffle), name, parts), combine_(std::move(combine)) {}

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    ShuffleReader<Keyed<K, V>, HashOrder> reader{task, stage(), part};
    KeyGroups<K, std::optional<V>> groups;
    std::uint64_t key_number = 0;
    const auto add = [&](Keyed<K, V>& record) {
      std::optional<V>& sum = groups[std::move(record.key)];
      if (sum)
        sum = std::invoke(combine_, std::as_const(*sum), std::as_const(record.value));
      else
        sum = std::move(record.value);
    };
    const auto use = [&](K& key, std::optional<V>& sum) {
      const bool goes_on = sink(Value{std::move(key), *std::move(sum)});
      ++key_number;
      return goes_on;
    };
    run_located(
        [&] {
          while (reader.get()) {
            read_records_with_hash(reader, reader.get()->hash, add);
            if (!groups.drain(use)) return;
          }
        },
        [&] { return location_in_part(operations(), part, key_number); });
  }

 private:
  Combine combine_;
};

/// Gives all values of each key, in the order of the data set.
template <class K, class V>
class GroupChain : public StageReaderChain {
 public:
  using Value = std::pair<K, std::vector<V>>;
  using StageReaderChain::StageReaderChain;

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    ShuffleReader<Keyed<K, V>, HashOrder> reader{task, stage(), part};
    KeyGroups<K, std::vector<V>> groups;
    std::uint64_t key_number = 0;
    const auto add = [&](Keyed<K, V>& record) {
      groups[std::move(record.key)].push_back(std::move(record.value));
    };
    const auto use = [&](K& key, std::vector<V>& values) {
      const bool goes_on = sink(Value{std::move(key), std::move(values)});
      ++key_number;
      return goes_on;
    };
    run_located(
        [&] {
          while (reader.get()) {
            read_records_with_hash(reader, reader.get()->hash, add);
            if (!groups.drain(use)) return;
          }
        },
        [&] { return location_in_part(operations(), part, key_number); });
  }
};

}  // namespace starling::flow
