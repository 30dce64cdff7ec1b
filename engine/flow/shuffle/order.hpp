/// The records of a shuffle's runs, and the orders by which runs are sorted. Plain values;
/// thread-safe to read.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "starling/engine/flow/values/codec.hpp"
#include "starling/engine/flow/values/hash.hpp"
#include "starling/engine/flow/values/kinds.hpp"

namespace starling::flow {

/// Returns the rank of a key. The lesser of two keys never has the larger rank, so that most
/// comparisons need only the ranks.
template <class K>
[[nodiscard]] std::uint64_t rank_of(const K& key) noexcept {
  if constexpr (Text<K>) {
    return __builtin_bswap64(first_bytes(key));
  } else if constexpr (std::unsigned_integral<K>) {
    return key;
  } else if constexpr (std::signed_integral<K>) {
    return static_cast<std::uint64_t>(key) ^ (std::uint64_t{1} << 63U);
  } else if constexpr (std::floating_point<K>) {
    // The bits of numbers of one sign are in the order of their absolute values.
    const auto bits = std::bit_cast<std::uint64_t>(key == K{0} ? 0.0 : static_cast<double>(key));
    constexpr std::uint64_t sign = std::uint64_t{1} << 63U;
    return (bits & sign) != 0 ? ~bits : bits | sign;
  } else if constexpr (Tuple<K>) {
    if constexpr ((std::tuple_size_v<K>) > 0) return rank_of(std::get<0>(key));
  }
  return 0;
}

/// False if the key has no place in an order because it is or holds NaN. The order of a struct is
/// the user's.
template <class K>
[[nodiscard]] bool has_order(const K& key) {
  if constexpr (std::floating_point<K>) {
    return !std::isnan(key);
  } else if constexpr (Vector<K>) {
    return std::ranges::all_of(key, [](const auto& element) { return has_order(element); });
  } else if constexpr (Optional<K>) {
    return !key || has_order(*key);
  } else if constexpr (Tuple<K>) {
    return std::apply([](const auto&... parts) { return (has_order(parts) && ...); }, key);
  } else {
    return true;
  }
}

/// Compares two values that codec.hpp has written, and removes the bytes that it has compared.
/// Returns a negative number if the first is less, a positive one if the second is, and else 0.
/// Texts are not copied.
template <class K>
[[nodiscard]] int compare_bytes(std::span<const std::byte>& a, std::span<const std::byte>& b) {
  if constexpr (Text<K>) {
    const std::string_view first = get_text(a);
    return first.compare(get_text(b));
  } else if constexpr (detail::is_tuple<K>) {
    const auto compare = [&]<std::size_t... i>(std::index_sequence<i...>) {
      int order = 0;
      // Stops at the first difference.
      (void)(((order = compare_bytes<std::tuple_element_t<i, K>>(a, b)) == 0) && ...);
      return order;
    };
    return compare(std::make_index_sequence<std::tuple_size_v<K>>{});
  } else {
    K first{};
    K second{};
    get(a, first);
    get(b, second);
    return first < second ? -1 : second < first ? 1 : 0;
  }
}

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

  [[nodiscard]] T& record() noexcept { return value; }
  static constexpr auto fields(auto& m) { return std::tie(m.key, m.value); }
};

/// A record that is its own key for sort_by().
template <class T>
struct OwnSortKey {
  T key{};

  [[nodiscard]] T& record() noexcept { return key; }
  static constexpr auto fields(auto& m) { return std::tie(m.key); }
};

/// The orders of runs. `rank(a) < rank(b)` implies that a comes before b; of records with equal
/// ranks, `less` decides, or `less_bytes` of their bytes. `rank_of_first` is the rank of a record
/// whose first field is given.

/// The order of arrival.
struct ArrivalOrder {
  template <class R>
  static std::uint64_t rank(const R&) noexcept {
    return 0;
  }
  template <class R>
  static bool less(const R&, const R&) noexcept {
    return false;
  }
};

/// Orders records by the hash of their key. Records with equal keys have equal hashes, so they are
/// read one after another, without an order of the keys; keys that differ may share a hash.
struct HashOrder {
  template <class R>
  static std::uint64_t rank(const R& record) noexcept {
    return record.hash;
  }
  static std::uint64_t rank_of_first(std::uint64_t hash) noexcept { return hash; }
  template <class R>
  static bool less(const R&, const R&) noexcept {
    return false;
  }
  template <class R>
  static bool less_bytes(std::span<const std::byte>, std::span<const std::byte>) noexcept {
    return false;
  }
};

/// Orders records by their key.
struct KeyOrder {
  template <class R>
  static std::uint64_t rank(const R& record) noexcept {
    return rank_of(record.key);
  }
  template <class K>
  static std::uint64_t rank_of_first(const K& key) noexcept {
    return rank_of(key);
  }
  template <class R>
  static bool less(const R& a, const R& b) {
    return a.key < b.key;
  }
  /// The key is the first field.
  template <class R>
  static bool less_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
    return compare_bytes<decltype(R::key)>(a, b) < 0;
  }
};

}  // namespace starling::flow
