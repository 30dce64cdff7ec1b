#include "starling/tools/report/plot.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

#include "starling/base/text.hpp"
#include "starling/tools/program/subprocess.hpp"

namespace starling::program {
namespace {

/// Colours that are easy to see on a white page and on a dark one.
constexpr std::array<const char*, 8> colours{"#d1495b", "#e08e0b", "#3a86c8", "#2e9e5b",
                                             "#a05fc2", "#16a3a3", "#a9745f", "#808080"};

/// Sizes in pixels: of the picture, and of the frame around the curves.
constexpr double width = 720;
constexpr double frame_width = 620;
constexpr double frame_height = 340;
/// Sizes in pixels that gnuplot uses in the legend: the width of a character in a font of 13
/// pixels, the height of a row, and the width of the piece of line beside a name.
constexpr double character_width = 7.8;
constexpr double legend_row_height = 22;
constexpr double legend_sample_width = 60;

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '`' ? '\'' : c;  // gnuplot would run text between backquotes as a command
  }
  return out + "\"";
}

/// Returns a name that gnuplot accepts: letters, digits and underscores.
std::string identifier(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

const char* colour(std::size_t series) { return colours[series % colours.size()]; }

/// Returns the factor from a value to the number on the y axis.
double axis_factor(const Plot& plot) { return plot.is_share ? 100 : 1; }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value, double error = 0) {
    if (!std::isfinite(value) || !std::isfinite(error)) return;
    low = std::min(low, value - error);
    high = std::max(high, value + error);
  }
  [[nodiscard]] bool is_empty() const { return low > high; }
};

/// Returns the range of all y values, with their error bars and, if series are stacked, the heights
/// of the stacks.
Range values_of(const Plot& plot) {
  Range range;
  for (const Series& series : plot.series)
    for (const PlotPoint& point : series.points)
      if (!plot.log_y || point.y - point.error > 0)
        range.include(axis_factor(plot) * point.y, axis_factor(plot) * point.error);
  for (std::size_t label = 0; label < plot.labels.size(); ++label) {
    double sum = 0;
    for (const Series& series : plot.series)
      if (label < series.points.size()) sum += series.points[label].y;
    range.include(axis_factor(plot) * sum);
  }
  return range;
}

/// Returns true if the series has a finite point. gnuplot refuses to draw a curve without one.
bool has_values(const Series& series) {
  return std::ranges::any_of(series.points, [](const PlotPoint& point) {
    return std::isfinite(point.x) && std::isfinite(point.y);
  });
}

struct Legend {
  std::size_t columns = 1;
  std::size_t rows = 0;
};

/// Returns the rows and columns of the legend, with as many columns as the frame has space for.
/// Returns 0 rows if the plot has no legend, because it has no names or has panels.
Legend legend_of(const Plot& plot) {
  std::size_t longest = 0;
  for (const Series& series : plot.series) longest = std::max(longest, series.name.size());
  if (longest == 0 || plot.has_panels) return {};
  const double column = character_width * static_cast<double>(longest) + legend_sample_width;
  const auto columns = std::max<std::size_t>(1, static_cast<std::size_t>(frame_width / column));
  return {columns, (plot.series.size() + columns - 1) / columns};
}

/// Returns the commands for the y axis of a panel. For shares, the axis is the same in all panels.
/// For other values, the axis depends on the highest value of the series, and marks that value.
std::string panel_y_range(const Plot& plot, const Series& series) {
  if (plot.is_share) return "set yrange [0:105]\nset ytics 0,50,100\n";
  Range range;
  for (const PlotPoint& point : series.points) range.include(point.y);
  const double high = range.is_empty() || range.high <= 0 ? 1 : range.high;
  return fmt::format("set yrange [0:{:.6g}]\nset ytics (0, {:.3g}, {:.3g})\n", 1.1 * high, high / 2,
                     high);
}

/// Returns the commands for the y axis, which has space for the legend above all values.
std::string y_range(const Plot& plot) {
  const Range range = values_of(plot);
  if (range.is_empty()) return "set yrange [*:*]\n";
  const double legend_height = legend_row_height * static_cast<double>(legend_of(plot).rows) + 14;
  const double stretch = 1 / (1 - std::min(0.6, legend_height / frame_height));
  if (plot.log_y) {
    const double ratio = std::max(2.0, 1.3 * range.high / range.low);
    return fmt::format("set logscale y\nset yrange [{:.6g}:{:.6g}]\n", range.low / 1.2,
                       range.low * std::pow(ratio, stretch));
  }
  const double span =
      range.high > range.low ? range.high - range.low : std::max(std::abs(range.high), 1e-9) / 10;
  const bool is_above_zero = range.low >= 0 && !plot.is_zoomed;
  const double low = is_above_zero ? 0 : range.low - span / 20;
  double high = low + (range.high - low) * stretch;
  if (high <= low) high = low + 1;
  const bool marks_every_20 = is_above_zero && plot.is_share && range.high > 50;
  return fmt::format("set yrange [{:.6g}:{:.6g}]\n{}", low, high,
                     marks_every_20 ? "set ytics 0,20,100\n" : "");
}

