#include "starling/tools/train/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/job/target.hpp"
#include "starling/tools/report/machine.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// The unit in which a job's time is shown.
struct TimeUnit {
  double seconds = 1;
  const char* name = "s";
};

TimeUnit unit_of(const Curves& curves) {
  const auto points = curves.progress().points();
  const double last = points.empty() ? 0 : points.back().elapsed_s;
  if (last < 300) return {};
  return last < 10'800 ? TimeUnit{60, "min"} : TimeUnit{3600, "h"};
}

std::string with_spaces(std::string key) {
  std::ranges::replace(key, '_', ' ');
  return key;
}

bool ends_with_share(const std::string& key) {
  return key.ends_with("share") || key.ends_with("accuracy");
}

/// Returns the value of a key of the summary, as a percentage or with its unit where the key
/// implies one.
std::string value_text(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (ends_with_share(key)) return fmt::format("{:.1f} %", 100 * number);
    const bool is_time = key.ends_with("_s") && !key.ends_with("_per_s");
    return fmt::format("{:.5g}{}", number, is_time ? " s" : "");
  }
  std::string text;
  if (value.is_object() || value.is_array())
    for (const auto& [name, part] : value.items())
      text += (text.empty() ? "" : ", ") + (value.is_object() ? with_spaces(name) + " " : "") +
              value_text(name, part);
  return text.empty() ? value.dump() : text;
}

/// Returns the key in words, without the unit, which is shown beside the value.
std::string label_of(std::string key) {
  if (key == "wall_s") return "wall time";
  if (key.ends_with("_per_s"))
    key.replace(key.size() - 6, 6, " a second");
  else if (key.ends_with("_s"))
    key.erase(key.size() - 2);
  return with_spaces(std::move(key));
}

/// Adds a row, unless the value is empty.
void add_row(TextTable& table, std::string name, std::string value) {
  if (!value.empty()) table.rows.push_back({std::move(name), std::move(value)});
}

/// Adds rows about the limits of the job and how often it was evaluated.
void add_limits(TextTable& table, const actor::JobOptions& options) {
  if (options.steps != barrier::unlimited)
    add_row(table, "steps",
            std::to_string(options.steps) + " of each worker" +
                (barrier::hands_in_early(options.barrier) ? ", if all hand in whole batches" : ""));
  if (options.time) add_row(table, "time", fmt::format("{:.5g} s", in_seconds(*options.time)));
  if (options.until) add_row(table, "until", print(*options.until));
  add_row(table, "tested",
          options.evaluate_every == 0
              ? "at the end"
              : fmt::format("every {}", print_count(options.evaluate_every, "step")));
}

bool is_note(const std::string& key) { return key == "notes" || key == "error"; }

/// Returns the summary as two tables: the settings, which are the keys before `end`, and the
/// measured figures.
std::pair<TextTable, TextTable> tables_of(const EndedJob& ended) {
  TextTable settings{.head = {"setting", "value"}, .holds_words = true};
  TextTable figures{.head = {"figure", "value"}, .holds_words = true};
  bool is_setting = true;
  const Json summary = Json::parse(summary_json(ended));
  for (const auto& [key, value] : summary.items()) {
    is_setting = is_setting && key != "end";
    if (key == "version" || is_note(key)) continue;
    add_row(is_setting ? settings : figures, is_setting ? with_spaces(key) : label_of(key),
            value_text(key, value));
  }
  add_limits(settings, ended.job.options.job);
  return {std::move(settings), std::move(figures)};
}

TextTable machine_table(const ResolvedJob& job) {
  TextTable table{.head = {"machine", job.id.empty() ? "that trained" : "that followed the job"},
                  .holds_words = true};
  const Machine machine = this_machine();
  add_row(table, "processor", machine.processor + ", " + print_count(machine.processors, "core"));
  std::string libraries;
  for (const auto& [name, version] : machine.libraries)
    libraries += fmt::format("{}{} {}", libraries.empty() ? "" : ", ", name, version);
  add_row(table, "libraries", libraries);
  add_row(table, "build", machine.build);
  return table;
}

