/// Writes records as bytes and reads them back. The bytes are laid out as in the network's archive
/// (actor/wire/archive.hpp): numbers are little-endian and have a fixed width, and counts have four
/// bytes. This codec needs no header of another library, so a user's program can include it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "starling/engine/flow/values/kinds.hpp"

namespace starling::flow {

using Bytes = std::vector<std::byte>;

static_assert(std::endian::native == std::endian::little,
              "numbers are written as they lie in memory");

/// Thrown if bytes are not those of a record of the expected type.
class DecodeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

inline void put_bytes(Bytes& out, const void* data, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(data);
  out.insert(out.end(), first, first + size);
}

inline void put_count(Bytes& out, std::size_t size) {
  if (size > UINT32_MAX)
    throw std::length_error{"a record has " + std::to_string(size) + " elements; valid: at most " +
                            std::to_string(UINT32_MAX)};
  const auto count = static_cast<std::uint32_t>(size);
  put_bytes(out, &count, sizeof count);
}

inline void get_bytes(std::span<const std::byte>& in, void* data, std::size_t size) {
  if (size > in.size()) throw DecodeError{"a record ends too early"};
  if (size > 0) std::memcpy(data, in.data(), size);
  in = in.subspan(size);
}

inline std::size_t get_count(std::span<const std::byte>& in) {
  std::uint32_t count = 0;
  get_bytes(in, &count, sizeof count);
  return count;
}

inline constexpr std::size_t not_fixed = SIZE_MAX;

template <class T>
consteval std::size_t fixed_size();

/// Adds up the fixed sizes of the types in a tuple. Returns not_fixed if one type has no fixed
/// size.
template <class... Ts>
consteval std::size_t sum_of_fixed_sizes(std::tuple<Ts...>*) {
  const std::array<std::size_t, sizeof...(Ts)> sizes{fixed_size<std::remove_cvref_t<Ts>>()...};
  std::size_t sum = 0;
  for (const std::size_t size : sizes) {
    if (size == not_fixed) return not_fixed;
    sum += size;
  }
  return sum;
}
template <class T, class U>
consteval std::size_t sum_of_fixed_sizes(std::pair<T, U>*) {
  return sum_of_fixed_sizes(static_cast<std::tuple<T, U>*>(nullptr));
}
template <class T, std::size_t n>
consteval std::size_t sum_of_fixed_sizes(std::array<T, n>*) {
  return fixed_size<T>() == not_fixed && n > 0 ? not_fixed : n * fixed_size<T>();
}

/// Returns the number of bytes that put() writes for each value of T; not_fixed if it depends on
/// the value.
template <class T>
consteval std::size_t fixed_size() {
  if constexpr (std::is_same_v<T, bool>) {
    return 1;
  } else if constexpr (Arithmetic<T> || Enumeration<T>) {
    return sizeof(T);
  } else if constexpr (Text<T> || Vector<T> || Optional<T>) {
    return not_fixed;
  } else if constexpr (Tuple<T>) {
    return sum_of_fixed_sizes(static_cast<T*>(nullptr));
  } else {
    using Fields = decltype(fields_of(std::declval<const T&>()));
    return sum_of_fixed_sizes(static_cast<Fields*>(nullptr));
  }
}

/// Writes a value of fixed size to `out`, and advances `out` past it.
template <class T>
void store(std::byte*& out, const T& value) {
  if constexpr (Arithmetic<T> || Enumeration<T>) {
    std::memcpy(out, &value, sizeof value);
    out += sizeof value;
  } else {
    const auto store_all = [&out](const auto&... parts) { (store(out, parts), ...); };
    apply_to_parts(store_all, value);
  }
}

/// True for numbers whose bytes in a vector are the bytes that are written. A vector of bools does
/// not hold its elements as bytes.
template <class T>
inline constexpr bool is_plain_number = Arithmetic<T> && !std::is_same_v<T, bool>;

}  // namespace detail

