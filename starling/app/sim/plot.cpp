#include "starling/app/sim/plot.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "starling/app/other_program.hpp"
#include "starling/base/text.hpp"

namespace starling::app {
namespace {

constexpr std::array<const char*, 8> colours{"#c0392b", "#e08e0b", "#1f77b4", "#2e8b57",
                                             "#7d3c98", "#16a3a3", "#8c564b", "#555555"};

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// The name as gnuplot takes it: letters, digits and underscores.
std::string identifier(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

/// Such names leave the curves too little room beside them.
bool has_long_names(const Plot& plot) {
  constexpr std::size_t long_name = 22;
  return std::ranges::any_of(plot.series,
                             [](const Series& s) { return s.name.size() > long_name; });
}

std::string settings(const Plot& plot) {
  std::string text = fmt::format(
      "set terminal svg size 720,440 font \"sans-serif,13\" background \"white\" noenhanced "
      "name {}\n"
      "set title {}\nset xlabel {}\nset ylabel {}\nset grid lc rgb \"#dddddd\"\n"
      "set key {}\n",
      in_quotes(identifier(plot.name)), in_quotes(plot.title), in_quotes(plot.x), in_quotes(plot.y),
      has_long_names(plot) ? "below" : "outside right top vertical");
  text += plot.log_x ? "set logscale x\n" : "set xrange [0:*]\n";
  text += plot.log_y ? "set logscale y\n" : "set yrange [0:*]\n";
  if (plot.style != PlotStyle::stacked) return text;
  text +=
      "set style data histograms\nset style histogram rowstacked\nset style fill solid 0.8\n"
      "set boxwidth 0.7\nset xrange [*:*]\nset xtics (";
  for (std::size_t i = 0; i < plot.labels.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", in_quotes(plot.labels[i]), i);
  return text + ") rotate by -25\n";
}

const char* style_text(PlotStyle style) {
  switch (style) {
    case PlotStyle::line:
      return "using 1:2 with lines lw 2";
    case PlotStyle::steps:
      return "using 1:2 with steps lw 2";
    case PlotStyle::points:
      return "using 1:2:3 with yerrorlines lw 1.5 pt 7 ps 0.6";
    case PlotStyle::stacked:
      return "using 2";
  }
  return "";
}

/// `source` is a file's name in quotes or a block of data.
std::string command(const Plot& plot, const std::string& source) {
  const auto has_points = [](const Series& series) { return !series.points.empty(); };
  if (std::ranges::none_of(plot.series, has_points))
    return "unset key\nset label \"nothing to show\" at graph 0.5,0.5 center\n"
           "plot [0:1] [0:1] NaN\n";
  std::string text = "plot ";
  for (std::size_t i = 0; i < plot.series.size(); ++i)
    text += fmt::format(
        "{}{} index {} {} lc rgb \"{}\" title {}", i == 0 ? "" : ", \\\n  ", source, i,
        plot.series[i].is_marked ? "using 1:2 with points pt 7 ps 1.2" : style_text(plot.style),
        colours[i % colours.size()], in_quotes(plot.series[i].name));
  return text + "\n";
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
/// Has no name, so that nothing is left whatever happens.
using ScratchFile = std::unique_ptr<std::FILE, CloseFile>;

ScratchFile scratch(const std::string& content = {}) {
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
         command(plot, in_quotes(plot.name + ".dat"));
}

bool has_gnuplot() {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':'))
    if (::access((std::string{folder} + "/gnuplot").c_str(), X_OK) == 0) return true;
  return false;
}

Result<std::string> draw(const Plot& plot) {
  if (!has_gnuplot())
    return Error{"gnuplot is not installed; valid: apt-get install gnuplot-nox, then `gnuplot " +
                 plot.name + ".gp` beside the data"};
  const auto in = scratch("$data << EOD\n" + plot_data(plot) + "EOD\n" + settings(plot) +
                          command(plot, "$data"));
  const auto out = scratch();
  const auto err = scratch();
  if (!in || !out || !err)
    return Error{std::string{"no temporary file can be made for gnuplot: "} + std::strerror(errno)};
  const auto code = run_program(
      {"gnuplot"}, StandardFiles{::fileno(in.get()), ::fileno(out.get()), ::fileno(err.get())});
  if (!code) return code.error();
  auto svg = content_of(out.get());
  if (*code == 0 && svg.find("</svg>") != std::string::npos) return svg;
  std::string said = content_of(err.get());
  for (char& c : said)
    if (c == '\n') c = ' ';
  return Error{fmt::format("gnuplot could not draw {} (code {}): {}", plot.name, *code,
                           std::string{trimmed(said)})};
}

}  // namespace starling::app
