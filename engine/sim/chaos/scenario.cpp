#include "starling/engine/sim/chaos/scenario.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "starling/base/random.hpp"
#include "starling/engine/core/training/exchanges.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

/// Draws a time from `least` to `most`.
Time draw_time(Random& random, Time least, Time most) {
  return least + Time{static_cast<Time::rep>(
                     random.below(static_cast<std::uint64_t>((most - least).count()) + 1))};
}

/// Truncates a time to whole microseconds, so that files stay readable.
Time truncated(Time time) { return std::chrono::duration_cast<std::chrono::microseconds>(time); }

/// Draws the options of a rule, but sets its staleness, if it has one, to `staleness`.
void draw_options(Random& random, barrier::AnyRule& any_rule, core::Step staleness) {
  std::visit(
      [&](auto& rule) {
        if constexpr (requires { rule.staleness; }) rule.staleness = staleness;
        if constexpr (requires { rule.probability; })
          rule.probability = random.below(2) == 0 ? 1 : 0.5;
        if constexpr (requires { rule.ahead; }) rule.ahead = 1 + random.below(6);
        if constexpr (requires { rule.share; }) rule.share = random.real(0.2, 0.95);
        if constexpr (requires { rule.is_capped; }) {
          rule.low = staleness;
          rule.high = staleness + random.below(6);
          rule.is_capped = random.below(2) == 0;
        }
      },
      any_rule);
}

std::size_t draw_beta(Random& random, std::size_t workers) {
  return 1 + random.below(std::min<std::size_t>(workers - 1, 3));
}

barrier::Barrier draw_barrier(Random& random, core::Mode mode, std::size_t workers) {
  const core::Step staleness = 1 + random.below(4);
  const std::size_t beta = draw_beta(random, workers);
  std::vector<barrier::AnyRule> rules = barrier::built_in_rules();
  std::erase_if(rules, [](const auto& rule) {
    return barrier::is_tuned({rule}) || barrier::hands_in_early({rule});
  });
  for (auto& rule : rules) draw_options(random, rule, staleness);
  std::vector<barrier::Barrier> choices;
  for (const auto& rule : rules)
    if (barrier::can_be_sampled(rule) && !barrier::needs_paces({rule}))
      choices.push_back(barrier::sampled(rule, beta));
    else if (barrier::always_passes({rule}))
      choices.push_back({rule});
  for (const auto& rule : rules)
    if (core::keeps_steps_centrally(mode) && barrier::needs_every_step({rule}))
      choices.push_back({rule});
  return choices[random.below(choices.size())];
}

/// Draws a sampled barrier that decides by paces for one seed in six. Draws from another stream, so
/// that seeds draw all else as they would without this choice.
std::optional<barrier::Barrier> draw_sampled_paces(std::uint64_t seed, std::size_t workers) {
  Random random = Random::stream(seed, 4);
  if (random.below(6) > 0) return std::nullopt;
  std::vector<barrier::AnyRule> rules = barrier::built_in_rules();
  rules.insert(rules.end(), scenario_predicates().begin(), scenario_predicates().end());
  std::erase_if(rules, [](const auto& rule) {
    return !barrier::needs_paces({rule}) || !barrier::can_be_sampled(rule);
  });
  barrier::AnyRule& rule = rules[random.below(rules.size())];
  draw_options(random, rule, 1 + random.below(3));
  return barrier::sampled(rule, draw_beta(random, workers));
}

/// Draws a barrier that tunes itself for one seed in eight. Draws from another stream, so that
/// seeds draw all else as they would without this choice.
std::optional<barrier::Barrier> draw_tuned(std::uint64_t seed) {
  using enum barrier::Tuned::Measure;
  Random random = Random::stream(seed, 3);
  if (random.below(8) > 0) return std::nullopt;
  static constexpr std::array choices{barrier::Tuned{waiting, 0.3}, barrier::Tuned{staleness, 1},
                                      barrier::Tuned{progress}};
  return barrier::Barrier{choices[random.below(choices.size())]};
}

/// Draws absp for one seed in four of central mode. Draws from another stream, so that seeds draw
/// all else as they would without this choice.
bool draws_absp(std::uint64_t seed, core::Mode mode) {
  return core::keeps_steps_centrally(mode) && Random::stream(seed, 6).below(4) == 0;
}

