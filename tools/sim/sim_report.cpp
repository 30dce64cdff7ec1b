#include "starling/tools/sim/sim_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starling/base/json_text.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/amounts.hpp"
#include "starling/tools/report/table.hpp"
#include "starling/tools/sim/barrier_messages.hpp"
#include "starling/tools/sim/exchange_report.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

bool has_step_limit(const SimJob& job) { return job.options.steps_max != barrier::finished; }
/// Returns true if runs under `barrier` end when all samples of the epochs are taken, instead of
/// at the limit of steps.
bool ends_by_samples(const SimJob& job, const barrier::Barrier& barrier) {
  const bool has_dynamic_batches = job.learned && job.learned->batch.starts_with("dynamic");
  return job.epochs && (has_dynamic_batches || barrier::hands_in_early(barrier));
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// Prints a rate: "3737", or "0.33" for a low one.
std::string rate(double value) { return fmt::format("{:.{}f}", value, value < 10 ? 2 : 0); }

/// Prints a mean over seeds, with its confidence interval if there is more than one seed.
std::string mean_text(const Summary& values, int digits) {
  const auto mean = fmt::format("{:.{}f}", values.mean, digits);
  return values.count < 2 ? mean : fmt::format("{} ± {:.{}f}", mean, confidence_95(values), digits);
}

double last_error(const SimRun& run) { return run.errors.back().y; }
/// Return the steps of the slowest worker of all runs, and of the fastest one.
double slowest_worker_steps(const SimRuns& runs) {
  return over_runs(runs, [](const SimRun& run) { return run.steps.min; }).min;
}
double fastest_worker_steps(const SimRuns& runs) {
  return over_runs(runs, [](const SimRun& run) { return run.steps.max; }).max;
}
double mean_of(const SimRuns& runs, const std::function<double(const SimRun&)>& figure) {
  return over_runs(runs, figure).mean;
}

/// Returns the longest time, in seconds, during which some sample contributed to no update, in any
/// run; nullopt if it was not measured.
std::optional<double> longest_gap(const SimRuns& runs) {
  std::optional<double> longest;
  for (const SimRun& run : runs)
    if (run.longest_gap) longest = std::max(longest.value_or(0), in_seconds(*run.longest_gap));
  return longest;
}
bool has_gaps(const Simulated& simulated) {
  return std::ranges::any_of(simulated,
                             [](const auto& runs) { return longest_gap(runs).has_value(); });
}

std::vector<std::string> table_row(const SimJob& job, const barrier::Barrier& barrier,
                                   const SimRuns& runs) {
  std::vector<std::string> row{
      barrier::print(barrier),
      mean_text(over_runs(runs, [](const SimRun& run) { return run.steps.mean; }), 1),
      fmt::format("{:.1f}", mean_of(runs, [](const SimRun& run) { return run.steps.sd; })),
      fmt::format("{:.0f}", slowest_worker_steps(runs)),
      print_number(std::round(10 * mean_of(runs, [](const SimRun& run) { return run.median; })) /
                   10),
      fmt::format("{:.0f}", fastest_worker_steps(runs)),
      percent(mean_of(runs, [](const SimRun& run) { return run.waiting_share; })),
      rate(mean_of(runs, updates_per_second)),
      fmt::format("{:.2f}", mean_of(runs, messages_a_step))};
  if (job.learn) row.push_back(fmt::format("{:.3g}", mean_of(runs, last_error)));
  if (has_step_limit(job))
    row.push_back(seconds_text(mean_of(runs, [](const SimRun& run) { return run.elapsed_s; })));
  return row;
}

/// Returns `value` as JSON, a whole number without a decimal point.
Json json_number(double value) {
  if (value == std::floor(value) && value >= 0 && value < 0x1p63)
    return static_cast<std::uint64_t>(value);
  return value;
}

/// Returns the names of the model's metrics; empty at the step level.
std::vector<std::string> metric_names(const Simulated& simulated) {
  std::vector<std::string> names;
  if (simulated.empty() || simulated[0].empty() || simulated[0][0].metrics.empty()) return names;
  for (const auto& metric : simulated[0][0].metrics.back()) names.push_back(metric.name);
  return names;
}

/// Returns the model's metric with this index at the end of a run; 0 at the step level.
double last_metric(const SimRun& run, std::size_t index) {
  return run.metrics.empty() ? 0 : run.metrics.back().at(index).value;
}

double mean_metric(const SimRuns& runs, std::size_t index) {
  return mean_of(runs, [&](const SimRun& run) { return last_metric(run, index); });
}

/// Returns the messages and bytes of each kind of message, as means over the runs.
Json traffic_json(const SimRuns& runs) {
  Json json;
  for (std::size_t kind = 0; kind < sim::message_kinds; ++kind) {
    const auto mean = [&](std::uint64_t sim::Traffic::*count) {
      return mean_of(
          runs, [&](const SimRun& run) { return static_cast<double>(run.traffic[kind].*count); });
    };
    if (const double messages = mean(&sim::Traffic::messages); messages > 0)
      json[std::string{sim::kind_of_message(kind)}] = {
          {"messages", json_number(messages)}, {"bytes", json_number(mean(&sim::Traffic::bytes))}};
  }
  return json;
}

/// Adds the figures that only the protocol level has.
void add_learning(Json& json, const SimRuns& runs) {
  for (const auto& name : metric_names({runs}))
    json["figures"][name] = mean_metric(runs, json["figures"].size());
  json["traffic"] = traffic_json(runs);
  const auto mean = [&](std::uint64_t sim::Network::Counts::*count) {
    return json_number(
        mean_of(runs, [&](const SimRun& run) { return static_cast<double>(run.packets.*count); }));
  };
  json["packets"] = {{"sent", mean(&sim::Network::Counts::sent)},
                     {"lost", mean(&sim::Network::Counts::lost)},
                     {"duplicated", mean(&sim::Network::Counts::duplicated)}};
}

std::vector<std::string> straggler_texts(const SimJob& job) {
  std::vector<std::string> texts;
  for (const auto& straggler : job.stragglers) texts.push_back(print(straggler));
  return texts;
}

bool is_any_sampled(const SimJob& job) {
  return std::ranges::any_of(job.barriers,
                             [](const auto& barrier) { return barrier::is_sampled(barrier); });
}

Json run_json(const SimRun& run) {
  Json json;
  json["seed"] = run.seed;
  json["steps"] = {{"mean", run.steps.mean},
                   {"sd", run.steps.sd},
                   {"min", json_number(run.steps.min)},
                   {"median", json_number(run.median)},
                   {"max", json_number(run.steps.max)}};
  json["updates"] = run.updates;
  json["updates_per_s"] = updates_per_second(run);
  json["waiting_share"] = run.waiting_share;
  json["messages"] = run.messages.total();
  if (run.draws > 0) {
    json["draws"] = run.draws;
    json["passes"] = run.passes;
  }
  json["max_lag"] = run.max_lag;
  if (run.longest_gap) json["longest_gap_s"] = in_seconds(*run.longest_gap);
  json["elapsed_s"] = run.elapsed_s;
  if (run.exchange) add_exchange(json, run);
  if (!run.errors.empty()) json["normalised_error"] = last_error(run);
  return json;
}

void add_settings(Json& json, const SimJob& job, const barrier::Barrier& barrier) {
  json["barrier"] = barrier::print(barrier);
  json["mode"] = core::print(job.mode);
  if (barrier::is_sampled(barrier)) json["recheck"] = barrier::print(job.options.recheck);
  json["workers"] = job.options.workers;
  json["step_time"] = print(job.options.step_time);
  if (const auto slow = straggler_texts(job); !slow.empty()) json["straggler"] = slow;
  json["horizon_s"] = in_seconds(job.options.horizon);
  if (ends_by_samples(job, barrier)) {
    json["epochs"] = *job.epochs;
    if (job.steps_limit != barrier::finished) json["steps_limit"] = job.steps_limit;
  } else if (has_step_limit(job)) {
    json["steps_limit"] = job.options.steps_max;
  }
  json["level"] = job.level == Level::step ? "step" : "protocol";
  if (job.level == Level::step)
    json["sampling"] = job.options.sampling == sim::Sampling::exact ? "exact" : "plain";
  else
    json["network"] = {
        {"latency", print(job.link.latency)},
        {"bytes_per_s", job.link.bytes_per_second > 0 ? Json(job.link.bytes_per_second) : Json{}},
        {"loss", job.link.loss},
        {"duplicates", job.link.duplication},
        {"held_up", job.link.reordering},
        {"held_up_by", print(job.link.delay)}};
  if (job.learned) {
    json["data"] = job.learned->data;
    json["model"] = job.learned->model;
    if (!job.learned->optimizer.empty()) json["optimizer"] = job.learned->optimizer;
    json["exchange"] = job.learned->exchange;
    if (!job.learned->compression.empty()) json["compression"] = job.learned->compression;
    if (const auto count = parse_count(job.learned->batch))
      json["batch"] = *count;
    else if (!job.learned->batch.empty())
      json["batch"] = job.learned->batch;
    if (job.learned->shards > 0) json["shards"] = job.learned->shards;
  }
  if (!job.notes.empty()) json["notes"] = job.notes;
  json["seed"] = job.options.seed;
  json["seeds"] = job.seeds;
}

Json steps_json(const SimRuns& runs) {
  const auto mean = over_runs(runs, [](const SimRun& run) { return run.steps.mean; });
  Json json{{"mean", mean.mean}};
  if (mean.count > 1)
    json["mean_ci95"] = {mean.mean - confidence_95(mean), mean.mean + confidence_95(mean)};
  json["sd"] = mean_of(runs, [](const SimRun& run) { return run.steps.sd; });
  json["min"] = json_number(slowest_worker_steps(runs));
  json["median"] = json_number(mean_of(runs, [](const SimRun& run) { return run.median; }));
  json["max"] = json_number(fastest_worker_steps(runs));
  return json;
}

void add_messages(Json& json, const SimRuns& runs) {
  json["messages"] = json_number(
      mean_of(runs, [](const SimRun& run) { return static_cast<double>(run.messages.total()); }));
  json["messages_a_step"] = mean_of(runs, messages_a_step);
  for (const auto& [name, kind] : barrier_messages)
    json["messages_by_kind"][name] = json_number(mean_of(runs, [count = kind](const SimRun& run) {
      return static_cast<double>(run.messages.*count);
    }));
}

Json barrier_json(const SimJob& job, const barrier::Barrier& barrier, const SimRuns& runs) {
  Json json;
  add_settings(json, job, barrier);
  json["steps"] = steps_json(runs);
  json["updates"] = json_number(
      mean_of(runs, [](const SimRun& run) { return static_cast<double>(run.updates); }));
  json["updates_per_s"] = mean_of(runs, updates_per_second);
  json["waiting_share"] = mean_of(runs, [](const SimRun& run) { return run.waiting_share; });
  add_messages(json, runs);
  if (barrier::is_sampled(barrier)) {
    json["draws"] = json_number(
        mean_of(runs, [](const SimRun& run) { return static_cast<double>(run.draws); }));
    json["passes"] = json_number(
        mean_of(runs, [](const SimRun& run) { return static_cast<double>(run.passes); }));
  }
  json["max_lag"] = json_number(
      over_runs(runs, [](const SimRun& run) { return static_cast<double>(run.max_lag); }).max);
  if (const auto gap = longest_gap(runs)) json["longest_gap_s"] = *gap;
  json["elapsed_s"] = mean_of(runs, [](const SimRun& run) { return run.elapsed_s; });
  if (job.options.exchange) add_exchange(json, job, runs);
  if (job.level == Level::protocol) add_learning(json, runs);
  if (job.learn) json["normalised_error"] = mean_of(runs, last_error);
  for (const SimRun& run : runs) json["runs"].push_back(run_json(run));
  json["version"] = version();
  return json;
}

/// Describes the training and the network.
std::string describe_protocol(const SimJob& job) {
  const auto& link = job.link;
  std::string text = "level protocol";
  if (job.learned) {
    text += fmt::format(": {}, {}", job.learned->data, job.learned->model);
    if (!job.learned->optimizer.empty())
      text += fmt::format(", {}, batch {}", job.learned->optimizer, job.learned->batch);
    if (job.learned->exchange != core::exchange_types().front().name)
      text += ", exchange " + job.learned->exchange;
    if (!job.learned->compression.empty()) text += ", compression " + job.learned->compression;
    if (job.learned->shards > 0) text += ", " + print_count(job.learned->shards, "shard");
  }
  text += "; latency " + print(link.latency);
  if (link.bytes_per_second > 0) text += fmt::format(", {:.4g} MB/s", link.bytes_per_second / 1e6);
  const auto share = [&](const char* name, double value) {
    if (value > 0) text += fmt::format(", {} {:.4g} %", name, 100 * value);
  };
  share("loss", link.loss);
  share("duplicates", link.duplication);
  share("held up", link.reordering);
  return link.reordering > 0 ? text + " by " + print(link.delay) : text;
}

}  // namespace