/// Appends the bytes of `value` to `out`.
template <class T>
void put(Bytes& out, const T& value) {
  if constexpr (detail::fixed_size<T>() != detail::not_fixed) {
    const std::size_t begin = out.size();
    out.resize(begin + detail::fixed_size<T>());
    std::byte* at = out.data() + begin;
    detail::store(at, value);
  } else if constexpr (Text<T>) {
    detail::put_count(out, value.size());
    detail::put_bytes(out, value.data(), value.size());
  } else if constexpr (Vector<T>) {
    detail::put_count(out, value.size());
    if constexpr (detail::is_plain_number<typename T::value_type>)
      detail::put_bytes(out, value.data(), value.size() * sizeof value[0]);
    else
      for (const typename T::value_type& element : value) put(out, element);
  } else if constexpr (Optional<T>) {
    put(out, value.has_value());
    if (value) put(out, *value);
  } else {
    const auto put_all = [&out](const auto&... parts) { (put(out, parts), ...); };
    apply_to_parts(put_all, value);
  }
}

/// Returns a view of the text at the beginning of `in`, and removes its bytes from `in`. The view
/// is valid as long as the bytes are. Throws DecodeError if the text ends too early.
[[nodiscard]] inline std::string_view get_text(std::span<const std::byte>& in) {
  const std::size_t size = detail::get_count(in);
  if (size > in.size()) throw DecodeError{"a string ends too early"};
  const std::string_view text{reinterpret_cast<const char*>(in.data()), size};
  in = in.subspan(size);
  return text;
}

/// The most elements of a vector whose elements take no bytes.
inline constexpr std::size_t empty_elements_max = std::size_t{1} << 20U;
/// Values may hold values of the same type, as the nodes of a tree do, to this depth.
inline constexpr std::size_t depth_max = 200;

/// Reads one value from the beginning of `in`, and removes its bytes. Throws DecodeError if `in`
/// does not begin with such a value. Takes memory only for values whose bytes are there. `depth`
/// counts the vectors and optionals around the value.
template <class T>
void get(std::span<const std::byte>& in, T& value, std::size_t depth = 0) {
  if (depth > depth_max) throw DecodeError{"a record is nested too deeply"};
  if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t byte = 0;
    detail::get_bytes(in, &byte, 1);
    if (byte > 1) throw DecodeError{"a bool is not 0 or 1"};
    value = byte == 1;
  } else if constexpr (Arithmetic<T>) {
    detail::get_bytes(in, &value, sizeof value);
  } else if constexpr (Enumeration<T>) {
    std::underlying_type_t<T> number{};
    get(in, number);
    if constexpr (requires { last_of(T{}); }) {
      bool is_valid = number <= static_cast<std::underlying_type_t<T>>(last_of(T{}));
      if constexpr (std::is_signed_v<std::underlying_type_t<T>>) is_valid = is_valid && number >= 0;
      if (!is_valid) throw DecodeError{"an enumeration has no such value"};
    }
    value = static_cast<T>(number);
  } else if constexpr (Text<T>) {
    value.assign(get_text(in));
  } else if constexpr (Vector<T>) {
    std::size_t left = detail::get_count(in);
    if constexpr (detail::is_plain_number<typename T::value_type>) {
      if (left > in.size() / sizeof(typename T::value_type))
        throw DecodeError{"a vector ends too early"};
      value.resize(left);
      detail::get_bytes(in, value.data(), left * sizeof(typename T::value_type));
      return;
    }
    value.clear();
    for (; left > 0; --left) {
      typename T::value_type element{};
      if constexpr (detail::fixed_size<typename T::value_type>() == 0) {
        // The elements take no bytes, so the size of `in` does not bound their number.
        if (value.size() == empty_elements_max)
          throw DecodeError{"a vector has too many elements without bytes"};
      } else {
        get(in, element, depth + 1);
      }
      value.push_back(std::move(element));
    }
  } else if constexpr (Optional<T>) {
    bool has_value = false;
    get(in, has_value);
    value.reset();
    if (has_value) get(in, value.emplace(), depth + 1);
  } else {
    const auto get_all = [&in, depth](auto&... parts) { (get(in, parts, depth), ...); };
    apply_to_parts(get_all, value);
  }
}

}  // namespace starling::flow
