/// The kinds of types that a record may consist of. The codec, the hash and the footprint of
/// records are defined for each kind.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "starling/base/fields.hpp"

namespace starling::flow {

/// A number, a bool or a character. Excludes `long double`, which has bytes without meaning and
/// differs between machines.
template <class T>
concept Arithmetic = std::is_arithmetic_v<T> && !std::is_same_v<T, long double>;

template <class T>
concept Enumeration = std::is_enum_v<T>;

namespace detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_tuple = false;
template <class... Ts>
inline constexpr bool is_tuple<std::tuple<Ts...>> = true;
template <class T, class U>
inline constexpr bool is_tuple<std::pair<T, U>> = true;
template <class T, std::size_t n>
inline constexpr bool is_tuple<std::array<T, n>> = true;

}  // namespace detail

template <class T>
concept Text = std::is_same_v<T, std::string>;
/// A text that something else owns.
template <class T>
concept TextView = std::is_same_v<T, std::string_view>;
template <class T>
concept Vector = detail::is_vector<T>;
template <class T>
concept Optional = detail::is_optional<T>;
/// A tuple, a pair or an array: a fixed number of values.
template <class T>
concept Tuple = detail::is_tuple<T>;

namespace detail {

template <class T>
struct OwnedOf {
  using Type = T;
};
template <TextView T>
struct OwnedOf<T> {
  using Type = std::string;
};
template <class... Ts>
struct OwnedOf<std::tuple<Ts...>> {
  using Type = std::tuple<typename OwnedOf<Ts>::Type...>;
};
template <class T, class U>
struct OwnedOf<std::pair<T, U>> {
  using Type = std::pair<typename OwnedOf<T>::Type, typename OwnedOf<U>::Type>;
};

}  // namespace detail

/// T with strings in the place of views of text, also within tuples and pairs.
template <class T>
using Owned = typename detail::OwnedOf<T>::Type;

/// A pair of a key and a value, to which the operations by key apply.
template <class T>
inline constexpr bool is_pair = false;
template <class K, class V>
inline constexpr bool is_pair<std::pair<K, V>> = true;

namespace detail {

template <class T>
consteval bool is_record();

template <class T>
inline constexpr bool all_records = false;
template <class... Ts>
inline constexpr bool all_records<std::tuple<Ts...>> = (is_record<std::remove_cvref_t<Ts>>() &&
                                                        ...);
template <class T, class U>
inline constexpr bool all_records<std::pair<T, U>> = is_record<T>() && is_record<U>();
template <class T, std::size_t n>
inline constexpr bool all_records<std::array<T, n>> = is_record<T>();

template <class T>
consteval bool is_record() {
  if constexpr (Arithmetic<T> || Enumeration<T> || Text<T>)
    return true;
  else if constexpr (Vector<T> || Optional<T>)
    return is_record<typename T::value_type>();
  else if constexpr (Tuple<T>)
    return all_records<T>;
  else if constexpr (Fielded<T>)
    // Another node would not get the fields that the list leaves out.
    return starling::detail::unlisted_fields<T>() == 0;
  else
    return false;
}

}  // namespace detail

/// A value that a data set may hold: a number, an enumeration, a string, or a tuple, pair, array,
/// vector, optional or struct with a list of fields (base/fields.hpp) of such values.
template <class T>
concept Record = std::default_initializable<T> && std::copy_constructible<T> &&
    detail::is_record<T>();

/// Calls `f` with references to all parts of a tuple, or to all fields of a struct.
template <class F, class T>
constexpr decltype(auto) apply_to_parts(const F& f, T& value) {
  if constexpr (Tuple<std::remove_const_t<T>>)
    return std::apply(f, value);
  else
    return std::apply(f, fields_of(value));
}

}  // namespace starling::flow
