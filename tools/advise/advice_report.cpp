#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "starling/base/json_text.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/advise/advice.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/amounts.hpp"
#include "starling/tools/report/table.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// Indices of `learning_rates`.
constexpr std::size_t small_rate_index = 0;
constexpr std::size_t large_rate_index = 1;

std::string name_of(const Advice& advice, std::size_t barrier_index) {
  return barrier::print(advice.barriers[barrier_index].barrier);
}

/// Prints a duration in a unit that suits it: "12.3 ms", "1.45 s".
std::string print_seconds(double seconds) {
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} us", 1e6 * seconds);
  return seconds < 0.9995 ? fmt::format("{:.3g} ms", 1e3 * seconds) : seconds_text(seconds);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string time_to_loss(const BarrierFigures& figures, std::size_t rate_index) {
  const auto& seconds = figures.seconds_to_loss[rate_index];
  return seconds ? print_seconds(seconds->mean) : "-";
}

TextTable workers_table(const Advice& advice) {
  TextTable table{{"worker", "steps", "mean step", "jitter", "slowness (mean / fastest)"}};
  for (std::size_t i = 0; i < advice.workers.size(); ++i) {
    const RecordedFigures& worker = advice.workers[i];
    table.rows.push_back({printable(advice.names[i]), std::to_string(advice.steps[i]),
                          print_seconds(worker.mean_s), percent_text(worker.jitter),
                          fmt::format("{:.2f}", worker.slowness)});
  }
  return table;
}

TextTable barriers_table(const Advice& advice) {
  TextTable table{{"barrier", "updates", "per s", "waiting", "staleness", "largest lag",
                   "to loss, small rate", "to loss, large rate"}};
  for (const BarrierFigures& figures : advice.barriers)
    table.rows.push_back(
        {barrier::print(figures.barrier), fmt::format("{:.0f}", figures.updates.mean),
         fmt::format("{:.4g}", figures.updates.mean / in_seconds(advice.horizon)),
         percent_text(figures.waiting_share.mean), fmt::format("{:.2f}", figures.staleness.mean),
         fmt::format("{:.0f}", figures.max_lag), time_to_loss(figures, small_rate_index),
         time_to_loss(figures, large_rate_index)});
  return table;
}

/// Describes what was simulated.
std::string description(const Advice& advice) {
  return fmt::format(
      "{} of the slowest worker ({} of virtual time), {}, seeds {} to {}; target loss: "
      "{:.0f} % of the first loss",
      print_count(advice.options.steps, "step"), print_seconds(in_seconds(advice.horizon)),
      core::print(advice.options.mode), advice.options.seed,
      advice.options.seed + (advice.options.seeds - 1), 100 * target_loss);
}

/// Returns the time in which a barrier reaches the target loss, and the figures on which that time
/// depends.
std::string time_and_causes_text(const BarrierFigures& figures, std::size_t rate_index) {
  return fmt::format("{} ({} waiting, staleness {:.2f})", time_to_loss(figures, rate_index),
                     percent_text(figures.waiting_share.mean), figures.staleness.mean);
}

/// Compares the winner at a learning rate with the first barrier, which is the strictest unless the
/// user has named the barriers. Names the barriers that are equally good.
std::string reason(const Advice& advice, const std::optional<Winner>& winner,
                   std::size_t rate_index) {
  if (!winner) return "no barrier reaches the target loss; more --steps may show which one does.";
  const BarrierFigures& best = advice.barriers[winner->barrier];
  const BarrierFigures& first = advice.barriers.front();
  const bool first_wins = winner->barrier == 0;
  std::string text =
      fmt::format("{} reaches the target loss in {}", name_of(advice, winner->barrier),
                  time_and_causes_text(best, rate_index));
  if (!first_wins && first.seconds_to_loss[rate_index])
    text += fmt::format(
        ", {:.2f} times as fast as {}, which takes {}",
        first.seconds_to_loss[rate_index]->mean / best.seconds_to_loss[rate_index]->mean,
        name_of(advice, 0), time_and_causes_text(first, rate_index));
  else if (!first_wins)
    text += fmt::format("; {} does not reach it", name_of(advice, 0));
  text += ".";
  std::vector<std::string> as_fresh;
  std::vector<std::string> staler;
  for (const std::size_t index : winner->equals)
    (advice.barriers[index].staleness.mean > best.staleness.mean ? staler : as_fresh)
        .push_back(name_of(advice, index));
  if (!as_fresh.empty())
    text += fmt::format(" Equally good within {:.0f} %: {}.", 100 * equal_within,
                        fmt::join(as_fresh, ", "));
  if (!staler.empty())
    text += fmt::format(" Equally good within {:.0f} %, but with staler updates: {}.",
                        100 * equal_within, fmt::join(staler, ", "));
  return text;
}

