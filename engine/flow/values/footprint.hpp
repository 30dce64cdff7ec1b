/// Estimates of the memory that records take, which decide when a task spills. Pure functions;
/// thread-safe.
#pragma once

#include <cstddef>

#include "starling/engine/flow/values/kinds.hpp"

namespace starling::flow {

/// Returns how many bytes a record owns outside of itself. A view counts as if it owned its text.
template <class T>
[[nodiscard]] std::size_t owned_bytes(const T& value) {
  if constexpr (Arithmetic<T> || Enumeration<T>) {
    return 0;
  } else if constexpr (Text<T>) {
    return value.capacity() < sizeof value / 2 ? 0 : value.capacity() + 1;
  } else if constexpr (TextView<T>) {
    return value.size();
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    return value.size();  // as many bytes as put() writes for it, without the count
  } else if constexpr (Vector<T>) {
    std::size_t bytes = value.capacity() * sizeof(typename T::value_type);
    if constexpr (!Arithmetic<typename T::value_type>)
      for (const auto& element : value) bytes += owned_bytes(element);
    return bytes;
  } else if constexpr (Optional<T>) {
    return value ? owned_bytes(*value) : 0;
  } else {
    const auto sum = [](const auto&... parts) {
      return (std::size_t{0} + ... + owned_bytes(parts));
    };
    return apply_to_parts(sum, value);
  }
}

/// Returns how many bytes a record takes: its own, and those of owned_bytes().
template <class T>
[[nodiscard]] std::size_t footprint(const T& value) {
  return sizeof value + owned_bytes(value);
}

}  // namespace starling::flow
