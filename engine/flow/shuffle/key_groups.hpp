/// Groups records with equal keys that are read from runs sorted by hash. Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace starling::flow {

/// A map from keys to values, searched from its beginning: it holds only the keys that share one
/// hash, of which there is nearly always one.
template <class K, class A>
class KeyGroups {
 public:
  /// Returns the value of `key`; adds the key with the value A{} if it is new.
  A& operator[](K&& key) {
    for (auto& [known, value] : groups_)
      if (known == key) return value;
    return groups_.emplace_back(std::move(key), A{}).second;
  }

  /// Calls `use(key, value)` for each key, in the order in which the keys were added, and removes
  /// all keys. `use` may move from both. If it returns false, drain() stops there, removes nothing
  /// and returns false; otherwise drain() returns true.
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

/// Calls `add(record)` for each record of `reader` with the hash `hash`, and moves `reader` behind
/// them. Requires: no hash that `reader` has left is smaller.
template <class Reader, class Add>
void read_records_with_hash(Reader& reader, std::uint64_t hash, const Add& add) {
  for (; reader.get() && reader.get()->hash == hash; reader.advance()) add(*reader.get());
}

}  // namespace starling::flow
