#include "starling/tools/sim/sim_keys.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/collective/network_options.hpp"
#include "starling/tools/program/byte_amount.hpp"
#include "starling/tools/sim/learning.hpp"

namespace starling::program {
namespace {

using Text = const std::string&;
using Input = const SimKeyInput&;

constexpr std::uint64_t workers_max = std::uint64_t{1} << 31U;

/// Stores the value of `parsed` in `into`, or returns its error.
template <class To, class From>
Result<void> put(To& into, Result<From> parsed) {
  if (!parsed) return std::move(parsed).error();
  into = static_cast<To>(*std::move(parsed));
  return {};
}

Result<core::Time> parse_time(Text text) {
  const auto time = parse_duration(parse_number(text) ? text + "s" : text);
  if (time && *time > std::chrono::nanoseconds{0}) return *time;
  return Error{"'" + text + "' must be seconds, or a time like 40s, 200ms or 2min, above 0"};
}

Result<double> parse_positive(Text text) {
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

Result<void> put_barrier(Input in) {
  auto barrier = barrier::parse(in.text, in.registry.rules());
  if (!barrier) {
    const bool is_list = in.text.find(',') < in.text.find(':');
    return Error{barrier.error().message +
                 (is_list ? "; for several, repeat the flag: --barrier asp --barrier bsp" : "")};
  }
  if (std::ranges::find(in.job.barriers, *barrier) != in.job.barriers.end())
    return Error{"'" + in.text + "' is given twice; valid: each once"};
  in.job.barriers.push_back(*std::move(barrier));
  return {};
}

Result<void> put_straggler(Input in) {
  auto straggler = parse_straggler(in.text);
  if (!straggler) return std::move(straggler).error();
  in.job.stragglers.push_back(*straggler);
  return {};
}

Result<void> put_sampling(Input in) {
  if (in.text != "exact" && in.text != "plain")
    return Error{"'" + in.text + "' is unknown; valid: exact, plain"};
  in.job.options.sampling = in.text == "exact" ? sim::Sampling::exact : sim::Sampling::plain;
  return {};
}

/// Parses the number of seeds. If the text is a range A..B, which only `starling chaos` accepts,
/// the error says which --seed and --seeds have the same meaning.
Result<void> put_seeds(Input in) {
  auto done = put(in.job.seeds, parse_count(in.text, 1, 100'000));
  const auto dots = in.text.find("..");
  if (done || dots == std::string::npos) return done;
  const auto first = parse_count(in.text.substr(0, dots));
  const auto last = parse_count(in.text.substr(dots + 2));
  if (!first || !last || *last < *first) return done;
  return Error{done.error().message + "; the seeds from " + std::to_string(*first) + " to " +
               std::to_string(*last) + " are --seed " + std::to_string(*first) + " --seeds " +
               std::to_string(*last - *first + 1)};
}

std::vector<SimKey> simulation_keys() {
  const std::string group = "What is simulated";
  return {
      {{"workers", ValueType::count, "N",
        "the number of workers [1000; with a job file, or at the protocol level, 4]", group},
       [](Input in) { return put(in.job.options.workers, parse_count(in.text, 1, workers_max)); }},
      {{"step-time", ValueType::text, "LAW",
        "how long a step takes: const:100ms | exp:100ms | uniform:100ms | gamma:mean=100ms,shape=2 "
        "| lognormal:mean=100ms,sigma=0.5 | pareto:mean=100ms,alpha=2.5 | trace:FILE, one duration "
        "a line [the job's delay, else exp:100ms]",
        group},
       [](Input in) { return put(in.job.step_time, parse_distribution(in.text)); }},
      {{"straggler", ValueType::texts, "WHO",
        "slow workers: 1:4x (one, 4 times slower) | 5%:4x (a share); unavailable workers: "
        "10%:away=5s/10s (5s of each 10s); repeatable",
        group},
       put_straggler},
      {{"horizon", ValueType::duration, "T",
        "virtual time that is simulated [the job's seconds, else 40s]", group},
       [](Input in) { return put(in.job.horizon, parse_time(in.text)); }},
      {{"steps", ValueType::count, "N", "steps after which a worker is done [no limit]", group},
       [](Input in) {
         return put(in.job.options.steps_max, parse_count(in.text, 1, 1'000'000'000'000));
       }},
      {{"learn", ValueType::flag, "",
        "let a linear model of 1000 parameters learn too, and show its error", group},
       [](Input in) { return put_flag(in.job.learn, in.text); }},
      {{"seed", ValueType::count, "N", "decides all random draws [1]", group},
       [](Input in) { return put(in.job.options.seed, parse_count(in.text, 0, UINT64_MAX)); }},
      {{"seeds", ValueType::count, "N", "runs of each barrier, under consecutive seeds [1]", group},
       [](Input in) { return put_seeds(in); }},
  };
}

std::vector<SimKey> barrier_keys() {
  const std::string group = "Barriers";
  return {
      {{"barrier", ValueType::texts, "BARRIER",
        "bsp | ssp:s=4 | asp | pbsp:beta=10 | pssp:s=4,beta=10; repeatable, to compare several "
        "[bsp, "
        "ssp:s=4, pbsp:beta=10, pssp:s=4,beta=10, asp; with a job file, or at the protocol level, "
        "pssp:s=4,beta=2]; a sampled barrier in mode hybrid or peer may have draw=availability or "
        "draw=speed; see below",
        group},
       put_barrier},
      {{"mode", ValueType::text, "MODE",
        "central | hybrid | peer: who keeps the steps [central; with a job file, or at the "
        "protocol "
        "level, peer]",
        group},
       [](Input in) { return put(in.job.mode, core::parse_mode(in.text)); }},
      {{"recheck", ValueType::text, "HOW",
        "when a waiting worker checks its barrier again: arrival | notify | interval:5ms | "
        "notify+interval:auto "
        "[arrival "
        "in mode central, else notify+interval:auto]",
        group},
       [](Input in) { return put(in.job.recheck, barrier::parse_recheck(in.text)); }},
  };
}

std::vector<SimKey> job_limit_keys() {
  const std::string group = "As in a training job";
  return {
      {{"delay", ValueType::text, "LAW", "step time if there is no --step-time", group},
       [](Input in) { return put(in.job.delay, parse_distribution(in.text)); }},
      {{"seconds", ValueType::duration, "T", "horizon if there is no --horizon", group},
       [](Input in) { return put(in.job.seconds, parse_time(in.text)); }},
      {{"epochs", ValueType::number, "X",
        "passes over the job's data; its size and the batch say how many steps that is", group},
       [](Input in) { return put(in.job.epochs, parse_positive(in.text)); }},
  };
}

Result<void> put_level(Input in) {
  if (in.text != "step" && in.text != "protocol")
    return Error{"'" + in.text + "' is unknown; valid: step, protocol"};
  in.job.level = in.text == "step" ? Level::step : Level::protocol;
  return {};
}

/// Parses a share from 0 to 1, like `0.1` or `10%`. Accepts 1 only if `may_be_one`.
Result<double> parse_share(Text text, bool may_be_one) {
  const bool is_percent = text.ends_with('%');
  const auto value =
      parse_number(std::string_view{text}.substr(0, text.size() - (is_percent ? 1 : 0)));
  const double share = value ? *value / (is_percent ? 100 : 1) : -1;
  if (share >= 0 && (may_be_one ? share <= 1 : share < 1)) return share;
  return Error{"'" + text + "' must be a share " +
               (may_be_one ? "from 0 to 1" : "of at least 0 and below 1") + ", like 0.1 or 10%"};
}

constexpr std::array<std::string_view, 6> network_key_names{
    "latency", "bandwidth", "loss", "duplicates", "held-up", "held-up-by"};
/// The keys of the exchange and of the network that have an effect at the step level.
constexpr std::array<std::string_view, 4> exchange_key_names{"exchange", "shards", "latency",
                                                             "bandwidth"};

std::vector<SimKey> network_keys() {
  const std::string group = "The network (--level protocol, or with --bytes)";
  return {
      {"level", ValueType::text, "LEVEL",
       "step: steps and barriers alone | protocol: every message of a job that learns [step]",
       group, put_level},
      {"bytes", ValueType::text, "AMOUNT",
       "size of the model whose exchange the step level simulates: 4096, 100M, 64MiB [the step "
       "level simulates no exchange]",
       group, [](Input in) { return put(in.job.bytes, parse_vector_bytes(in.text)); }},
      {"latency", ValueType::text, "LAW", "time that each packet takes, like exp:1ms [none]", group,
       [](Input in) { return put(in.job.link.latency, parse_distribution(in.text)); }},
      {"bandwidth", ValueType::text, "AMOUNT",
       "bytes a second of each link; at the step level, of each port in each direction: 100MB [no "
       "limit]",
       group,
       [](Input in) {
         return put(in.job.link.bytes_per_second,
                    parse_bytes(in.text,
                                "an amount above 0 with its unit, like 100MB: of bytes a second"));
       }},
      {"loss", ValueType::text, "SHARE", "share of packets that are lost: 10% [0]", group,
       [](Input in) { return put(in.job.link.loss, parse_share(in.text, false)); }},
      {"duplicates", ValueType::text, "SHARE", "share of packets that arrive twice [0]", group,
       [](Input in) { return put(in.job.link.duplication, parse_share(in.text, true)); }},
      {"held-up", ValueType::text, "SHARE",
       "share of packets that are delayed, so that later ones overtake them [0]", group,
       [](Input in) { return put(in.job.link.reordering, parse_share(in.text, true)); }},
      {"held-up-by", ValueType::text, "LAW", "time by which these packets are delayed [none]",
       group, [](Input in) { return put(in.job.link.delay, parse_distribution(in.text)); }},
  };
}

/// Returns the options of training. Their set() stores nothing, because make_learning() reads the
/// settings itself.
std::vector<SimKey> training_keys() {
  std::vector<SimKey> keys;
  for (const std::string& name : learning_keys()) {
    SimKey key;
    static_cast<KeyDescription&>(key) = *find_key(name);
    key.group = "What is learned (--level protocol)";
    key.set = [](Input) { return Result<void>{}; };
    if (name == "exchange" || name == "shards")
      key.group = "What is learned (--level protocol), or exchanged (--bytes)";
    if (name == "shards")
      key.help =
          "servers, in modes that have any [one for each 4 workers, at most 8; with --bytes: 1]";
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<SimKey> run_keys() {
  const std::string group = "How";
  return {
      {{"sampling", ValueType::text, "HOW",
        "exact: by the probability of passing | plain: by drawing others, slow; both have the same "
        "distribution [exact]",
        group},
       put_sampling},
      {{"threads", ValueType::count, "N", "runs at the same time [one for each processor]", group},
       [](Input in) { return put(in.job.threads, parse_count(in.text, 1, 4096)); }},
      {{"memory", ValueType::text, "LIMIT",
        "refuse simulations that would take more: 512MiB, 4GiB [no limit]", group},
       [](Input in) {
         return put(in.job.memory_max,
                    parse_bytes(in.text,
                                "an amount of memory above 0 with its unit, like 512MiB or 4GiB"));
       }},
  };
}

std::vector<SimKey> output_keys() {
  const std::string group = "What comes out";
  return {
      {{"json", ValueType::flag, "", "a JSON array with one object for each barrier", group},
       [](Input in) { return put_flag(in.job.json, in.text); }},
      {{"csv", ValueType::text, "FILE", "a row for each barrier and seed", group},
       [](Input in) { return put_name(in.job.csv, in.text, "file"); }},
      {{"plots", ValueType::text, "DIR",
        "pictures (SVG, by gnuplot) with their data and scripts: distribution of steps, progress, "
        "spread and waiting over time, messages",
        group},
       [](Input in) { return put_name(in.job.plots, in.text, "folder"); }},
      {{"points", ValueType::count, "N", "points of each curve over time [200]", group},
       [](Input in) { return put(in.job.options.points, parse_count(in.text, 1, 100'000)); }},
      {{"quiet", ValueType::flag, "", "show no progress, and no warnings about the settings",
        group},
       [](Input in) { return put_flag(in.job.quiet, in.text); }},
  };
}

}  // namespace

const std::vector<SimKey>& sim_keys() {
  static const std::vector<SimKey> all = [] {
    std::vector<SimKey> keys;
    for (auto part : {simulation_keys(), barrier_keys(), network_keys(), training_keys(),
                      job_limit_keys(), run_keys(), output_keys()})
      keys.insert(keys.end(), part.begin(), part.end());
    return keys;
  }();
  return all;
}

bool is_exchange_key(std::string_view name) {
  return std::ranges::find(exchange_key_names, name) != exchange_key_names.end();
}

bool is_network_key(std::string_view name) {
  return std::ranges::find(network_key_names, name) != network_key_names.end();
}

const SimKey* find_sim_key(std::string_view name) {
  const auto at = std::ranges::find(sim_keys(), name, &SimKey::name);
  return at == sim_keys().end() ? nullptr : &*at;
}

}  // namespace starling::program
