#include "starling/tools/sim/exchange_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/report/amounts.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;
using Figures = sim::ExchangeFigures;

/// Return the bytes that are sent for each worker: in the whole run, and in a step.
double bytes_per_worker(const SimRun& run) {
  return run.exchange->bytes / static_cast<double>(run.workers);
}
double bytes_per_step(const SimRun& run) {
  return run.updates == 0 ? 0 : run.exchange->bytes / static_cast<double>(run.updates);
}

double exchange_waiting_share(const SimRun& run) { return run.exchange->waiting_share; }
double mixing_error(const SimRun& run) { return run.exchange->mixing_error.value_or(0); }

/// Returns the time of the longest sum of a run, or, without sums, of its longest message, in
/// seconds; 0 if it has neither.
double longest_s(const SimRun& run) {
  const auto& figures = *run.exchange;
  const auto longest = figures.longest_sum ? figures.longest_sum : figures.longest_message;
  return longest ? in_seconds(*longest) : 0;
}

double mean(const SimRuns& runs, const std::function<double(const SimRun&)>& figure) {
  return over_runs(runs, figure).mean;
}

bool is_mixing(const SimRuns& runs) {
  return std::ranges::any_of(
      runs, [](const SimRun& run) { return run.exchange->mixing_error.has_value(); });
}

/// Returns an optional time in seconds; null if it is absent.
Json seconds_json(const std::optional<sim::Time>& time) {
  return time ? Json(in_seconds(*time)) : Json{};
}

}  // namespace

std::string describe_exchange(const SimJob& job) {
  const auto& exchange = *job.options.exchange;
  std::string text = fmt::format("exchange {}, {}", exchange.name, bytes_in_units(exchange.bytes));
  if (core::has_servers(job.mode)) text += ", " + print_count(exchange.servers, "shard");
  text += "; latency " + print(exchange.latency);
  if (exchange.bytes_per_second > 0)
    text += fmt::format(", {:.4g} MB/s a port", exchange.bytes_per_second / 1e6);
  return text;
}

std::vector<std::string> exchange_columns(const SimJob& job) {
  std::vector<std::string> columns{
      "exchange", "bytes/step",
      sim::is_sum(*job.options.exchange) ? "longest sum" : "longest message"};
  if (job.options.exchange->name.starts_with("gossip")) columns.emplace_back("mixing error");
  return columns;
}

std::vector<std::string> exchange_cells(const SimJob& job, const SimRuns& runs) {
  std::vector<std::string> cells{fmt::format("{:.1f} %", 100 * mean(runs, exchange_waiting_share)),
                                 bytes_in_units(mean(runs, bytes_per_step)),
                                 seconds_text(over_runs(runs, longest_s).max)};
  if (job.options.exchange->name.starts_with("gossip"))
    cells.push_back(fmt::format("{:.2g}", mean(runs, mixing_error)));
  return cells;
}

std::vector<std::string> exchange_csv_columns() {
  return {"exchange_share",    "exchange_bytes_per_worker",
          "exchange_messages", "longest_message_s",
          "longest_sum_s",     "mixing_error"};
}

std::vector<std::string> exchange_csv_cells(const SimRun& run) {
  const Figures& figures = *run.exchange;
  const auto seconds = [](const std::optional<sim::Time>& time) {
    return time ? print_number(in_seconds(*time)) : std::string{};
  };
  return {print_number(figures.waiting_share),
          print_number(bytes_per_worker(run)),
          std::to_string(figures.messages),
          seconds(figures.longest_message),
          seconds(figures.longest_sum),
          figures.mixing_error ? print_number(*figures.mixing_error) : std::string{}};
}

void add_exchange(Json& json, const SimJob& job, const SimRuns& runs) {
  const auto& exchange = *job.options.exchange;
  Json& all = json["exchange"];
  all["name"] = exchange.name;
  all["bytes"] = exchange.bytes;
  all["latency"] = print(exchange.latency);
  all["bytes_per_s"] = exchange.bytes_per_second > 0 ? Json(exchange.bytes_per_second) : Json{};
  if (core::has_servers(job.mode)) all["shards"] = exchange.servers;
  all["share"] = mean(runs, exchange_waiting_share);
  all["bytes_per_worker"] = mean(runs, bytes_per_worker);
  all["bytes_per_step"] = mean(runs, bytes_per_step);
  all["messages"] =
      mean(runs, [](const SimRun& run) { return static_cast<double>(run.exchange->messages); });
  const bool is_sum = sim::is_sum(exchange);
  all[is_sum ? "longest_sum_s" : "longest_message_s"] = over_runs(runs, longest_s).max;
  if (is_mixing(runs)) all["mixing_error"] = mean(runs, mixing_error);
}

void add_exchange(Json& json, const SimRun& run) {
  const Figures& figures = *run.exchange;
  Json& one = json["exchange"];
  one["share"] = figures.waiting_share;
  one["bytes_per_worker"] = bytes_per_worker(run);
  one["messages"] = figures.messages;
  one["longest_message_s"] = seconds_json(figures.longest_message);
  one["longest_sum_s"] = seconds_json(figures.longest_sum);
  if (figures.weight) one["weight"] = *figures.weight;
  if (figures.mixing_error) one["mixing_error"] = *figures.mixing_error;
}

}  // namespace starling::program
