#include "starling/tools/twin/twin_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "starling/base/json_text.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/amounts.hpp"
#include "starling/tools/report/table.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// The row of a figure in the table.
struct FigureFormat {
  std::string_view name;
  std::string_view title;
  /// Prints a value of the figure.
  std::string (*print)(double);
};

std::string print_whole(double value) { return fmt::format("{:.0f}", value); }
std::string print_percent(double value) { return fmt::format("{:.1f} %", 100 * value); }
std::string print_time(double value) { return seconds_text(value); }

constexpr FigureFormat formats[] = {{"elapsed_s", "time", print_time},
                                    {"updates", "updates", print_whole},
                                    {"steps_min", "steps, slowest worker", print_whole},
                                    {"steps_median", "steps, median", print_whole},
                                    {"steps_max", "steps, fastest worker", print_whole},
                                    {"max_lag", "largest lag", print_whole},
                                    {"waiting_share", "waiting", print_percent}};

double overhead_s(const SimJob& job) { return in_seconds(job.options.overhead); }

std::vector<std::string> table_row(const FigureComparison& figure) {
  const auto* format = std::ranges::find(formats, figure.name, &FigureFormat::name);
  const auto text = format->print;
  return {std::string{format->title},
          text(figure.live),
          text(figure.low),
          text(figure.median),
          text(figure.high),
          text(figure.allowed_min) + " to " + text(figure.allowed_max),
          figure.is_inside() ? "yes" : "NO"};
}

/// Describes the live run: "bsp, 50 workers, central, delay exp:20ms: 10 s live, 200 simulations".
std::string description(const TwinReport& report) {
  const SimJob& job = report.job;
  const auto& barrier = job.barriers.front();
  std::string text = fmt::format("{}, {}, {}, delay {}", barrier::print(barrier),
                                 print_count(job.options.workers, "worker"), core::print(job.mode),
                                 print(job.options.step_time));
  for (const StragglerRule& straggler : job.stragglers) text += ", straggler " + print(straggler);
  if (barrier::is_sampled(barrier)) text += ", recheck " + barrier::print(job.options.recheck);
  return text + fmt::format(": {} live, {}", seconds_text(report.live.elapsed_s),
                            print_count(job.seeds, "simulation"));
}

std::string conclusion(const TwinReport& report) {
  const auto outside = std::ranges::count_if(
      report.figures, [](const FigureComparison& figure) { return !figure.is_inside(); });
  if (outside == 0) return "the live run is as simulated";
  return fmt::format("{} of {} figures of the live run are not as simulated", outside,
                     report.figures.size());
}

}  // namespace

bool do_all_agree(const TwinReport& report) {
  return std::ranges::all_of(report.figures, &FigureComparison::is_inside);
}

std::string twin_table(const TwinReport& report) {
  TextTable table{{"figure", "live", "0.5 %", "median", "99.5 %", "allowed", "inside"}};
  for (const FigureComparison& figure : report.figures) table.rows.push_back(table_row(figure));
  return fmt::format("{}\na step of the live run took {:.3g} ms beyond its delay\n{}{}\n",
                     description(report), 1000 * overhead_s(report.job), plain_text(table),
                     conclusion(report));
}

std::string twin_json(const TwinReport& report) {
  const SimJob& job = report.job;
  Json json;
  json["barrier"] = barrier::print(job.barriers.front());
  json["mode"] = core::print(job.mode);
  if (barrier::is_sampled(job.barriers.front()))
    json["recheck"] = barrier::print(job.options.recheck);
  json["workers"] = job.options.workers;
  json["step_time"] = print(job.options.step_time);
  for (const StragglerRule& straggler : job.stragglers)
    json["straggler"].push_back(print(straggler));
  json["seed"] = job.options.seed;
  json["seeds"] = job.seeds;
  json["live_s"] = report.live.elapsed_s;
  json["completed"] = report.completed;
  json["overhead_s"] = overhead_s(job);
  for (const FigureComparison& figure : report.figures)
    json["figures"][figure.name] = {{"live", figure.live},
                                    {"low", figure.low},
                                    {"median", figure.median},
                                    {"high", figure.high},
                                    {"allowed", {figure.allowed_min, figure.allowed_max}},
                                    {"inside", figure.is_inside()}};
  json["inside"] = do_all_agree(report);
  json["version"] = version();
  return json_text(json);
}

}  // namespace starling::program