std::string describe(const SimJob& job) {
  const auto& options = job.options;
  std::string text = fmt::format("{}, {}, steps {}", print_count(options.workers, "worker"),
                                 core::print(job.mode), print(options.step_time));
  if (!job.stragglers.empty())
    text += fmt::format(", stragglers {}", fmt::join(straggler_texts(job), ", "));
  text += ", " + print_duration(options.horizon);
  const bool by_samples =
      std::ranges::any_of(job.barriers, [&](auto& one) { return ends_by_samples(job, one); });
  if (by_samples) text += fmt::format(", {} epochs", print_number(*job.epochs));
  const core::Step steps_limit = by_samples ? job.steps_limit : options.steps_max;
  if (steps_limit != barrier::finished) text += fmt::format(", at most {} steps each", steps_limit);
  if (is_any_sampled(job)) text += ", recheck " + barrier::print(options.recheck);
  const auto last_seed = options.seed + (job.seeds - 1);
  text += job.seeds == 1
              ? fmt::format(", seed {}", options.seed)
              : fmt::format(", seeds {} to {}, ± a 95 % interval", options.seed, last_seed);
  if (options.exchange) text += "\n" + describe_exchange(job);
  if (job.level == Level::protocol) text += "\n" + describe_protocol(job);
  if (!job.notes.empty()) text += fmt::format("\n{}", fmt::join(job.notes, "; "));
  return text;
}

