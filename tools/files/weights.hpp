/// A model's parameter vector in float32 or float64.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

/// The type in which parameters are stored and computed.
enum class ElementType { float32, float64 };

template <class T>
inline constexpr ElementType element_type =
    std::is_same_v<T, float> ? ElementType::float32 : ElementType::float64;

[[nodiscard]] Result<ElementType> parse_element_type(std::string_view text);
[[nodiscard]] std::string print(ElementType type);
[[nodiscard]] constexpr std::size_t element_bytes(ElementType type) {
  return type == ElementType::float64 ? 8 : 4;
}

/// All parameters of a model, one after the other.
using Weights = std::variant<std::vector<float>, std::vector<double>>;

}  // namespace starling::program