/// Returns the commands that put the labels below the stacks, turned if they would overlap.
std::string label_ticks(const Plot& plot) {
  std::string text =
      "set xrange [-0.7:" + fmt::format("{:.1f}", static_cast<double>(plot.labels.size()) - 0.3) +
      "]\nset grid noxtics\nset xtics scale 0 (";
  std::size_t longest = 0;
  for (std::size_t i = 0; i < plot.labels.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", in_quotes(plot.labels[i]), i);
    longest = std::max(longest, plot.labels[i].size());
  }
  constexpr double label_character_width = 7;
  const double labels_width =
      label_character_width * static_cast<double>(longest * plot.labels.size());
  return text + (labels_width < frame_width ? ")\n" : ") rotate by -25\n");
}

/// Returns the commands for the x axis. For stacks, these include the commands for their style.
std::string x_range(const Plot& plot) {
  if (plot.style == PlotStyle::stacked)
    return "set style data histograms\nset style histogram rowstacked\n"
           "set style fill solid 0.8\nset boxwidth 0.7\n" +
           label_ticks(plot);
  if (plot.log_x) return "set logscale x\n";
  Range range;
  for (const Series& series : plot.series)
    for (const PlotPoint& point : series.points) range.include(point.x);
  if (range.is_empty() || range.low < 0) return "set xrange [*:*]\n";
  return fmt::format("set xrange [0:{:.8g}]\n", range.high > 0 ? range.high : 1);
}

double height_of(const Plot& plot) {
  return plot.has_panels ? 100 + 110 * static_cast<double>(plot.series.size()) : 440;
}

/// Returns the commands for everything but the output file and the curves.
std::string settings(const Plot& plot) {
  std::string text = fmt::format(
      "set terminal svg size {:.0f},{:.0f} font \"sans-serif,13\" background \"white\" noenhanced "
      "name {}\nset title {}\nset xlabel {}\nset ylabel {}\n"
      "set grid lt 1 lc rgb \"#c8c8c8\" lw 0.5\nset border 3\nset tics nomirror out scale 0.5\n",
      width, height_of(plot), in_quotes(identifier(plot.name)), in_quotes(plot.title),
      in_quotes(plot.x), in_quotes(plot.y));
  const Legend legend = legend_of(plot);
  text +=
      legend.rows == 0
          ? "unset key\n"
          : fmt::format("set key inside top left horizontal Left reverse samplen 2 maxcols {}\n",
                        legend.columns);
  return text + y_range(plot) + x_range(plot);
}

/// Returns how gnuplot draws a series. A line with few points has a mark at each, because gnuplot
/// draws no line for a single point.
std::string style_text(const Plot& plot, const Series& series) {
  constexpr std::size_t marked_points_max = 40;
  const std::string y = plot.is_share ? "($2*100)" : "2";
  if (series.is_marked) return "using 1:" + y + " with points pt 7 ps 1.2";
  switch (plot.style) {
    case PlotStyle::line:
      return "using 1:" + y +
             (series.points.size() <= marked_points_max ? " with linespoints lw 2 pt 7 ps 0.4"
                                                        : " with lines lw 2");
    case PlotStyle::steps:
      return "using 1:" + y + " with steps lw 2";
    case PlotStyle::points:
      return "using 1:" + y + ":3 with yerrorlines lw 1.5 pt 7 ps 0.6";
    case PlotStyle::stacked:
      return "using " + y;
  }
  return "";
}

/// Returns the part of the plot command that draws series `i`.
std::string curve(const Plot& plot, const std::string& source, std::size_t i) {
  const Series& series = plot.series[i];
  return fmt::format("{} index {} {} lc rgb \"{}\" title {}", source, i, style_text(plot, series),
                     colour(i), in_quotes(series.name));
}