std::string sim_table(const SimJob& job, const Simulated& simulated) {
  TextTable table{
      {"barrier", "steps", "sd", "min", "median", "max", "waiting", "updates/s", "messages/step"}};
  if (job.learn) table.head.emplace_back("error");
  if (has_step_limit(job)) table.head.emplace_back("ended");
  const bool shows_gaps = has_gaps(simulated);
  if (shows_gaps) table.head.emplace_back("longest gap");
  const auto metrics = metric_names(simulated);
  table.head.insert(table.head.end(), metrics.begin(), metrics.end());
  const auto append = [](std::vector<std::string>& row, const std::vector<std::string>& cells) {
    row.insert(row.end(), cells.begin(), cells.end());
  };
  if (job.options.exchange) append(table.head, exchange_columns(job));
  for (std::size_t i = 0; i < simulated.size(); ++i) {
    table.rows.push_back(table_row(job, job.barriers[i], simulated[i]));
    if (job.options.exchange) append(table.rows.back(), exchange_cells(job, simulated[i]));
    const auto gap = longest_gap(simulated[i]);
    if (shows_gaps) table.rows.back().push_back(gap ? seconds_text(*gap) : "-");
    for (std::size_t metric = 0; metric < metrics.size(); ++metric)
      table.rows.back().push_back(fmt::format("{:.4g}", mean_metric(simulated[i], metric)));
  }
  return describe(job) + "\n" + plain_text(table);
}

