#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/advise/advice.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/table.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

std::string name_of(const Advice& advice, std::size_t barrier) {
  return barrier::print(advice.barriers[barrier].barrier);
}

/// Prints a duration in a unit that suits it: "12.3 ms", "1.45 s".
std::string print_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", 1e6 * seconds);
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string seconds_to_loss(const BarrierFigures& barrier, std::size_t rate) {
  const auto& seconds = barrier.seconds_to_loss[rate];
  return seconds ? print_seconds(seconds->mean) : "-";
}

TextTable workers_table(const Advice& advice) {
  TextTable table{{"worker", "steps", "mean", "jitter", "slowness"}};
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
                   "small rate", "large rate"}};
  for (const BarrierFigures& barrier : advice.barriers)
    table.rows.push_back(
        {barrier::print(barrier.barrier), fmt::format("{:.0f}", barrier.updates.mean),
         fmt::format("{:.4g}", barrier.updates.mean / in_seconds(advice.horizon)),
         percent_text(barrier.waiting_share.mean), fmt::format("{:.2f}", barrier.staleness.mean),
         fmt::format("{:.0f}", barrier.max_lag), seconds_to_loss(barrier, 0),
         seconds_to_loss(barrier, 1)});
  return table;
}

/// Describes what was simulated.
std::string description(const Advice& advice) {
  return fmt::format("{} of the slowest worker ({} of virtual time), {}, seeds {} to {}",
                     print_count(advice.options.steps, "step"),
                     print_seconds(in_seconds(advice.horizon)), core::print(advice.options.mode),
                     advice.options.seed, advice.options.seed + (advice.options.seeds - 1));
}

/// Describes a barrier by the time in which it reaches the loss, and by what that time depends on.
std::string figures_text(const BarrierFigures& barrier, std::size_t rate) {
  return fmt::format("{} ({} waiting, staleness {:.2f})", seconds_to_loss(barrier, rate),
                     percent_text(barrier.waiting_share.mean), barrier.staleness.mean);
}

/// Compares the winner at a learning rate with the strictest barrier, and names the barriers that
/// are equally good.
std::string reason(const Advice& advice, const std::optional<Winner>& winner, std::size_t rate) {
  if (!winner) return "no barrier reaches the loss; more --steps may show which one does.";
  const BarrierFigures& best = advice.barriers[winner->barrier];
  const BarrierFigures& first = advice.barriers.front();
  std::string text = fmt::format("{} reaches the loss in {}", name_of(advice, winner->barrier),
                                 figures_text(best, rate));
  if (winner->barrier != 0 && first.seconds_to_loss[rate])
    text += fmt::format(", {:.2f} times as fast as {}, which takes {}",
                        first.seconds_to_loss[rate]->mean / best.seconds_to_loss[rate]->mean,
                        name_of(advice, 0), figures_text(first, rate));
  else if (winner->barrier != 0)
    text += fmt::format("; {} does not reach it", name_of(advice, 0));
  text += ".";
  std::vector<std::string> as_fresh;
  std::vector<std::string> staler;
  for (const std::size_t barrier : winner->equals)
    (advice.barriers[barrier].staleness.mean > best.staleness.mean ? staler : as_fresh)
        .push_back(name_of(advice, barrier));
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
  if (barrier::seen_workers(barrier, workers - 1) + 1 == workers) barrier.sample.reset();
  return barrier::spread_bound(barrier).has_value();
}

Json figures_json(const Summary& values) {
  return {{"mean", values.mean}, {"sd", values.sd}, {"min", values.min}, {"max", values.max}};
}

Json barrier_json(const BarrierFigures& barrier, double horizon_s) {
  Json json{{"barrier", barrier::print(barrier.barrier)},
            {"updates", figures_json(barrier.updates)},
            {"updates_per_s", barrier.updates.mean / horizon_s},
            {"waiting_share", figures_json(barrier.waiting_share)},
            {"staleness", figures_json(barrier.staleness)},
            {"max_lag", barrier.max_lag}};
  for (std::size_t r = 0; r < learning_rates.size(); ++r) {
    const auto& seconds = barrier.seconds_to_loss[r];
    json[r == 0 ? "seconds_to_loss_at_small_rate" : "seconds_to_loss_at_large_rate"] =
        seconds ? figures_json(*seconds) : Json{};
  }
  return json;
}

Json winner_json(const Advice& advice, Measure measure) {
  const auto& winner = advice.winner(measure);
  if (!winner) return {};
  Json equals = Json::array();
  for (const std::size_t barrier : winner->equals) equals.push_back(name_of(advice, barrier));
  return {{"barrier", name_of(advice, winner->barrier)}, {"as_good", equals}};
}

}  // namespace

std::string advice_text(const Advice& advice) {
  const auto& small = advice.winner(Measure::seconds_at_small_rate);
  const auto& large = advice.winner(Measure::seconds_at_large_rate);
  const std::string best = small ? name_of(advice, small->barrier) : "none";
  std::string text = plain_text(workers_table(advice)) + "\n" + description(advice) + "\n" +
                     plain_text(barriers_table(advice)) + "\nadvice: " + best + "\n";
  text += "  At a small learning rate, " + reason(advice, small, 0) + "\n";
  text += "  At a large learning rate, " + reason(advice, large, 1) + "\n";
  if (small && !bounds_spread(advice.barriers[small->barrier].barrier, advice.workers.size()))
    text += fmt::format(
        "  {} does not bound how far apart the workers get; here it was {:.0f} steps.\n", best,
        advice.barriers[small->barrier].max_lag);
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
  for (const BarrierFigures& barrier : advice.barriers)
    json["barriers"].push_back(barrier_json(barrier, in_seconds(advice.horizon)));
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
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace starling::program
