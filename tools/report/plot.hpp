/// Pictures of curves, as values, drawn by gnuplot. Any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

struct PlotPoint {
  double x = 0;
  double y = 0;
  /// Half the height of an error bar, where the style draws any.
  double error = 0;
};

struct Series {
  std::string name;
  std::vector<PlotPoint> points{};
  /// Drawn as points alone, whatever the plot's style.
  bool is_marked = false;
};

/// How all series of a plot are drawn.
enum class PlotStyle {
  line,
  /// A line that goes up at each point: a distribution.
  steps,
  /// Points with error bars, joined.
  points,
  /// Boxes on top of each other, one stack for each label.
  stacked,
};

struct Plot {
  /// The stem of its files' names: letters, digits and dashes.
  std::string name;
  std::string title;
  /// Labels of the axes, with their units.
  std::string x{};
  std::string y{};
  std::vector<Series> series{};
  PlotStyle style = PlotStyle::line;
  /// y is a share from 0 to 1, and its axis shows percent.
  bool is_share = false;
  /// The y axis covers the values alone; else it begins at 0.
  bool is_zoomed = false;
  /// Draws one panel for each series, one below another, for curves that would hide each other. All
  /// panels share the x axis, and those of shares the y axis too. For lines from 0 on.
  bool has_panels = false;
  bool log_x = false;
  bool log_y = false;
  /// Labels of the stacks: point i of each series belongs to label i.
  std::vector<std::string> labels{};
};

/// Returns the data that gnuplot reads: x, y and error bar of each point, one series after another.
[[nodiscard]] std::string plot_data(const Plot& plot);

/// Returns the script that makes NAME.svg of NAME.dat, called as `gnuplot NAME.gp` in their folder.
[[nodiscard]] std::string plot_script(const Plot& plot);

[[nodiscard]] bool has_gnuplot();

/// Draws the plot as SVG; an error where gnuplot is not installed or fails. Leaves no files.
[[nodiscard]] Result<std::string> draw(const Plot& plot);

}  // namespace starling::program
