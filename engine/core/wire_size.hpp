/// Computes from a message's fields how many bytes the message takes in the encoding of actor/wire,
/// and how many bytes of tensors it holds. A test compares the sizes with the encoder's output.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/fields.hpp"
#include "starling/engine/core/compact.hpp"
#include "starling/engine/core/slice.hpp"

namespace starling::core {
namespace detail {

/// True if T is an instance of Template, as std::vector<int> is of std::vector.
template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Ts>
inline constexpr bool is_a<Template<Ts...>, Template> = true;

/// Returns the sum of `size_of(part)` over the parts of `value`: its elements, alternatives or
/// fields.
template <class T, class SizeOf>
std::size_t sum_parts(const T& value, const SizeOf& size_of) {
  if constexpr (is_a<T, std::vector>) {
    std::size_t sum = 0;
    for (const auto& element : value) sum += size_of(element);
    return sum;
  } else if constexpr (is_a<T, std::optional> || is_a<T, std::shared_ptr>) {
    return value ? size_of(*value) : 0;
  } else if constexpr (is_a<T, std::variant>) {
    return std::visit(size_of, value);
  } else if constexpr (is_a<T, std::pair>) {
    return size_of(value.first) + size_of(value.second);
  } else {
    static_assert(Fielded<const T> || std::is_empty_v<T>,
                  "a type whose size on the wire is not known");
    if constexpr (Fielded<const T>)
      return std::apply([&](const auto&... f) { return (std::size_t{0} + ... + size_of(f)); },
                        fields_of(value));
    else
      return 0;
  }
}

}  // namespace detail

/// Returns the size of `value` on the wire in bytes. A slice without a buffer stands for a tensor
/// in a simulation; its elements count `element_bytes` each.
template <class T>
[[nodiscard]] std::size_t wire_size(const T& value, std::size_t element_bytes = 0) {
  const auto size_of = [element_bytes](const auto& part) { return wire_size(part, element_bytes); };
  if constexpr (std::is_arithmetic_v<T>) {
    return sizeof(T);
  } else if constexpr (std::is_enum_v<T>) {
    return 1;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return 4 + value.size();
  } else if constexpr (std::is_same_v<T, Slice>) {
    const std::size_t head = 1 + 4 + wire_size(value.rows);
    if (value.travels_compact()) {
      const CompactForm form = compact_form(value.template as<float>());
      return head + 4 + compact_size(form, value.count);
    }
    const std::size_t width = value.buffer ? value.buffer->element_bytes() : element_bytes;
    return head + value.count * width;
  } else if constexpr (detail::is_a<T, std::vector>) {
    return 4 + detail::sum_parts(value, size_of);
  } else if constexpr (detail::is_a<T, std::optional> || detail::is_a<T, std::shared_ptr> ||
                       detail::is_a<T, std::variant>) {
    return 1 + detail::sum_parts(value, size_of);
  } else {
    return detail::sum_parts(value, size_of);
  }
}

namespace detail {

template <class T>
struct HoldsTensors;

template <class... Ts>
struct HoldsTensors<std::tuple<Ts...>>
    : std::bool_constant<(HoldsTensors<std::remove_cvref_t<Ts>>::value || ...)> {};
template <class... Ts>
struct HoldsTensors<std::variant<Ts...>> : HoldsTensors<std::tuple<Ts...>> {};
template <class T, class U>
struct HoldsTensors<std::pair<T, U>> : HoldsTensors<std::tuple<T, U>> {};
template <class T>
struct HoldsTensors<std::vector<T>> : HoldsTensors<std::remove_const_t<T>> {};
template <class T>
struct HoldsTensors<std::optional<T>> : HoldsTensors<T> {};
template <class T>
struct HoldsTensors<std::shared_ptr<T>> : HoldsTensors<std::remove_const_t<T>> {};
template <>
struct HoldsTensors<Slice> : std::true_type {};
template <class T>
struct HoldsTensors : std::false_type {};
template <Fielded T>
struct HoldsTensors<T> : HoldsTensors<decltype(fields_of(std::declval<T&>()))> {};

}  // namespace detail

/// True for messages that may hold tensors.
template <class T>
inline constexpr bool holds_tensors = detail::HoldsTensors<T>::value;

/// Returns the size of the tensors in `value` in bytes.
template <class T>
[[nodiscard]] std::size_t tensor_bytes(const T& value) {
  if constexpr (std::is_same_v<T, Slice>)
    return value.bytes().size();
  else if constexpr (!holds_tensors<T>)
    return 0;
  else
    return detail::sum_parts(value, [](const auto& part) { return tensor_bytes(part); });
}

}  // namespace starling::core
