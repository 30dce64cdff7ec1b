#include "starling/tools/sim/sim_keys.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/sim/learning.hpp"

namespace starling::program {
namespace {

using Text = const std::string&;
using In = const SimKeyInput&;

constexpr std::uint64_t workers_max = std::uint64_t{1} << 31U;

Result<std::uint64_t> count_in(Text text, std::uint64_t least, std::uint64_t most) {
  const auto value = parse_count(text);
  if (value && *value >= least && *value <= most) return *value;
  return Error{"'" + text + "' must be a whole number >= " + std::to_string(least) +
               " and <= " + std::to_string(most)};
}

/// Puts the value that was read into `into`, or passes its error on.
template <class To, class From>
Result<void> put(To& into, Result<From> read) {
  if (!read) return std::move(read).error();
  into = static_cast<To>(*std::move(read));
  return {};
}

Result<core::Time> time_in(Text text) {
  const auto time = parse_duration(parse_number(text) ? text + "s" : text);
  if (time && *time > std::chrono::nanoseconds{0}) return *time;
  return Error{"'" + text + "' must be seconds, or a time like 40s, 200ms or 2min, above 0"};
}

/// Reads bytes with their unit; errors call them `what`.
Result<std::uint64_t> bytes_in(Text text, const std::string& what) {
  constexpr std::array<std::pair<std::string_view, double>, 8> units{{{"KiB", 0x1p10},
                                                                      {"MiB", 0x1p20},
                                                                      {"GiB", 0x1p30},
                                                                      {"TiB", 0x1p40},
                                                                      {"kB", 1e3},
                                                                      {"MB", 1e6},
                                                                      {"GB", 1e9},
                                                                      {"TB", 1e12}}};
  for (const auto& [unit, size] : units) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_number(std::string_view{text}.substr(0, text.size() - unit.size()));
    if (number && *number > 0 && *number * size < 0x1p62)
      return static_cast<std::uint64_t>(*number * size);
  }
  return Error{"'" + text + "' must be " + what};
}

Result<double> above_zero(Text text) {
  const auto value = parse_number(text);
  if (value && *value > 0 && *value <= 1e9) return *value;
  return Error{"'" + text + "' must be a number above 0 and <= 1000000000"};
}

Result<void> put_name(std::string& into, Text text, const char* what) {
  if (text.empty()) return Error{std::string{"the name of a "} + what + " is empty"};
  into = text;
  return {};
}

Result<void> put_flag(bool& into, Text text) {
  into = text == "true";
  return {};
}

Result<void> put_barrier(In in) {
  auto barrier = barrier::parse(in.text, in.registry.rules());
  if (!barrier) {
    const bool many = in.text.find(',') < in.text.find(':');
    return Error{barrier.error().message +
                 (many ? "; several stand each by itself: --barrier asp --barrier bsp" : "")};
  }
  if (std::ranges::find(in.job.barriers, *barrier) != in.job.barriers.end())
    return Error{"'" + in.text + "' is given twice"};
  in.job.barriers.push_back(*std::move(barrier));
  return {};
}

Result<void> put_straggler(In in) {
  auto straggler = parse_straggler(in.text);
  if (!straggler) return std::move(straggler).error();
  in.job.stragglers.push_back(*straggler);
  return {};
}

Result<void> put_sampling(In in) {
  if (in.text != "exact" && in.text != "plain")
    return Error{"'" + in.text + "' is unknown; valid: exact, plain"};
  in.job.options.sampling = in.text == "exact" ? sim::Sampling::exact : sim::Sampling::plain;
  return {};
}

/// Reads the number of seeds. For a range, as chaos takes it, the error says which --seed and
/// --seeds to give.
Result<void> put_seeds(In in) {
  auto done = put(in.job.seeds, count_in(in.text, 1, 100'000));
  const auto dots = in.text.find("..");
  if (done || dots == std::string::npos) return done;
  const auto first = parse_count(in.text.substr(0, dots));
  const auto last = parse_count(in.text.substr(dots + 2));
  if (!first || !last || *last < *first) return done;
  return Error{done.error().message + "; those from " + std::to_string(*first) + " to " +
               std::to_string(*last) + " are --seed " + std::to_string(*first) + " --seeds " +
               std::to_string(*last - *first + 1)};
}

std::vector<SimKey> world_keys() {
  const std::string group = "What is simulated";
  return {
      {{"workers", KeyKind::count, "N",
        "how many [1000; of a job file, and at the protocol level, 4]", group},
       [](In in) { return put(in.job.options.workers, count_in(in.text, 1, workers_max)); }},
      {{"step-time", KeyKind::text, "LAW",
        "how long a step takes: const:100ms | exp:100ms | uniform:100ms | gamma:mean=100ms,shape=2 "
        "| lognormal:mean=100ms,sigma=0.5 | pareto:mean=100ms,alpha=2.5 | trace:FILE, one duration "
        "a line [the job's delay, else exp:100ms]",
        group},
       [](In in) { return put(in.job.step_time, parse_distribution(in.text)); }},
      {{"straggler", KeyKind::texts, "WHO",
        "slow workers: 1:4x (one, 4 times slower) | 5%:4x (a share); repeatable", group},
       put_straggler},
      {{"horizon", KeyKind::duration, "T",
        "virtual time that is simulated [the job's seconds, else 40s]", group},
       [](In in) { return put(in.job.horizon, time_in(in.text)); }},
      {{"steps", KeyKind::count, "N", "a worker that made so many is done [no limit]", group},
       [](In in) { return put(in.job.options.last, count_in(in.text, 1, 1'000'000'000'000)); }},
      {{"learn", KeyKind::flag, "",
        "a linear model of 1000 parameters learns along, and its error is shown", group},
       [](In in) { return put_flag(in.job.learn, in.text); }},
      {{"seed", KeyKind::count, "N", "decides all that is random [1]", group},
       [](In in) { return put(in.job.options.seed, count_in(in.text, 0, UINT64_MAX)); }},
      {{"seeds", KeyKind::count, "N",
        "runs of each barrier, under seeds that follow each other [1]", group},
       [](In in) { return put_seeds(in); }},
  };
}

std::vector<SimKey> barrier_keys() {
  const std::string group = "Barriers";
  return {
      {{"barrier", KeyKind::texts, "BARRIER",
        "bsp | ssp:s=4 | asp | pbsp:beta=10 | pssp:s=4,beta=10; repeatable, side by side [bsp, "
        "ssp:s=4, pbsp:beta=10, pssp:s=4,beta=10, asp; of a job file, and at the protocol level, "
        "pssp:s=4,beta=2]; see below",
        group},
       put_barrier},
      {{"mode", KeyKind::text, "MODE",
        "central | hybrid | peer: who keeps the steps [central; of a job file, and at the protocol "
        "level, peer]",
        group},
       [](In in) { return put(in.job.mode, core::parse_mode(in.text)); }},
      {{"recheck", KeyKind::text, "HOW",
        "when who waits looks again: arrival | notify | interval:5ms | notify+interval:auto "
        "[arrival "
        "where steps are central, else notify+interval:auto]",
        group},
       [](In in) { return put(in.job.recheck, barrier::parse_recheck(in.text)); }},
  };
}

std::vector<SimKey> job_limit_keys() {
  const std::string group = "As a job says it";
  return {
      {{"delay", KeyKind::text, "LAW", "step time where there is no --step-time", group},
       [](In in) { return put(in.job.delay, parse_distribution(in.text)); }},
      {{"seconds", KeyKind::duration, "T", "horizon where there is no --horizon", group},
       [](In in) { return put(in.job.seconds, time_in(in.text)); }},
      {{"epochs", KeyKind::number, "X", "as many steps as the job's data and batch make of it",
        group},
       [](In in) { return put(in.job.epochs, above_zero(in.text)); }},
  };
}

Result<void> put_level(In in) {
  if (in.text != "step" && in.text != "protocol")
    return Error{"'" + in.text + "' is unknown; valid: step, protocol"};
  in.job.level = in.text == "step" ? Level::step : Level::protocol;
  return {};
}

/// Reads a share, `0.1` or `10%`; accepts a share of 1 only where `whole`.
Result<double> share_in(Text text, bool whole) {
  const bool percent = text.ends_with('%');
  const auto value =
      parse_number(std::string_view{text}.substr(0, text.size() - (percent ? 1 : 0)));
  const double share = value ? *value / (percent ? 100 : 1) : -1;
  if (share >= 0 && (whole ? share <= 1 : share < 1)) return share;
  return Error{"'" + text + "' must be a share from 0 to " + (whole ? "1" : "below 1") +
               ", like 0.1 or 10%"};
}

constexpr std::array<std::string_view, 6> network_key_names{
    "latency", "bandwidth", "loss", "duplicates", "held-up", "held-up-by"};

std::vector<SimKey> network_keys() {
  const std::string group = "The network (--level protocol)";
  return {
      {"level", KeyKind::text, "LEVEL",
       "step: steps and barriers alone | protocol: every message of a job that learns [step]",
       group, put_level},
      {"latency", KeyKind::text, "LAW", "time of each packet on its way, like exp:1ms [none]",
       group, [](In in) { return put(in.job.link.latency, parse_distribution(in.text)); }},
      {"bandwidth", KeyKind::text, "AMOUNT", "of each link a second: 100MB [no limit]", group,
       [](In in) {
         return put(
             in.job.link.bytes_per_second,
             bytes_in(in.text, "an amount above 0 with its unit, like 100MB: of bytes a second"));
       }},
      {"loss", KeyKind::text, "SHARE", "of packets: 10% [0]", group,
       [](In in) { return put(in.job.link.loss, share_in(in.text, false)); }},
      {"duplicates", KeyKind::text, "SHARE", "of packets that come twice [0]", group,
       [](In in) { return put(in.job.link.duplication, share_in(in.text, true)); }},
      {"held-up", KeyKind::text, "SHARE", "of packets that later ones overtake [0]", group,
       [](In in) { return put(in.job.link.reordering, share_in(in.text, true)); }},
      {"held-up-by", KeyKind::text, "LAW", "for how long [none]", group,
       [](In in) { return put(in.job.link.delay, parse_distribution(in.text)); }},
  };
}

/// Returns the keys of training, whose values make_learning() reads.
std::vector<SimKey> training_keys() {
  std::vector<SimKey> keys;
  for (const std::string& name : learning_keys()) {
    SimKey key;
    static_cast<KeyForm&>(key) = *find_key(name);
    key.group = "What is learned (--level protocol)";
    key.set = [](In) { return Result<void>{}; };
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<SimKey> run_keys() {
  const std::string group = "How";
  return {
      {{"sampling", KeyKind::text, "HOW",
        "exact: by the chance of passing | plain: by drawing others, slow; the same law [exact]",
        group},
       put_sampling},
      {{"threads", KeyKind::count, "N", "runs at the same time [one for each processor]", group},
       [](In in) { return put(in.job.threads, count_in(in.text, 1, 4096)); }},
      {{"memory", KeyKind::text, "LIMIT", "refuse what would take more: 512MiB, 4GiB [no limit]",
        group},
       [](In in) {
         return put(
             in.job.memory_max,
             bytes_in(in.text, "an amount of memory above 0 with its unit, like 512MiB or 4GiB"));
       }},
  };
}

std::vector<SimKey> output_keys() {
  const std::string group = "What comes out";
  return {
      {{"json", KeyKind::flag, "", "a JSON array with one object for each barrier", group},
       [](In in) { return put_flag(in.job.json, in.text); }},
      {{"csv", KeyKind::text, "FILE", "a row for each barrier and seed", group},
       [](In in) { return put_name(in.job.csv, in.text, "file"); }},
      {{"plots", KeyKind::text, "DIR",
        "pictures (SVG, by gnuplot) with their data and scripts: distribution of steps, progress, "
        "spread and waiting over time, messages",
        group},
       [](In in) { return put_name(in.job.plots, in.text, "folder"); }},
      {{"points", KeyKind::count, "N", "moments of what is shown over time [200]", group},
       [](In in) { return put(in.job.options.points, count_in(in.text, 1, 100'000)); }},
      {{"quiet", KeyKind::flag, "", "no progress", group},
       [](In in) { return put_flag(in.job.quiet, in.text); }},
  };
}

}  // namespace

const std::vector<SimKey>& sim_keys() {
  static const std::vector<SimKey> all = [] {
    std::vector<SimKey> keys;
    for (auto part : {world_keys(), barrier_keys(), network_keys(), training_keys(),
                      job_limit_keys(), run_keys(), output_keys()})
      keys.insert(keys.end(), part.begin(), part.end());
    return keys;
  }();
  return all;
}

bool is_network_key(std::string_view name) {
  return std::ranges::find(network_key_names, name) != network_key_names.end();
}

const SimKey* find_sim_key(std::string_view name) {
  const auto at = std::ranges::find(sim_keys(), name, &SimKey::name);
  return at == sim_keys().end() ? nullptr : &*at;
}

}  // namespace starling::program