/// Draws the weights of a sampled barrier; half of them are uniform. Draws from another stream, so
/// that seeds draw all else as they would without this choice.
barrier::Weighting draw_weighting(std::uint64_t seed) {
  using enum barrier::Weighting;
  static constexpr std::array weightings{uniform, uniform, availability, speed};
  return weightings[Random::stream(seed, 2).below(weightings.size())];
}

/// Returns a gossip exchange with a random graph, and in half of the cases with a lag.
std::string draw_gossip(std::uint64_t seed) {
  Random random = Random::stream(seed, 8);
  const auto graph = random.below(core::gossip_graphs.size());
  const auto lag = random.below(4);
  return std::string{core::GossipExchange::name} + ":" + std::string{core::gossip_graphs[graph]} +
         (lag < 2 ? "" : ",lag=" + std::to_string(lag - 1));
}

/// Draws the number of buckets of allreduce, for one seed in two. Draws from another stream, so
/// that seeds draw all else as they would without this choice.
std::string draw_buckets(std::uint64_t seed) {
  Random random = Random::stream(seed, 13);
  return random.below(2) == 0 ? "" : ",buckets=" + std::to_string(2 + random.below(3));
}

/// Draws allreduce for one seed in five: with a random algorithm that `workers` workers can use,
/// and in half of the cases with rounds that overlap with steps. Draws from another stream, so that
/// seeds draw all else as they would without this choice.
std::optional<std::string> draw_allreduce(std::uint64_t seed, std::size_t workers) {
  Random random = Random::stream(seed, 9);
  if (random.below(5) > 0) return std::nullopt;
  // The last of the arguments is the overlap, which is drawn separately.
  constexpr const auto& arguments = core::AllreduceExchange::arguments;
  const std::string_view algorithm = arguments[random.below(arguments.size() - 1)];
  const std::string options = random.below(2) == 0 ? ",overlap" : draw_buckets(seed);
  const auto with = [&](std::string_view drawn) {
    return std::string{core::AllreduceExchange::name} + ":" + std::string{drawn} + options;
  };
  const std::string name = with(algorithm);
  return core::AllreduceExchange::check_workers(name, workers) ? name : with(arguments.front());
}

/// Draws average, with a mean after 1 to 8 steps, for one seed in six. Draws from another stream,
/// so that seeds draw all else as they would without this choice.
std::optional<std::string> draw_average(std::uint64_t seed) {
  Random random = Random::stream(seed, 10);
  if (random.below(6) > 0) return std::nullopt;
  return std::string{core::AverageExchange::name} + ":every=" + std::to_string(1 + random.below(8));
}

barrier::Recheck draw_recheck(Random& random, core::Mode mode) {
  if (core::keeps_steps_centrally(mode) && random.below(2) == 0) return {.arrival = true};
  switch (random.below(4)) {
    case 0:
      return {.notify = true};
    case 1:
      return {.interval = 5ms};
    case 2:
      return {.interval = barrier::Recheck::automatic};
    default:
      return barrier::Recheck::distributed();
  }
}

/// Returns a random set of nodes: at least one, and at most half of them.
NodeSet draw_group(Random& random, std::uint32_t nodes) {
  NodeSet group = 0;
  const std::uint64_t size = 1 + random.below(nodes / 2);
  for (std::uint64_t i = 0; i < size; ++i) group |= NodeSet{1} << random.below(nodes);
  return group;
}