/// Returns true if the barrier bounds how far apart the workers get. A sampled barrier whose sample
/// contains all other workers counts as the same barrier without sampling.
bool bounds_spread(barrier::Barrier barrier, std::size_t workers) {
  const std::size_t others = workers - 1;
  if (barrier::seen_workers(barrier, others) == others) barrier.sample.reset();
  return barrier::spread_bound(barrier).has_value();
}

Json summary_json(const Summary& values) {
  return {{"mean", values.mean}, {"sd", values.sd}, {"min", values.min}, {"max", values.max}};
}

Json barrier_json(const BarrierFigures& figures, double horizon_s) {
  Json json{{"barrier", barrier::print(figures.barrier)},
            {"updates", summary_json(figures.updates)},
            {"updates_per_s", figures.updates.mean / horizon_s},
            {"waiting_share", summary_json(figures.waiting_share)},
            {"staleness", summary_json(figures.staleness)},
            {"max_lag", figures.max_lag}};
  for (std::size_t r = 0; r < learning_rates.size(); ++r) {
    const auto& seconds = figures.seconds_to_loss[r];
    json[r == small_rate_index ? "seconds_to_loss_at_small_rate"
                               : "seconds_to_loss_at_large_rate"] =
        seconds ? summary_json(*seconds) : Json{};
  }
  return json;
}

Json winner_json(const Advice& advice, Measure measure) {
  const auto& winner = advice.winner(measure);
  if (!winner) return {};
  Json equals = Json::array();
  for (const std::size_t index : winner->equals) equals.push_back(name_of(advice, index));
  return {{"barrier", name_of(advice, winner->barrier)}, {"as_good", equals}};
}

}  // namespace

std::string advice_text(const Advice& advice) {
  const auto& small = advice.winner(Measure::seconds_at_small_rate);
  const auto& large = advice.winner(Measure::seconds_at_large_rate);
  const std::string best = small ? name_of(advice, small->barrier) : "none";
  std::string text = plain_text(workers_table(advice)) + "\n" + description(advice) + "\n" +
                     plain_text(barriers_table(advice)) + "\nadvice: " + best + "\n";
  text += "  At a small learning rate, " + reason(advice, small, small_rate_index) + "\n";
  text += "  At a large learning rate, " + reason(advice, large, large_rate_index) + "\n";
  if (small && !bounds_spread(advice.barriers[small->barrier].barrier, advice.workers.size()))
    text += fmt::format(
        "  {} does not bound how far apart the workers get: in these runs, two of them were up to "
        "{:.0f} steps apart.\n",
        best, advice.barriers[small->barrier].max_lag);
  return text;
}

std::string advice_json(const Advice& advice) {
  Json json;
  const auto& best = advice.winner(Measure::seconds_at_small_rate);
  json["advice"] = best ? Json(name_of(advice, best->barrier)) : Json{};
  json["winners"] = {
      {"updates", winner_json(advice, Measure::updates)},
      {"staleness", winner_json(advice, Measure::staleness)},
      {"seconds_to_loss_at_small_rate", winner_json(advice, Measure::seconds_at_small_rate)},
      {"seconds_to_loss_at_large_rate", winner_json(advice, Measure::seconds_at_large_rate)}};
  for (const BarrierFigures& figures : advice.barriers)
    json["barriers"].push_back(barrier_json(figures, in_seconds(advice.horizon)));
  for (std::size_t i = 0; i < advice.workers.size(); ++i)
    json["workers"].push_back({{"worker", printable(advice.names[i])},
                               {"steps", advice.steps[i]},
                               {"mean_s", advice.workers[i].mean_s},
                               {"jitter", advice.workers[i].jitter},
                               {"slowness", advice.workers[i].slowness}});
  json["file"] = printable(advice.options.file);
  json["mode"] = core::print(advice.options.mode);
  json["horizon_s"] = in_seconds(advice.horizon);
  json["steps"] = advice.options.steps;
  json["seed"] = advice.options.seed;
  json["seeds"] = advice.options.seeds;
  json["version"] = version();
  return json_text(json);
}

}  // namespace starling::program
