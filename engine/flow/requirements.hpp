/// Checks the functions that users give to operations, with messages that a user understands when a
/// program does not compile.
#pragma once

#include <concepts>
#include <functional>
#include <ranges>
#include <type_traits>

#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {

/// Checks that F is a function of a record T. The function is called as a constant, because several
/// threads call it at once.
template <class F, class T>
consteval void require_function() {
  static_assert(std::invocable<const F&, const T&>,
                "the function must take a record: `auto f(const T& record)`. A lambda must not be "
                "`mutable`, because several threads call it at once");
}

template <class F, class T>
consteval void require_predicate() {
  require_function<F, T>();
  static_assert(std::predicate<const F&, const T&>, "the function of filter() must return a bool");
}

template <class F, class T>
consteval void require_range_function() {
  require_function<F, T>();
  static_assert(std::ranges::input_range<std::invoke_result_t<const F&, const T&>>,
                "the function of flat_map() must return a range, such as a vector");
}

/// Checks that F is a function that makes one value of two. The function must also be associative,
/// because it is applied within parts first; nothing checks this.
template <class F, class V>
consteval void require_combiner() {
  static_assert(std::is_invocable_r_v<V, const F&, const V&, const V&>,
                "the function must make one value of two: `V f(const V&, const V&)`. A lambda must "
                "not be `mutable`, because several threads call it at once");
}

template <class T>
consteval void require_pairs() {
  static_assert(is_pair<T>,
                "operations by key need a set of pairs of a key and a value; "
                "`key_by(f)` or `map()` makes one");
}

template <class T>
consteval void require_key_of_pairs() {
  require_pairs<T>();
  require_key<typename T::first_type>();
}

template <class K>
consteval void require_sortable_key() {
  static_assert(Record<K>, "sort_by(): the key must be a record, such as a number or a string");
  static_assert(
      requires(const K& a, const K& b) {
        { a < b } -> std::convertible_to<bool>;
      },
      "sort_by(): the key has no operator<. For a struct, add "
      "`auto operator<=>(const K&) const = default;`");
}

}  // namespace starling::flow
