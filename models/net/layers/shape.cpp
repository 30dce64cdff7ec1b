#include "starling/models/net/layers/shape.hpp"

#include <cmath>
#include <functional>
#include <numeric>

#include "starling/base/text.hpp"

namespace starling::models {
namespace {

/// Returns the side of a square of `area`, or 0 if `area` is not a square number.
std::size_t side_of(std::size_t area) {
  const auto side = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(area))));
  return side * side == area ? side : 0;
}

}  // namespace

std::size_t volume(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>{});
}

std::string print_shape(const Shape& shape) {
  std::string text;
  for (const std::size_t extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

Result<void> check_output(const Shape& input, const Shape& output) {
  if (volume(output) <= volume_max) return {};
  return Error{"makes " + print_shape(output) + " from its input " + print_shape(input) +
               "; valid: at most " + std::to_string(volume_max) + " numbers for a sample"};
}

Result<Shape> parse_shape(std::string_view text) {
  const auto refuse = [&] {
    return Error{quote(text) +
                 " is not a shape; valid: one to three extents, like 784 or 32x32x3, whose product "
                 "is at most " +
                 std::to_string(volume_max)};
  };
  Shape shape;
  for (const std::string_view part : split(text, 'x')) {
    const auto extent = parse_count(part);
    if (!extent || *extent == 0 || *extent > volume_max / volume(shape)) return refuse();
    shape.push_back(*extent);
  }
  if (shape.empty() || shape.size() > 3) return refuse();
  return shape;
}

Shape guess_image(std::size_t features) {
  if (const std::size_t side = side_of(features)) return {side, side, 1};
  if (features % 3 != 0) return {};
  const std::size_t side = side_of(features / 3);
  return side > 0 ? Shape{side, side, 3} : Shape{};
}

}  // namespace starling::models