/// Draws a fault. A node that joins gets the number `next_new_node`, which is then increased.
Fault draw_fault(Random& random, const Scenario& scenario, NodeId& next_new_node) {
  using enum Fault::Kind;
  static constexpr std::array kinds{crash,
                                    crash,
                                    freeze,
                                    partition,
                                    one_way_partition,
                                    one_way_partition,
                                    pair_partition,
                                    suspect,
                                    suspect,
                                    join,
                                    join,
                                    leave};
  Fault fault;
  fault.kind = kinds[random.below(kinds.size())];
  fault.at = truncated(draw_time(random, 1ms, 250ms));
  fault.node = static_cast<NodeId>(random.below(scenario.initial_nodes()));
  // Chooses the coordinator or its successor more often than other nodes.
  if (scenario.has_coordinator() && random.below(3) == 0)
    fault.node = random.below(2) == 0 ? scenario.coordinator() : 0;
  const Time brief = truncated(draw_time(random, 1ms, 100ms));
  const Time lengthy = truncated(draw_time(random, 100ms, 1200ms));
  const Time lasting = truncated(draw_time(random, stuck_after + 1s, stuck_after + 4s));
  const Time any_length = random.below(16) == 0 ? lasting : random.below(2) == 0 ? brief : lengthy;
  switch (fault.kind) {
    case Fault::Kind::crash:
      fault.after_effects = static_cast<std::uint32_t>(random.below(8));
      fault.lasts = random.below(4) == 0 ? Time{} : random.below(2) == 0 ? brief : lengthy;
      break;
    case Fault::Kind::suspect:
      fault.lasts = random.below(2) == 0 ? brief : lengthy;
      break;
    case Fault::Kind::freeze:
      fault.lasts = any_length;
      break;
    case Fault::Kind::partition:
    case Fault::Kind::one_way_partition:
      fault.node = 0;
      fault.group = draw_group(random, scenario.initial_nodes());
      // Either others receive nothing from a few nodes, or a few nodes receive nothing from others.
      if (fault.kind == Fault::Kind::one_way_partition && random.below(2) == 0)
        fault.group ^= (NodeSet{1} << scenario.initial_nodes()) - 1;
      fault.lasts = any_length;
      break;
    case Fault::Kind::pair_partition:
      fault.other = static_cast<NodeId>(
          (fault.node + 1 + random.below(scenario.initial_nodes() - 1)) % scenario.initial_nodes());
      fault.is_two_way = random.below(2) == 0;
      fault.lasts = any_length;
      break;
    case Fault::Kind::join:
      fault.node = next_new_node < nodes_max ? next_new_node++ : fault.node;
      break;
    case Fault::Kind::leave:
      break;
  }
  return fault;
}

/// Draws the numbers of workers and servers.
void draw_members(Random& random, Scenario& scenario) {
  const auto nodes = static_cast<std::uint32_t>(5 + random.below(1 + random.below(12)));
  if (scenario.mode == core::Mode::peer) {
    scenario.workers = nodes;
    return;
  }
  scenario.servers = static_cast<std::uint32_t>(3 + random.below(2));
  const std::uint32_t non_workers = scenario.servers + (scenario.has_coordinator() ? 1U : 0U);
  scenario.workers = std::max(2U, nodes - std::min(nodes, non_workers));
}

/// Draws elastic, with a move after 1 to 6 steps, for one seed in eight. Draws from another stream,
/// so that seeds draw all else as they would without this choice.
std::optional<std::string> draw_elastic(std::uint64_t seed) {
  Random random = Random::stream(seed, 11);
  if (random.below(8) > 0) return std::nullopt;
  return std::string{core::ElasticExchange::name} +
         ":every=" + std::to_string(1 + random.below(6)) + ",pull=0.5";
}

/// Draws leader, with a move after 1 to 4 steps in groups of 1 to 4, for one seed in six. Draws
/// from another stream, so that seeds draw all else as they would without this choice.
std::optional<std::string> draw_leader(std::uint64_t seed) {
  Random random = Random::stream(seed, 12);
  if (random.below(6) > 0) return std::nullopt;
  const std::uint64_t every = 1 + random.below(4);
  const std::string group = std::to_string(1 + random.below(4));
  const std::string pull = std::to_string(1 + random.below(4));
  return std::string{core::LeaderExchange::name} + ":every=" + std::to_string(every) +
         ",group=" + group + ",pull=0." + pull +
         ",global_every=" + std::to_string(every * (1 + random.below(3)));
}

}  // namespace

std::span<const barrier::Predicate> scenario_predicates() {
  using barrier::Pace;
  // A worker waits for those that are behind and will, by their last interval, push soon.
  static const std::vector predicates{
      barrier::Predicate::of_paces("soon", [](const Pace& own, std::span<const Pace> others) {
        return std::ranges::none_of(others, [&](const Pace& other) {
          const Time next_push = other.pushed_at + other.interval;
          return other.step < own.step && next_push > own.pushed_at &&
                 next_push < own.pushed_at + 10ms;
        });
      })};
  return predicates;
}

