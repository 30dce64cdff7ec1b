/// Defines the shapes of the ten digits as pen strokes. Internal to models/data.
#pragma once

#include <vector>

namespace starling::models {

/// A point of the unit square, which a glyph fills: x points right, y points down.
struct Point {
  double x = 0;
  double y = 0;
};

/// The points through which a pen moves in straight lines.
using Stroke = std::vector<Point>;
/// The strokes of one way to write a digit.
using Glyph = std::vector<Stroke>;

/// Returns the glyphs of each digit: element d has all glyphs for the digit d.
[[nodiscard]] std::vector<std::vector<Glyph>> digit_glyphs();

}  // namespace starling::models