/// Returns the commands that draw a panel for each series, with the series' name above its panel.
/// All panels have the same x axis.
std::string panels(const Plot& plot, const std::string& source) {
  const double height = height_of(plot);
  // Converts pixels from the top of the picture to gnuplot's screen coordinate, 1 at the top.
  const auto screen_y = [height](double pixels) { return 1 - pixels / height; };
  std::string text = fmt::format(
      "set multiplot\nset lmargin at screen 0.11\nset rmargin at screen 0.98\nunset title\n"
      "unset xlabel\nunset ylabel\nset label 1 {} at screen 0.5,{:.4f} center\n"
      "set label 2 {} at screen 0.02,0.5 center rotate\n",
      in_quotes(plot.title), screen_y(18), in_quotes(plot.y));
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const double top = 52 + 110 * static_cast<double>(i);
    const bool is_last = i + 1 == plot.series.size();
    text += fmt::format(
        "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
        "set label 3 {} at graph 0,1.12 left textcolor rgb \"{}\"\n{}{}plot {}\n"
        "unset label 1\nunset label 2\n",
        screen_y(top), screen_y(top + 78), in_quotes(plot.series[i].name), colour(i),
        panel_y_range(plot, plot.series[i]),
        is_last ? "set format x\nset xlabel " + in_quotes(plot.x) + "\n"
                : std::string{"set format x \"\"\n"},
        has_values(plot.series[i]) ? curve(plot, source, i) : "NaN notitle");
  }
  return text + "unset multiplot\n";
}

/// Returns the commands that draw the curves. `source` is the name of the data file in quotes, or
/// the name of a data block of the script.
std::string plot_commands(const Plot& plot, const std::string& source) {
  if (std::ranges::none_of(plot.series, has_values))
    return "unset key\nset label \"nothing to show\" at graph 0.5,0.5 center\n"
           "plot [0:1] [0:1] NaN\n";
  if (plot.has_panels) return panels(plot, source);
  std::string text = "plot ";
  for (std::size_t i = 0; i < plot.series.size(); ++i)
    text += (i == 0 ? "" : ", \\\n  ") + curve(plot, source, i);
  return text + "\n";
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
/// A file without a name. The system removes it when it is closed, even if the program is killed.
using ScratchFile = std::unique_ptr<std::FILE, CloseFile>;

/// Makes a file with this content, to be read from its beginning; null if that fails.
ScratchFile make_scratch_file(const std::string& content = {}) {
  ScratchFile file{std::tmpfile()};
  if (!file) return file;
  if (std::fwrite(content.data(), 1, content.size(), file.get()) != content.size()) return {};
  std::fflush(file.get());
  std::rewind(file.get());
  return file;
}

std::string content_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 65536> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;)
    text.append(buffer.data(), n);
  return text;
}

}  // namespace

std::string plot_data(const Plot& plot) {
  std::string text;
  for (const Series& series : plot.series) {
    text += (text.empty() ? "# " : "\n\n# ") + series.name + "\n";
    for (const PlotPoint& point : series.points)
      text += fmt::format("{} {} {}\n", print_number(point.x), print_number(point.y),
                          print_number(point.error));
  }
  return text;
}

std::string plot_script(const Plot& plot) {
  return settings(plot) + "set output " + in_quotes(plot.name + ".svg") + "\n" +
         plot_commands(plot, in_quotes(plot.name + ".dat"));
}

bool has_gnuplot() {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): no thread sets it
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':'))
    if (::access((std::string{folder} + "/gnuplot").c_str(), X_OK) == 0) return true;
  return false;
}

Result<std::string> draw(const Plot& plot) {
  if (!has_gnuplot())
    return Error{"gnuplot is not installed; valid: apt-get install gnuplot-nox, then `gnuplot " +
                 plot.name + ".gp` beside the data"};
  const auto in = make_scratch_file("$data << EOD\n" + plot_data(plot) + "EOD\n" + settings(plot) +
                                    plot_commands(plot, "$data"));
  const auto out = make_scratch_file();
  const auto err = make_scratch_file();
  if (!in || !out || !err)
    return Error{std::string{"no temporary file can be made for gnuplot: "} + std::strerror(errno)};
  const auto code = run_program(
      {"gnuplot"}, StandardFiles{::fileno(in.get()), ::fileno(out.get()), ::fileno(err.get())});
  if (!code) return code.error();
  auto svg = content_of(out.get());
  if (*code == 0 && svg.find("</svg>") != std::string::npos) return svg;
  std::string messages = content_of(err.get());
  for (char& c : messages)
    if (c == '\n') c = ' ';
  return Error{fmt::format("gnuplot could not draw {} (code {}): {}", plot.name, *code,
                           std::string{trim(messages)})};
}

}  // namespace starling::program
