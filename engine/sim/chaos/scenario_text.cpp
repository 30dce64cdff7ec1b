/// Prints and parses scenarios, and checks parsed scenarios.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/exchange/allreduce/allreduce.hpp"
#include "starling/engine/sim/chaos/scenario.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, Fault::kinds> fault_names{
    "crash",          "freeze",  "partition", "one-way-partition",
    "pair-partition", "suspect", "join",      "leave"};

std::string print_yes_or_no(bool value) { return value ? "yes" : "no"; }

}  // namespace

std::string_view name(Fault::Kind kind) { return fault_names[static_cast<std::size_t>(kind)]; }

std::string print(const Scenario& scenario) {
  std::string text;
  const auto line = [&](std::string_view key, const std::string& value) {
    text += std::string{key} + " " + value + "\n";
  };
  line("seed", std::to_string(scenario.seed));
  line("mode", core::print(scenario.mode));
  line("exchange", scenario.exchange);
  line("cache", print_yes_or_no(scenario.cache));
  line("barrier", barrier::print(scenario.barrier));
  line("recheck", barrier::print(scenario.recheck));
  line("workers", std::to_string(scenario.workers));
  line("servers", std::to_string(scenario.servers));
  line("ranges", std::to_string(scenario.ranges));
  line("copies", std::to_string(scenario.replication_factor));
  line("steps", std::to_string(scenario.steps));
  line("loss", print_number(scenario.loss));
  line("duplication", print_number(scenario.duplication));
  line("reordering", print_number(scenario.reordering));
  line("latency", print_duration(scenario.latency));
  line("compute", print_duration(scenario.compute));
  line("straggling", print_number(scenario.straggling));
  line("beyond", print_yes_or_no(scenario.exceeds_fault_budget));
  for (const Fault& fault : scenario.faults) {
    std::string value = std::string{name(fault.kind)} + ":at=" + print_duration(fault.at);
    if (fault.group != 0)
      value += ",group=" + std::to_string(fault.group);
    else
      value += ",node=" + std::to_string(fault.node);
    if (fault.kind == Fault::Kind::pair_partition)
      value += ",other=" + std::to_string(fault.other) + ",ways=" + (fault.is_two_way ? "2" : "1");
    if (fault.lasts > Time{}) value += ",lasts=" + print_duration(fault.lasts);
    if (fault.kind == Fault::Kind::crash) value += ",after=" + std::to_string(fault.after_effects);
    line("fault", value);
  }
  line("faults", std::to_string(scenario.faults.size()));
  return text;
}

