/// Defines the shapes of the ten digits as pen strokes. Internal to models/data.
#pragma once

#include <vector>

namespace starling::models {

/// x to the right, y down; a glyph fills the unit square.
struct Point {
  double x = 0;
  double y = 0;
};

/// A pen's path through its points.
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

/// Returns, at index 0 to 9, the glyphs for each digit.
[[nodiscard]] std::vector<std::vector<Glyph>> digit_glyphs();

}  // namespace starling::models