std::vector<Block> notes_of(const EndedJob& ended, const Curves& curves) {
  std::vector<Block> notes;
  if (!ended.error.empty()) notes.emplace_back(Paragraph{"The job failed: " + ended.error});
  if (ended.job.updates_before > 0)
    notes.emplace_back(
        Paragraph{fmt::format("The job went on from a checkpoint of {} updates: steps count from "
                              "the beginning of the job, and the curves begin at the checkpoint.",
                              ended.job.updates_before)});
  for (const auto& texts : {ended.advice, curves.warnings()})
    for (const std::string& text : texts) notes.emplace_back(Paragraph{text});
  return notes;
}

std::string number_text(const std::optional<double>& value) {
  return value ? print_number(*value) : "";
}

template <class Point>
std::string heading(const char* title, const ThinnedSeries<Point>& points) {
  return points.stride() == 1
             ? fmt::format("{} ({})", title, points.count())
             : fmt::format("{} ({}, one in {} listed)", title, points.count(), points.stride());
}

FoldedTable progress_table(const Curves& curves) {
  TextTable table{
      {"elapsed_s", "step", "loss", "waiting_share", "min", "median", "max", "draws", "passes"}};
  for (const ProgressPoint& point : curves.progress().points())
    table.rows.push_back({print_number(point.elapsed_s), print_number(point.step),
                          number_text(point.loss), number_text(point.waiting_share),
                          std::to_string(point.spread.min), std::to_string(point.spread.median),
                          std::to_string(point.spread.max), std::to_string(point.draws),
                          std::to_string(point.passes)});
  return {"progress", heading("Progress", curves.progress()), std::move(table)};
}

FoldedTable evaluation_table(const Curves& curves) {
  const auto points = curves.evaluations().points();
  TextTable table{{"elapsed_s", "step"}};
  if (!points.empty())
    for (const auto& metric : points.back().test) table.head.push_back("test_" + metric.name);
  for (const EvaluationPoint& point : points) {
    std::vector<std::string> row{print_number(point.elapsed_s), print_number(point.step)};
    for (const auto& metric : point.test) row.push_back(print_number(metric.value));
    row.resize(table.head.size());
    table.rows.push_back(std::move(row));
  }
  return {"evaluations", heading("Evaluations", curves.evaluations()), std::move(table)};
}

/// A value at a point of the job's progress; absent if it is not known there.
using Figure = std::function<std::optional<double>(const ProgressPoint&)>;

/// Returns the curve of a figure over the job's progress. Skips points at which `y` is absent.
Series progress_series(const std::string& name, const Curves& curves,
                       const std::function<double(const ProgressPoint&)>& x, const Figure& y) {
  Series series{.name = name};
  for (const ProgressPoint& point : curves.progress().points())
    if (const auto value = y(point)) series.points.push_back({x(point), *value});
  return series;
}

/// Returns true if all values are positive, and the largest is more than 50 times the smallest, so
/// that a logarithmic axis shows them better.
bool needs_log_axis(const Plot& plot) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const Series& series : plot.series)
    for (const PlotPoint& point : series.points) {
      least = std::min(least, point.y);
      most = std::max(most, point.y);
    }
  constexpr double ratio_min = 50;
  return least > 0 && std::isfinite(most) && most > ratio_min * least;
}

/// Returns the curve of the test metric with this index.
Series test_series(const std::string& name, const Curves& curves, std::size_t index) {
  Series series{.name = name};
  for (const EvaluationPoint& point : curves.evaluations().points())
    if (index < point.test.size()) series.points.push_back({point.step, point.test[index].value});
  return series;
}

constexpr const char* step_axis = "steps of a worker, mean";

Plot loss_plot(const Curves& curves) {
  Plot plot{.name = "loss", .title = "Loss", .x = step_axis, .y = "mean loss of a sample"};
  plot.series.push_back(progress_series(
      "training, mean since the last progress line", curves, [](const auto& p) { return p.step; },
      [](const auto& p) { return p.loss; }));
  if (curves.evaluations().count() > 0) plot.series.push_back(test_series("test", curves, 0));
  plot.log_y = needs_log_axis(plot);
  return plot;
}

