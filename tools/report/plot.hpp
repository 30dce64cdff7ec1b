/// Describes plots as values, and draws them with gnuplot. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

struct PlotPoint {
  double x = 0;
  double y = 0;
  /// Half the height of the error bar, if the plot's style draws any.
  double error = 0;
};

struct Series {
  std::string name;
  std::vector<PlotPoint> points{};
  /// True if the series is drawn as points without a line, instead of in the plot's style.
  bool is_marked = false;
};

/// How all series of a plot are drawn.
enum class PlotStyle {
  line,
  /// A staircase, as for a cumulative distribution.
  steps,
  /// Points with error bars, joined by a line.
  points,
  /// A stack of boxes for each label, with one box for each series.
  stacked,
};

struct Plot {
  /// The name of the plot's files without their extension: letters, digits and dashes.
  std::string name;
  std::string title;
  /// The labels of the axes, with their units.
  std::string x{};
  std::string y{};
  std::vector<Series> series{};
  PlotStyle style = PlotStyle::line;
  /// True if y is a share from 0 to 1, for which the axis shows percent.
  bool is_share = false;
  /// True if the y axis covers only the range of the values, as it also does if one is negative;
  /// else it begins at 0. A logarithmic axis ignores this.
  bool is_zoomed = false;
  /// True if each series has a panel of its own, one below another, because the curves would hide
  /// each other. All panels have the same x axis, and panels of shares also the same y axis.
  /// Requires: the style is `line`, and y >= 0.
  bool has_panels = false;
  bool log_x = false;
  bool log_y = false;
  /// The labels of the stacks. Point i of each series belongs to label i.
  std::vector<std::string> labels{};
};

/// Returns the content of NAME.dat: x, y and error bar of each point, one series after another.
[[nodiscard]] std::string plot_data(const Plot& plot);

/// Returns the content of NAME.gp, a script that draws NAME.svg from NAME.dat when it is called as
/// `gnuplot NAME.gp` in their folder.
[[nodiscard]] std::string plot_script(const Plot& plot);

/// Returns true if a program gnuplot is in a folder of PATH.
[[nodiscard]] bool has_gnuplot();

/// Draws the plot and returns it as SVG. Returns an Error if gnuplot is not installed, or fails.
/// Leaves no files behind.
[[nodiscard]] Result<std::string> draw(const Plot& plot);

}  // namespace starling::program
