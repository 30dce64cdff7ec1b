/// The orders of the records in the runs of a shuffle. Plain values; thread-safe to read.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

namespace starling::flow {

/// A key with the hash by which its runs are sorted, and a value.
template <class K, class V>
struct Keyed {
  std::uint64_t hash = 0;
  K key{};
  V value{};

  static constexpr auto fields(auto& m) { return std::tie(m.hash, m.key, m.value); }
};

/// A value with the key by which sort_by() sorts it.
template <class K, class T>
struct Sorted {
  K key{};
  T value{};

  static constexpr auto fields(auto& m) { return std::tie(m.key, m.value); }
};

/// Records stay in the order in which they came.
struct ArrivalOrder {
  template <class R>
  bool operator()(const R&, const R&) const noexcept {
    return false;
  }
};

/// Records with equal keys come together, because their hashes are equal. A key needs no order of
/// its own for that.
struct HashOrder {
  template <class R>
  bool operator()(const R& a, const R& b) const noexcept {
    return a.hash < b.hash;
  }
};

struct KeyOrder {
  template <class R>
  bool operator()(const R& a, const R& b) const {
    return a.key < b.key;
  }
};

}  // namespace starling::flow
