#include "starling/tools/twin/twin_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/table.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// A figure's title in the table, and how its values are written there.
struct Shown {
  std::string_view name;
  std::string_view title;
  std::string (*text)(double);
};

std::string whole(double value) { return fmt::format("{:.0f}", value); }
std::string percent(double value) { return fmt::format("{:.1f} %", 100 * value); }
std::string time(double value) { return fmt::format("{:.3g} s", value); }

constexpr Shown figures[] = {{"elapsed_s", "time", time},
                             {"updates", "updates", whole},
                             {"steps_min", "steps, slowest worker", whole},
                             {"steps_median", "steps, median", whole},
                             {"steps_max", "steps, fastest worker", whole},
                             {"max_lag", "largest lag", whole},
                             {"waiting_share", "waiting", percent}};

double overhead_s(const SimJob& job) { return in_seconds(job.options.overhead); }

std::vector<std::string> row(const Compared& compared) {
  const auto* shown = std::ranges::find(figures, compared.name, &Shown::name);
  const auto text = shown->text;
  return {std::string{shown->title},
          text(compared.live),
          text(compared.low),
          text(compared.middle),
          text(compared.high),
          text(compared.from) + " to " + text(compared.to),
          compared.is_inside() ? "yes" : "NO"};
}

/// "bsp, 50 workers, central, delay exp:20ms: 10 s live, 200 simulations".
std::string description(const Twins& twins) {
  const SimJob& job = twins.job;
  const auto& barrier = job.barriers.front();
  std::string text = fmt::format("{}, {}, {}, delay {}", barrier::print(barrier),
                                 counted(job.options.workers, "worker"), core::print(job.mode),
                                 print(job.options.step_time));
  for (const StragglerRule& straggler : job.stragglers) text += ", straggler " + print(straggler);
  if (barrier::draws(barrier)) text += ", recheck " + barrier::print(job.options.recheck);
  return text +
         fmt::format(": {:.3g} s live, {}", twins.live.elapsed_s, counted(job.seeds, "simulation"));
}

std::string verdict(const Twins& twins) {
  const auto outside = std::ranges::count_if(
      twins.compared, [](const Compared& compared) { return !compared.is_inside(); });
  if (outside == 0) return "the live run is as simulated";
  return fmt::format("{} of {} figures of the live run are not as simulated", outside,
                     twins.compared.size());
}

}  // namespace

bool agree(const Twins& twins) { return std::ranges::all_of(twins.compared, &Compared::is_inside); }

std::string twin_table(const Twins& twins) {
  TextTable table{{"figure", "live", "0.5 %", "median", "99.5 %", "allowed", "inside"}};
  for (const Compared& compared : twins.compared) table.rows.push_back(row(compared));
  return fmt::format("{}\na step of the live run took {:.3g} ms beyond its delay\n{}{}\n",
                     description(twins), 1000 * overhead_s(twins.job), plain_text(table),
                     verdict(twins));
}

std::string twin_json(const Twins& twins) {
  const SimJob& job = twins.job;
  Json json;
  json["barrier"] = barrier::print(job.barriers.front());
  json["mode"] = core::print(job.mode);
  if (barrier::draws(job.barriers.front())) json["recheck"] = barrier::print(job.options.recheck);
  json["workers"] = job.options.workers;
  json["step_time"] = print(job.options.step_time);
  for (const StragglerRule& straggler : job.stragglers)
    json["straggler"].push_back(print(straggler));
  json["seed"] = job.options.seed;
  json["seeds"] = job.seeds;
  json["live_s"] = twins.live.elapsed_s;
  json["completed"] = twins.completed;
  json["overhead_s"] = overhead_s(job);
  for (const Compared& compared : twins.compared)
    json["figures"][compared.name] = {{"live", compared.live},
                                      {"low", compared.low},
                                      {"median", compared.middle},
                                      {"high", compared.high},
                                      {"allowed", {compared.from, compared.to}},
                                      {"inside", compared.is_inside()}};
  json["inside"] = agree(twins);
  json["version"] = version();
  return json.dump();
}

}  // namespace starling::program