namespace {

/// The keys that a file has exactly once each, besides `faults`, the key of the last line. The key
/// `fault` may be there up to faults_max times.
constexpr std::array<std::string_view, 18> scenario_keys{
    "seed",        "mode",       "exchange", "cache",   "barrier",    "recheck",
    "workers",     "servers",    "ranges",   "copies",  "steps",      "loss",
    "duplication", "reordering", "latency",  "compute", "straggling", "beyond"};

/// A run must finish within 600 s of virtual time after its last fault. With all values at these
/// limits, it takes up to 130 s with the exchange `owners`, and up to 420 s with `allreduce:ring`
/// and 24 workers.
constexpr core::Step steps_max = 30;
constexpr std::uint32_t ranges_max = 16;
constexpr std::uint32_t copies_max = 4;
constexpr std::size_t buckets_max = 4;
/// The largest share of packets that are lost, duplicated or reordered.
constexpr double share_max = 0.3;
constexpr Time latency_max = 2ms;
constexpr Time compute_max = 100ms;
constexpr double straggling_max = 10;
constexpr Time recheck_min = 1ms;
constexpr Time recheck_max = 1s;
/// The longest time that all steps of the slowest worker may take to compute.
constexpr Time total_compute_max = 15s;
/// The latest `at` and the longest `lasts` of a fault.
constexpr Time fault_time_max = 60s;
constexpr std::size_t faults_max = 64;

Result<Fault> parse_fault(std::string_view text) {
  auto spec = Spec::parse(text);
  if (!spec) return std::move(spec).error();
  const auto known = std::ranges::find(fault_names, spec->name);
  if (known == fault_names.end()) {
    const std::vector<std::string> names{fault_names.begin(), fault_names.end()};
    return Error{quote(spec->name) + " is unknown; " + suggest(spec->name, names)};
  }
  using Kind = Fault::Kind;
  SpecReader read{*spec};
  const auto time = [&](const char* key) {
    const Time value = read.duration(key, Time{});
    if (value > fault_time_max)
      read.refuse(std::string{key} + " must be at most " + print_duration(fault_time_max));
    return value;
  };
  const auto require = [&](const char* key, bool is_given) {
    if (!is_given) read.refuse(std::string{key} + " is missing");
  };
  Fault fault;
  fault.kind = static_cast<Kind>(known - fault_names.begin());
  fault.at = time("at");
  require("at", read.has("at"));
  if (fault.kind == Kind::partition || fault.kind == Kind::one_way_partition) {
    fault.group = read.count("group", 0, 1, (NodeSet{1} << nodes_max) - 1);
    require("group", read.has("group"));
  } else {
    fault.node = static_cast<NodeId>(read.count("node", 0, 0, nodes_max - 1));
    require("node", read.has("node"));
  }
  if (fault.kind != Kind::join && fault.kind != Kind::leave) fault.lasts = time("lasts");
  if (fault.kind == Kind::pair_partition) {
    fault.other = static_cast<NodeId>(read.count("other", 0, 0, nodes_max - 1));
    fault.is_two_way = read.count("ways", 1, 1, 2) == 2;
    require("other", read.has("other"));
  }
  if (fault.kind == Kind::crash)
    fault.after_effects = static_cast<std::uint32_t>(read.count("after", 0, 0, 1'000'000));
  else if (fault.kind != Kind::join && fault.kind != Kind::leave)
    require("lasts", fault.lasts > Time{});
  if (auto done = read.finish(); !done) return std::move(done).error();
  return fault;
}

/// Checks the last line, which is the number of faults. If it is not the number of faults above it,
/// a part of the file is missing.
Result<void> check_fault_count(const Scenario& scenario, std::string_view value) {
  const std::string count = std::to_string(scenario.faults.size());
  if (value == count) return {};
  return Error{quote(value) + ", but " + count +
               " of them are above; valid: the whole file, as chaos writes it"};
}

Error missing(std::string_view key) {
  return Error{"has no line " + std::string{key} + "; valid: the whole file, as chaos writes it"};
}

template <class T>
Result<void> set(T& target, Result<T> value) {
  if (!value) return std::move(value).error();
  target = *std::move(value);
  return {};
}

template <class T>
Result<void> set_count(T& target, std::string_view text, std::uint64_t least, std::uint64_t most) {
  const auto value = parse_count(text);
  if (!value) return value.error();
  if (*value < least || *value > most)
    return Error{std::string{text} + " is out of bounds; valid: " + std::to_string(least) + " to " +
                 std::to_string(most)};
  target = static_cast<T>(*value);
  return {};
}

Result<void> set_number(double& target, std::string_view text, double least, double most) {
  const auto value = parse_number(text);
  if (!value) return value.error();
  if (*value < least || *value > most)
    return Error{std::string{text} + " is out of bounds; valid: " + print_number(least) + " to " +
                 print_number(most)};
  target = *value;
  return {};
}

Result<void> set_time(Time& target, std::string_view text, Time most) {
  const auto value = parse_duration(text);
  if (!value) return value.error();
  if (*value <= Time{} || *value > most)
    return Error{std::string{text} + " is out of bounds; valid: above 0s, at most " +
                 print_duration(most)};
  target = *value;
  return {};
}

Result<void> set_yes_or_no(bool& target, std::string_view text) {
  if (text != "yes" && text != "no") return Error{quote(text) + "; valid: yes, no"};
  target = text == "yes";
  return {};
}

Result<void> set_recheck(barrier::Recheck& into, std::string_view text) {
  if (auto parsed = set(into, barrier::parse_recheck(text)); !parsed) return parsed;
  const Time interval = into.interval.value_or(barrier::Recheck::automatic);
  if (interval == barrier::Recheck::automatic ||
      (interval >= recheck_min && interval <= recheck_max))
    return {};
  return Error{"interval:" + print_duration(interval) +
               "; valid: interval:" + print_duration(recheck_min) +
               " to interval:" + print_duration(recheck_max) + ", or interval:auto"};
}

Result<void> set_key(Scenario& scenario, std::string_view key, std::string_view value) {
  if (key == "seed") return set_count(scenario.seed, value, 0, UINT64_MAX);
  if (key == "mode") return set(scenario.mode, core::parse_mode(value));
  if (key == "exchange") {
    scenario.exchange = value;
    return core::check_exchange(value);
  }
  if (key == "cache") return set_yes_or_no(scenario.cache, value);
  if (key == "barrier") return set(scenario.barrier, barrier::parse(value, scenario_predicates()));
  if (key == "recheck") return set_recheck(scenario.recheck, value);
  if (key == "workers") return set_count(scenario.workers, value, 1, nodes_max);
  if (key == "servers") return set_count(scenario.servers, value, 0, nodes_max);
  if (key == "ranges") return set_count(scenario.ranges, value, 1, ranges_max);
  if (key == "copies") return set_count(scenario.replication_factor, value, 1, copies_max);
  if (key == "steps") return set_count(scenario.steps, value, 1, steps_max);
  if (key == "loss") return set_number(scenario.loss, value, 0, share_max);
  if (key == "duplication") return set_number(scenario.duplication, value, 0, share_max);
  if (key == "reordering") return set_number(scenario.reordering, value, 0, share_max);
  if (key == "latency") return set_time(scenario.latency, value, latency_max);
  if (key == "compute") return set_time(scenario.compute, value, compute_max);
  if (key == "straggling") return set_number(scenario.straggling, value, 0.01, straggling_max);
  if (key == "beyond") return set_yes_or_no(scenario.exceeds_fault_budget, value);
  if (key == "faults") return check_fault_count(scenario, value);
  if (key == "fault") {
    auto fault = parse_fault(value);
    if (!fault) return std::move(fault).error();
    if (scenario.faults.size() == faults_max)
      return Error{"is one too many; valid: at most " + std::to_string(faults_max)};
    scenario.faults.push_back(*fault);
    return {};
  }
  std::vector<std::string> keys{scenario_keys.begin(), scenario_keys.end()};
  keys.insert(keys.end(), {"fault", "faults"});
  return Error{"this key is unknown; " + suggest(key, keys)};
}

/// Checks that each node of a fault is in the job from the beginning, or joins.
Result<void> check(const Scenario& scenario, const Fault& fault) {
  const auto exists = [&](NodeId id) {
    return id < scenario.initial_nodes() ||
           std::ranges::any_of(scenario.faults, [&](const Fault& other) {
             return other.kind == Fault::Kind::join && other.node == id;
           });
  };
  if (fault.group == 0 && !exists(fault.node))
    return Error{"there is no node " + std::to_string(fault.node) + "; valid: 0 to " +
                 std::to_string(scenario.initial_nodes() - 1) + ", or a node that joins"};
  if (fault.kind == Fault::Kind::pair_partition &&
      (!exists(fault.other) || fault.other == fault.node))
    return Error{"other=" + std::to_string(fault.other) + "; valid: another node of the scenario"};
  NodeSet existing = 0;
  for (NodeId id = 0; id < nodes_max; ++id) existing |= NodeSet{exists(id)} << id;
  if ((fault.group & ~existing) != 0 || fault.group == existing)
    return Error{"group=" + std::to_string(fault.group) +
                 "; valid: the sum of 2^node over some of the nodes, but not over all"};
  return {};
}

Result<void> check(const Scenario& scenario) {
  if (auto valid = core::check_exchange(scenario.exchange, scenario.mode, scenario.barrier,
                                        scenario.recheck, scenario.workers);
      !valid)
    return valid;
  if (const auto sums = core::parse_allreduce(scenario.exchange);
      sums && sums->buckets > buckets_max)
    return Error{"exchange " + scenario.exchange + ": buckets=" + std::to_string(sums->buckets) +
                 "; valid: at most " + std::to_string(buckets_max)};
  if (scenario.cache)
    if (auto valid = core::check_cache(scenario.exchange, scenario.mode, scenario.barrier); !valid)
      return valid;
  if (core::has_servers(scenario.mode) == (scenario.servers == 0))
    return Error{"servers=" + std::to_string(scenario.servers) + " in mode " +
                 core::print(scenario.mode) + "; valid: 0 in peer mode, at least 1 in the others"};
  if (scenario.initial_nodes() > nodes_max)
    return Error{std::to_string(scenario.initial_nodes()) + " nodes; valid: at most " +
                 std::to_string(nodes_max)};
  const auto owners = core::has_servers(scenario.mode) ? scenario.servers : scenario.workers;
  if (scenario.replication_factor > owners)
    return Error{"copies " + std::to_string(scenario.replication_factor) + ", but only " +
                 std::to_string(owners) + " nodes own ranges; valid: 1 to " +
                 std::to_string(owners)};
  const double total_compute = static_cast<double>(scenario.steps) *
                               static_cast<double>(scenario.compute.count()) *
                               std::max(1.0, scenario.straggling);
  if (total_compute > static_cast<double>(total_compute_max.count()))
    return Error{"steps x compute x straggling takes longer than " +
                 print_duration(total_compute_max) +
                 " of virtual time; valid: fewer steps, a shorter compute or less straggling"};
  return {};
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text) {
  Scenario scenario;
  std::set<std::string_view> seen;
  std::vector<std::string> fault_locations;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto space = line.find(' ');
    const std::string_view key = line.substr(0, space);
    const std::string_view value =
        space == std::string_view::npos ? std::string_view{} : trim(line.substr(space));
    // quote() escapes bytes that are not printable; the location has the key without the quotes.
    const std::string name = quote(key);
    const std::string location =
        "line " + std::to_string(number) + ": " + name.substr(1, name.size() - 2);
    if (seen.contains("faults")) return Error{location + ": comes after the last line, faults"};
    if (key != "fault" && !seen.insert(key).second)
      return Error{location + ": is given twice; valid: once"};
    if (key == "fault") fault_locations.push_back(location);
    if (auto done = set_key(scenario, key, value); !done)
      return std::move(done).error().within(location);
  }
  if (number == 0) return Error{"is empty; valid: a scenario as chaos writes it"};
  for (const std::string_view key : scenario_keys)
    if (!seen.contains(key)) return missing(key);
  if (!seen.contains("faults")) return missing("faults");
  if (auto valid = check(scenario); !valid) return std::move(valid).error();
  for (std::size_t i = 0; i < fault_locations.size(); ++i)
    if (auto valid = check(scenario, scenario.faults[i]); !valid)
      return std::move(valid).error().within(fault_locations[i]);
  std::ranges::stable_sort(scenario.faults, {}, &Fault::at);
  return scenario;
}

}  // namespace starling::sim
