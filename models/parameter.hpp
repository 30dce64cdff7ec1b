/// Describes the tensors that a model trains, by name and shape.
#pragma once

#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::models {

/// One named tensor of a model, stored row-major in the model's parameter vector.
struct Parameter {
  std::string name;
  /// Extents, outermost first; an empty shape is a scalar.
  std::vector<std::size_t> shape = {};
  /// True if workers push and pull only the rows (of dimension 0) that a batch touches.
  bool row_sparse = false;
  /// True if weight decay (`--l2`) applies; usually false for biases.
  bool decay = true;
  /// False for a buffer that is stored with the parameters but not trained, such as a running mean.
  /// Its "gradient" is the change of the buffer. It is multiplied by the update's weight, as
  /// Applier::weight() defines, and added to the buffer without the optimiser.
  bool trained = true;

  /// Returns the number of elements.
  [[nodiscard]] std::size_t size() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>{});
  }
  /// Returns the number of elements in one row of dimension 0.
  [[nodiscard]] std::size_t row_size() const {
    return shape.empty() || shape[0] == 0 ? 1 : size() / shape[0];
  }
};

/// Refuses invalid parameters: a name that is missing or given twice, a shape without elements or
/// with more than 2^48 elements, a scalar that is row-sparse. The Error calls a parameter `noun`.
[[nodiscard]] Result<void> check(const std::vector<Parameter>& parameters,
                                 std::string_view noun = "parameter");

/// Returns the number of elements in all of `parameters`, the length of the parameter vector.
[[nodiscard]] inline std::size_t total_size(const std::vector<Parameter>& parameters) {
  std::size_t sum = 0;
  for (const Parameter& parameter : parameters) sum += parameter.size();
  return sum;
}

}  // namespace starling::models
