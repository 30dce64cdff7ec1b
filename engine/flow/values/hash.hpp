/// Hashes of keys, which are the same on every machine and with every standard library, so that all
/// nodes of a job put a key into the same part. Pure functions; thread-safe.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/flow/values/kinds.hpp"

namespace starling::flow {

/// A type that brings a hash of its own: `std::uint64_t hash_value(const T&)` in its namespace.
template <class T>
concept HashedByUser = requires(const T& value) {
  { hash_value(value) } -> std::convertible_to<std::uint64_t>;
};

/// Returns the first eight bytes as a little-endian number; zeros stand for missing ones.
[[nodiscard]] inline std::uint64_t first_bytes(std::string_view bytes) noexcept {
  const auto load = [&bytes]<class Word>(Word word, std::size_t offset) -> std::uint64_t {
    std::memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
  };
  const std::size_t size = bytes.size();
  if (size >= 8) return load(std::uint64_t{}, 0);
  // Loads two words that overlap, because a copy whose size varies would be a loop.
  if (size >= 4)
    return load(std::uint32_t{}, 0) | load(std::uint32_t{}, size - 4) << 8 * (size - 4);
  if (size >= 2)
    return load(std::uint16_t{}, 0) | load(std::uint16_t{}, size - 2) << 8 * (size - 2);
  return size > 0 ? load(std::uint8_t{}, 0) : 0;
}

/// Hashes bytes, eight at a time. The size is part of the hash, because zeros stand for missing
/// bytes.
[[nodiscard]] inline std::uint64_t hash_bytes(std::string_view bytes) noexcept {
  constexpr std::uint64_t spread = 0x9e3779b97f4a7c15U;
  std::uint64_t hash = (bytes.size() + 1) * spread;
  for (; bytes.size() > sizeof hash; bytes.remove_prefix(sizeof hash))
    hash = mix(hash ^ first_bytes(bytes));
  return mix(hash ^ first_bytes(bytes));
}

/// Hashes a key. Equal keys have equal hashes: -0.0 hashes like 0.0, and a view like its text.
template <class T>
[[nodiscard]] std::uint64_t hash_of(const T& value) {
  if constexpr (HashedByUser<T>) {
    return mix(hash_value(value));  // the upper bits of a hash choose the part
  } else if constexpr (std::floating_point<T>) {
    const double number = value == T{0} ? 0.0 : static_cast<double>(value);
    return mix(std::bit_cast<std::uint64_t>(number));
  } else if constexpr (Arithmetic<T> || Enumeration<T>) {
    return mix(static_cast<std::uint64_t>(value));
  } else if constexpr (Text<T> || TextView<T>) {
    return hash_bytes(value);
  } else if constexpr (Vector<T>) {
    std::uint64_t hash = mix(value.size());
    for (const typename T::value_type& element : value) hash = mix(hash ^ hash_of(element));
    return hash;
  } else if constexpr (Optional<T>) {
    return value ? mix(1 ^ hash_of(*value)) : mix(0);
  } else {
    std::uint64_t hash = 0;
    const auto add = [&hash](const auto&... parts) { ((hash = mix(hash ^ hash_of(parts))), ...); };
    apply_to_parts(add, value);
    return hash;
  }
}

/// True if a key of type K has the same hash as the equal key with views in place of its texts: no
/// part of K brings a hash of its own (HashedByUser).
template <class K>
inline constexpr bool hashes_like_views = !HashedByUser<K>;
template <class... Ts>
inline constexpr bool hashes_like_views<std::tuple<Ts...>> =
    !HashedByUser<std::tuple<Ts...>> && (hashes_like_views<Ts> && ...);
template <class T, class U>
inline constexpr bool hashes_like_views<std::pair<T, U>> =
    !HashedByUser<std::pair<T, U>> && hashes_like_views<T> && hashes_like_views<U>;

/// A key: a record that can be compared with `==` and that has a hash.
template <class T>
concept Key = Record<T> && std::equality_comparable<T>;

/// True if each value of type T equals itself: T holds no floating-point number, which may be NaN,
/// and no struct, whose `==` may compare one.
template <class T>
inline constexpr bool always_equals_itself =
    (Arithmetic<T> && !std::floating_point<T>) || Enumeration<T> || Text<T> || TextView<T>;
template <class T>
inline constexpr bool always_equals_itself<std::vector<T>> = always_equals_itself<T>;
template <class T>
inline constexpr bool always_equals_itself<std::optional<T>> = always_equals_itself<T>;
template <class T, std::size_t n>
inline constexpr bool always_equals_itself<std::array<T, n>> = always_equals_itself<T>;
template <class... Ts>
inline constexpr bool always_equals_itself<std::tuple<Ts...>> = (always_equals_itself<Ts> && ...);
template <class T, class U>
inline constexpr bool always_equals_itself<std::pair<T, U>> = (always_equals_itself<T> &&
                                                               always_equals_itself<U>);

/// Throws std::invalid_argument if the key does not equal itself. All keys with NaN have one hash,
/// and none equals another, so a search among them would take time that is quadratic in their
/// number.
template <class K>
void check_key(const K& key) {
  if constexpr (!always_equals_itself<K>) {
    if (!std::equal_to<>{}(key, key))
      throw std::invalid_argument{
          "the key does not equal itself, as NaN; valid: numbers; filter() leaves others out"};
  }
}

/// Explains, when a program does not compile, what a type lacks to be a key.
template <class K>
consteval void require_key() {
  static_assert(Record<K>,
                "this type cannot be a key: it has no hash. Valid keys: numbers, strings, tuples, "
                "vectors and optionals of these, and structs that list their fields "
                "(starling/base/fields.hpp)");
  static_assert(std::equality_comparable<K>,
                "this type cannot be a key: it has no operator==. For a struct, add "
                "`bool operator==(const K&) const = default;`");
}

/// Explains, when a program does not compile, why a type cannot be in a data set.
template <class T>
consteval void require_record() {
  static_assert(Record<T>,
                "this type cannot be in a data set. Valid: numbers, strings, tuples, vectors and "
                "optionals of these, and structs that list their fields "
                "(starling/base/fields.hpp)");
}

}  // namespace starling::flow
