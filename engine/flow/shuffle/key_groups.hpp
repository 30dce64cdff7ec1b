/// Groups of equal keys in runs that are sorted by hash. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "starling/engine/flow/shuffle/merge.hpp"
#include "starling/engine/flow/shuffle/order.hpp"

namespace starling::flow {

/// Values by key, for the few keys with one hash: almost always there is one.
template <class K, class A>
class KeyGroups {
 public:
  /// Returns the value of `key`, or an empty one if the key is new.
  A& operator[](const K& key) {
    for (auto& [known, value] : groups_)
      if (known == key) return value;
    return groups_.emplace_back(key, A{}).second;
  }

  /// Calls `use(key, value)` for each key in the order in which they came. `use` may move from
  /// both, and returns false to stop; then this returns false.
  template <class Use>
  bool drain(const Use& use) {
    for (auto& [key, value] : groups_)
      if (!use(key, value)) return false;
    groups_.clear();
    return true;
  }

 private:
  std::vector<std::pair<K, A>> groups_;
};

/// Calls `add(record)` for all records of `reader` with the hash `hash`, which must be the smallest
/// that is left.
template <class Reader, class Add>
void read_hash(Reader& reader, std::uint64_t hash, const Add& add) {
  for (; reader.get() && reader.get()->hash == hash; reader.advance()) add(*reader.get());
}

}  // namespace starling::flow
