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

/// Returns the number of elements of `shape`, or nullopt where no memory holds as many.
std::optional<std::size_t> count(const std::vector<std::size_t>& shape) {
  constexpr std::size_t most = std::size_t{1} << 48U;
  std::size_t elements = 1;
  for (const std::size_t extent : shape) {
    if (extent > most / elements) return std::nullopt;
    elements *= extent;
  }
  return elements;
}

Result<void> check(const Parameter& parameter, const std::string& named) {
  if (std::ranges::find(parameter.shape, std::size_t{0}) != parameter.shape.end())
    return Error{named + ": shape " + print(parameter.shape) +
                 " has no elements; every extent is at least 1"};
  if (!count(parameter.shape))
    return Error{named + ": shape " + print(parameter.shape) +
                 " has more elements than any memory holds"};
  if (parameter.row_sparse && parameter.shape.empty())
    return Error{named + ": a scalar has no rows; give it a shape, or make it dense"};
  return {};
}

}  // namespace

Result<void> check(const std::vector<Parameter>& parameters, std::string_view noun) {
  std::set<std::string_view> names;
  for (const Parameter& parameter : parameters) {
    if (parameter.name.empty()) return Error{"a " + std::string{noun} + " has no name"};
    const std::string named = std::string{noun} + " '" + parameter.name + "'";
    if (!names.insert(parameter.name).second) return Error{named + " is given twice"};
    if (auto valid = check(parameter, named); !valid) return valid;
  }
  return {};
}

}  // namespace starling::models
