/// The records of a shuffle's runs, and the orders by which runs are sorted. Plain values;
/// thread-safe to read.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

namespace starling::flow {

/// A pair of a key and a value, with the hash of the key, by which its run is sorted.
template <class K, class V>
struct Keyed {
  std::uint64_t hash = 0;
  K key{};
  V value{};

  static constexpr auto fields(auto& m) { return std::tie(m.hash, m.key, m.value); }
};

/// A record with the key by which sort_by() sorts it.
template <class K, class T>
struct WithSortKey {
  K key{};
  T value{};

  static constexpr auto fields(auto& m) { return std::tie(m.key, m.value); }
};

/// Compares no record as less than another, so a stable sort keeps the order of arrival.
struct ArrivalOrder {
  template <class R>
  bool operator()(const R&, const R&) const noexcept {
    return false;
  }
};

/// Orders records by the hash of their key. Records with equal keys have equal hashes, so they are
/// read one after another, without an order of the keys; keys that differ may share a hash.
struct HashOrder {
  template <class R>
  bool operator()(const R& a, const R& b) const noexcept {
    return a.hash < b.hash;
  }
};

/// Orders records by their key.
struct KeyOrder {
  template <class R>
  bool operator()(const R& a, const R& b) const {
    return a.key < b.key;
  }
};

}  // namespace starling::flow
