#include "starling/models/parameter.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace starling::models {
namespace {

std::string print(const std::vector<std::size_t>& shape) {
  std::string text;
  for (const std::size_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

/// Returns the number of elements of `shape`, or nullopt if it exceeds 2^48, more than any memory
/// holds.
std::optional<std::size_t> count_elements(const std::vector<std::size_t>& shape) {
  constexpr std::size_t elements_max = std::size_t{1} << 48U;
  std::size_t elements = 1;
  for (const std::size_t extent : shape) {
    if (extent > elements_max / elements) return std::nullopt;
    elements *= extent;
  }
  return elements;
}

/// Refuses an invalid shape. Errors begin with `label`, which names the parameter.
Result<void> check_shape(const Parameter& parameter, const std::string& label) {
  if (std::ranges::find(parameter.shape, std::size_t{0}) != parameter.shape.end())
    return Error{label + ": shape " + print(parameter.shape) +
                 " has no elements; every extent is at least 1"};
  if (!count_elements(parameter.shape))
    return Error{label + ": shape " + print(parameter.shape) +
                 " has more elements than any memory holds"};
  if (parameter.row_sparse && parameter.shape.empty())
    return Error{label + ": a scalar has no rows; give it a shape, or make it dense"};
  return {};
}

}  // namespace

Result<void> check(const std::vector<Parameter>& parameters, std::string_view noun) {
  std::set<std::string_view> names;
  for (const Parameter& parameter : parameters) {
    if (parameter.name.empty()) return Error{"a " + std::string{noun} + " has no name"};
    const std::string label = std::string{noun} + " '" + parameter.name + "'";
    if (!names.insert(parameter.name).second)
      return Error{label + " is given twice; valid: each name once"};
    if (auto valid = check_shape(parameter, label); !valid) return valid;
  }
  return {};
}

}  // namespace starling::models