/// Returns a plot for each test metric but the first, which is the loss.
std::vector<Plot> metric_plots(const Curves& curves) {
  std::vector<Plot> plots;
  const auto points = curves.evaluations().points();
  if (points.empty()) return plots;
  for (std::size_t metric = 1; metric < points.back().test.size(); ++metric) {
    const std::string& name = points.back().test[metric].name;
    const bool is_share = name == "accuracy";
    Plot plot{.name = "test-figure-" + std::to_string(metric),
              .title = "Test " + with_spaces(name),
              .x = step_axis,
              .y = "test " + with_spaces(name) + (is_share ? " (%)" : ""),
              .is_share = is_share,
              .is_zoomed = is_share};
    plot.series.push_back(test_series("", curves, metric));
    plot.log_y = !is_share && needs_log_axis(plot);
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace

Result<void> check_report(const std::string& path) {
  if (auto writable = check_writable(path); !writable) return writable;
  if (!has_gnuplot())
    return Error{
        "gnuplot, which draws the curves, is not installed; valid: apt-get install "
        "gnuplot-nox, or --metrics FILE for the figures alone"};
  return {};
}

std::vector<Plot> report_plots(const ResolvedJob& job, const Curves& curves) {
  std::vector<Plot> plots{loss_plot(curves)};
  for (Plot& plot : metric_plots(curves)) plots.push_back(std::move(plot));
  const TimeUnit unit = unit_of(curves);
  const auto time = [unit](const ProgressPoint& p) { return p.elapsed_s / unit.seconds; };
  const std::string time_axis = fmt::format("time since the start ({})", unit.name);
  const auto add = [&](Plot plot, const std::vector<std::pair<const char*, Figure>>& figures) {
    plot.x = time_axis;
    for (const auto& [name, y] : figures)
      plot.series.push_back(progress_series(name, curves, time, y));
    plots.push_back(std::move(plot));
  };
  const auto to_double = [](std::uint64_t count) { return static_cast<double>(count); };
  add({.name = "steps", .title = "Steps of the workers", .y = "steps finished"},
      {{"fastest", [=](const auto& p) { return to_double(p.spread.max); }},
       {"median", [=](const auto& p) { return to_double(p.spread.median); }},
       {"slowest", [=](const auto& p) { return to_double(p.spread.min); }}});
  if (job.options.job.workers > 1) {
    add({.name = "spread", .title = "Spread of the workers", .y = "steps ahead of the slowest"},
        {{"fastest", [=](const auto& p) { return to_double(p.spread.max - p.spread.min); }},
         {"median", [=](const auto& p) { return to_double(p.spread.median - p.spread.min); }}});
    add({.name = "waiting",
         .title = "Waiting at the barrier",
         .y = "of the workers' time so far (%)",
         .is_share = true},
        {{"", [](const auto& p) { return p.waiting_share; }}});
  }
  if (barrier::is_sampled(job.options.job.barrier))
    add({.name = "draws", .title = "Draws of the barrier", .y = "draws so far"},
        {{"let the worker pass", [=](const auto& p) { return to_double(p.passes); }},
         {"made it wait",
          [=](const auto& p) { return to_double(p.draws - std::min(p.draws, p.passes)); }}});
  std::erase_if(plots, [](const Plot& plot) {
    return std::ranges::all_of(plot.series, [](const Series& s) { return s.points.empty(); });
  });
  return plots;
}

Document report_page(const EndedJob& ended, const Curves& curves) {
  auto [settings, figures] = tables_of(ended);
  Document page{.title = ended.job.model_name() + " on " + ended.job.data, .sections = {}};
  auto& sections = page.sections;
  if (auto notes = notes_of(ended, curves); !notes.empty())
    sections.push_back({"Notes", std::move(notes)});
  sections.push_back({"Result", {std::move(figures)}});
  sections.push_back({.title = "Curves", .blocks = {}, .is_gallery = true});
  sections.push_back({"Configuration", {std::move(settings), machine_table(ended.job)}});
  sections.push_back({"All figures", {progress_table(curves), evaluation_table(curves)}});
  return page;
}

Result<void> write_report(const std::string& path, const EndedJob& ended, const Curves& curves) {
  Document page = report_page(ended, curves);
  auto& blocks = std::ranges::find(page.sections, "Curves", &Section::title)->blocks;
  for (const Plot& plot : report_plots(ended.job, curves)) {
    const auto svg = draw(plot);
    if (svg)
      blocks.emplace_back(Picture{plot.name, "", *svg});
    else
      blocks.emplace_back(Paragraph{plot.title + ": is not drawn: " + svg.error().message});
  }
  return replace_file(path, html_text(page));
}

}  // namespace starling::program