bool Fault::is_lasting() const { return lasts > stuck_after; }

Scenario draw_scenario(std::uint64_t seed) {
  Random random = Random::stream(seed, 0);
  Scenario scenario;
  scenario.seed = seed;
  static constexpr std::array modes{core::Mode::peer, core::Mode::peer, core::Mode::hybrid,
                                    core::Mode::central};
  scenario.mode = modes[random.below(modes.size())];
  draw_members(random, scenario);
  scenario.barrier = draw_barrier(random, scenario.mode, scenario.workers);
  scenario.recheck = draw_recheck(random, scenario.mode);
  scenario.ranges = static_cast<std::uint32_t>(1 + random.below(6));
  scenario.replication_factor = random.below(8) == 0 ? 3 : 2;
  scenario.steps = 10 + random.below(11);
  // A quarter of the scenarios have a reliable network, in which only the faults disturb the job.
  if (random.below(4) > 0) {
    scenario.loss = static_cast<double>(random.below(31)) / 100;
    scenario.duplication = static_cast<double>(random.below(21)) / 100;
    scenario.reordering = static_cast<double>(random.below(31)) / 100;
  }
  scenario.straggling = random.below(3) == 0 ? 4 : 1;
  scenario.exceeds_fault_budget = random.below(16) == 0;
  // These draws are from other streams, so that seeds draw all else as they would without this
  // choice.
  if (scenario.mode == core::Mode::peer && Random::stream(seed, 1).below(4) == 0)
    scenario.exchange = core::BroadcastExchange::name;
  else if (scenario.mode == core::Mode::peer && Random::stream(seed, 7).below(4) == 1)
    scenario.exchange = draw_gossip(seed);
  else if (auto allreduce = draw_allreduce(seed, scenario.workers);
           allreduce && scenario.mode == core::Mode::peer)
    scenario.exchange = *std::move(allreduce);
  else if (auto average = draw_average(seed); average && scenario.mode == core::Mode::peer)
    scenario.exchange = *std::move(average);
  else if (auto leader = draw_leader(seed); leader && scenario.mode == core::Mode::peer)
    scenario.exchange = *std::move(leader);
  else if (auto elastic = draw_elastic(seed))
    scenario.exchange = *std::move(elastic);
  if (auto tuned = draw_tuned(seed)) scenario.barrier = *std::move(tuned);
  if (auto paces = draw_sampled_paces(seed, scenario.workers)) scenario.barrier = *std::move(paces);
  if (draws_absp(seed, scenario.mode)) scenario.barrier = {barrier::Absp{}};
  if (core::exchange_type(scenario.exchange).model_lags && barrier::is_bsp(scenario.barrier))
    scenario.exchange = core::OwnershipExchange::name;
  if (core::exchange_type(scenario.exchange).is_barrier) scenario.barrier = {barrier::Bsp{}};
  if (!scenario.has_coordinator() && scenario.barrier.sample)
    scenario.barrier.weighting = draw_weighting(seed);
  // Draws from another stream, so that seeds draw all else as they would without a cache.
  scenario.cache = core::check_cache(scenario.exchange, scenario.mode, scenario.barrier).ok() &&
                   Random::stream(seed, 5).below(2) == 0;
  auto next_new_node = static_cast<NodeId>(scenario.initial_nodes());
  const std::uint64_t faults = random.below(9);
  for (std::uint64_t i = 0; i < faults; ++i)
    scenario.faults.push_back(draw_fault(random, scenario, next_new_node));
  for (std::uint64_t i = 0; scenario.exceeds_fault_budget && i < 4; ++i) {
    Fault crash{.kind = Fault::Kind::crash};
    crash.node = static_cast<NodeId>(random.below(scenario.initial_nodes()));
    crash.at = truncated(draw_time(random, 1ms, 250ms));
    scenario.faults.push_back(crash);
  }
  std::ranges::stable_sort(scenario.faults, {}, &Fault::at);
  return scenario;
}

}  // namespace starling::sim
