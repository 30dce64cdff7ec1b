#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "starling/base/json_text.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"
#include "starling/tools/bench/bench_commands.hpp"
#include "starling/tools/bench/collective_group.hpp"
#include "starling/tools/report/amounts.hpp"
#include "starling/tools/report/machine.hpp"
#include "starling/tools/report/statistics.hpp"
#include "starling/tools/report/table.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

/// The measured times of the all-reduce of `bytes` bytes with `algorithm`: for each repeat, the
/// mean time of one all-reduce, in seconds.
struct MeasuredCollective {
  std::uint64_t bytes = 0;
  std::string algorithm;
  std::vector<double> times{};

  [[nodiscard]] double time() const { return median(times); }
};

/// Returns how many times one repeat runs an all-reduce of `bytes` bytes: as many as sum at most
/// 64 MiB in total, but at least 1 and at most 200. Requires: bytes > 0.
std::size_t times_of(std::uint64_t bytes) {
  return std::clamp<std::uint64_t>((std::uint64_t{64} << 20U) / bytes, 1, 200);
}

/// The all-reduces of one repeat. `runs` says how to run each of them. `collectives` has the size
/// and the algorithm of each, in the same order, and no times yet.
struct CollectivePlan {
  std::vector<CollectiveRun> runs;
  std::vector<MeasuredCollective> collectives;
};

/// Plans an all-reduce for each size and each algorithm. Returns an Error, which names the option,
/// if an algorithm is not valid or cannot run among these members.
Result<CollectivePlan> make_plan(const BenchCollectivesOptions& options) {
  CollectivePlan plan;
  for (const std::uint64_t bytes : options.bytes)
    for (const std::string& text : options.algorithms) {
      auto algorithm = collective::parse_algorithm(text);
      if (!algorithm) return std::move(algorithm).error().within("--collective");
      if (std::holds_alternative<collective::PackedTrees>(*algorithm))
        return Error{"--collective: " + text +
                     " needs links, and all members are on this machine; "
                     "valid: an algorithm without a file"};
      auto schedule = collective::make_schedule(*algorithm, collective::Operation::all_reduce,
                                                options.members, 0);
      if (!schedule) return std::move(schedule).error().within("--collective");
      plan.runs.push_back(
          {*std::move(schedule), std::max<std::size_t>(1, bytes / sizeof(float)), times_of(bytes)});
      plan.collectives.push_back({bytes, print(*algorithm)});
    }
  return plan;
}

/// Measures the all-reduces of the plan. Each repeat runs the whole plan in order. Returns the
/// Error of run_collectives() if that fails.
Result<std::vector<MeasuredCollective>> measure(const BenchCollectivesOptions& options,
                                                const CollectivePlan& plan) {
  std::vector<CollectiveRun> runs;
  for (std::uint64_t i = 0; i < options.repeats; ++i)
    runs.insert(runs.end(), plan.runs.begin(), plan.runs.end());
  const auto times = run_collectives(options.members, runs, options.fabric);
  if (!times) return times.error();
  auto all = plan.collectives;
  for (std::size_t i = 0; i < times->size(); ++i) all[i % all.size()].times.push_back((*times)[i]);
  return all;
}

std::string json_of(const BenchCollectivesOptions& options,
                    const std::vector<MeasuredCollective>& all) {
  nlohmann::ordered_json json = program::json_of(this_machine());
  json["members"] = options.members;
  json["repeats"] = options.repeats;
  json["fabric"] = options.fabric ? fabric::print(*options.fabric) : "none";
  for (const MeasuredCollective& one : all)
    json["collectives"].push_back({{"collective", one.algorithm},
                                   {"bytes", one.bytes},
                                   {"seconds", one.time()},
                                   {"all_seconds", one.times}});
  return json_text(json) + "\n";
}

std::string table_of(const BenchCollectivesOptions& options,
                     const std::vector<MeasuredCollective>& all) {
  TextTable table{{"bytes"}};
  for (const std::string& algorithm : options.algorithms) table.head.push_back(algorithm);
  table.head.emplace_back("best, bytes/s");
  const std::size_t columns = options.algorithms.size();
  for (std::size_t first = 0; first < all.size(); first += columns) {
    std::vector<std::string> row{bytes_in_units(static_cast<double>(all[first].bytes))};
    double best = all[first].time();
    for (std::size_t i = first; i < first + columns; ++i) {
      row.push_back(time_in_units(all[i].time()));
      best = std::min(best, all[i].time());
    }
    row.push_back(bytes_in_units(static_cast<double>(all[first].bytes) / best) + "/s");
    table.rows.push_back(std::move(row));
  }
  return fmt::format(
      "{}\nall-reduce of floats among {} processes over TCP on the loopback{}: the time of one, "
      "the median of {}\n\n{}",
      print(this_machine()), options.members,
      options.fabric ? fmt::format(" and fabric {}", fabric::print(*options.fabric)) : "",
      print_count(options.repeats, "repeat"), plain_text(table));
}

}  // namespace

Result<int> bench_collectives_command(const BenchCollectivesOptions& options) {
  const auto plan = make_plan(options);
  if (!plan) return plan.error();
  const auto all = measure(options, *plan);
  if (!all) {
    print_error(all.error().message);
    return job_failed;
  }
  return write_stdout(options.json ? json_of(options, *all) : table_of(options, *all), done);
}

}  // namespace starling::program