std::string sim_json(const SimJob& job, const Simulated& simulated) {
  Json barriers = Json::array();
  for (std::size_t i = 0; i < simulated.size(); ++i)
    barriers.push_back(barrier_json(job, job.barriers[i], simulated[i]));
  return json_text(barriers);
}

std::string sim_csv(const SimJob& job, const Simulated& simulated) {
  TextTable table{{"barrier", "workers", "seed", "steps_mean", "steps_sd", "steps_min",
                   "steps_median", "steps_max", "waiting_share", "updates", "updates_per_s",
                   "max_lag", "elapsed_s", "draws", "passes", "messages"}};
  for (const auto& [name, kind] : barrier_messages) table.head.emplace_back(name);
  if (job.learn) table.head.emplace_back("normalised_error");
  const bool shows_gaps = has_gaps(simulated);
  if (shows_gaps) table.head.emplace_back("longest_gap_s");
  const auto metrics = metric_names(simulated);
  table.head.insert(table.head.end(), metrics.begin(), metrics.end());
  const std::vector<std::string> exchange =
      job.options.exchange ? exchange_csv_columns() : std::vector<std::string>{};
  table.head.insert(table.head.end(), exchange.begin(), exchange.end());
  for (std::size_t i = 0; i < simulated.size(); ++i)
    for (const SimRun& run : simulated[i]) {
      std::vector<std::string> row{barrier::print(job.barriers[i]), std::to_string(run.workers),
                                   std::to_string(run.seed)};
      for (const double value :
           {run.steps.mean, run.steps.sd, run.steps.min, run.median, run.steps.max,
            run.waiting_share, static_cast<double>(run.updates), updates_per_second(run),
            static_cast<double>(run.max_lag), run.elapsed_s, static_cast<double>(run.draws),
            static_cast<double>(run.passes), static_cast<double>(run.messages.total())})
        row.push_back(print_number(value));
      for (const auto& [name, kind] : barrier_messages)
        row.push_back(std::to_string(run.messages.*kind));
      if (job.learn) row.push_back(print_number(last_error(run)));
      if (shows_gaps)
        row.push_back(run.longest_gap ? print_number(in_seconds(*run.longest_gap)) : "");
      for (std::size_t metric = 0; metric < metrics.size(); ++metric)
        row.push_back(print_number(last_metric(run, metric)));
      if (run.exchange)
        for (auto& cell : exchange_csv_cells(run)) row.push_back(std::move(cell));
      table.rows.push_back(std::move(row));
    }
  return csv_text(table);
}

}  // namespace starling::program
