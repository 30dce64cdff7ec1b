// Measures how fast a simulated cluster detects joins, crashes and partitions, and how many
// messages this takes.
//
//   cmake --preset bench && cmake --build build/bench --target membership_benchmark
//   build/bench/tests/benchmarks/sim/membership_benchmark [NODES[,NODES...]] [SEEDS] [memberlist]
//   build/bench/tests/benchmarks/sim/membership_benchmark scale 100000
//
// Prints a line for each number of nodes (3,5,50,500 by default) and scenario, with the mean and
// the largest result of SEEDS seeds (20 by default, fewer for more than 100 nodes). The latency of
// a message is exponentially distributed with a mean of 0.5 ms. `memberlist` replaces the default
// times by those that hashicorp/memberlist uses for a LAN. `scale` measures the processor time of
// one node that knows 100,000 nodes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/engine/sim/membership/cluster.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

/// Returns the options of hashicorp/memberlist for a LAN.
core::MembershipOptions memberlist_options() {
  core::MembershipOptions options;
  options.probe_interval = 1s;
  options.probe_timeout = 500ms;
  options.nack_after = 400ms;
  options.gossip_every = 200ms;
  options.suspicion_intervals = 4;
  options.gossip_repeats = 4 / 3.3;
  options.sync_interval = 30s;
  return options;
}

double seconds(Time time) { return std::chrono::duration<double>(time).count(); }

/// The results of one measurement with several seeds.
class Figures {
 public:
  void add(double value) { values_.push_back(value); }
  void add(std::optional<Time> time) {
    if (time)
      add(seconds(*time));
    else
      ++timeouts_;
  }
  void print(const char* what, std::size_t nodes, const char* unit) const {
    if (values_.empty() && timeouts_ == 0) return;
    const double sum = std::accumulate(values_.begin(), values_.end(), 0.0);
    const double mean = values_.empty() ? 0 : sum / static_cast<double>(values_.size());
    const double largest = values_.empty() ? 0 : *std::ranges::max_element(values_);
    std::printf("%6zu  %-44s %10.3f %10.3f %s", nodes, what, mean, largest, unit);
    if (timeouts_ > 0) std::printf("  (not within the limit: %d)", timeouts_);
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  std::vector<double> values_;
  int timeouts_ = 0;
};

/// Returns `count` nodes with consecutive ids, which begin at `first`.
std::vector<NodeId> nodes_from(NodeId first, std::size_t count) {
  std::vector<NodeId> nodes(count);
  std::iota(nodes.begin(), nodes.end(), first);
  return nodes;
}

/// Runs the scenarios for one number of nodes.
class Scenarios {
 public:
  Scenarios(std::size_t nodes, std::uint64_t seeds, ClusterOptions options)
      : nodes_(nodes), seeds_(seeds), options_(std::move(options)) {}

  void run_all() {
    idle();
    crash();
    leave();
    partition();
    freeze();
    slow();
  }

 private:
  using Scenario = std::function<void(Cluster&, std::uint64_t seed)>;

  /// Runs the scenario with each seed on a new cluster, after all nodes have joined.
  void run_seeds(const Scenario& scenario) {
    for (std::uint64_t seed = 1; seed <= seeds_; ++seed) {
      Cluster cluster{options_, seed};
      cluster.start_many(nodes_);
      joined_.add(cluster.run_until([&] { return cluster.agree(); }, 60s));
      cluster.run(10s + Time{Random::stream(seed, 2).below(1'000'000'000)});
      scenario(cluster, seed);
    }
  }

  void idle() {
    Figures messages;
    Figures bytes;
    run_seeds([&](Cluster& cluster, std::uint64_t) {
      const auto before = cluster.messages();
      const auto bytes_before = cluster.bytes();
      cluster.run(20s);
      const double node_seconds = 20.0 * static_cast<double>(nodes_);
      messages.add(static_cast<double>(cluster.messages() - before) / node_seconds);
      bytes.add(static_cast<double>(cluster.bytes() - bytes_before) / node_seconds / 1000);
    });
    joined_.print("start of all nodes until all agree", nodes_, "s");
    messages.print("idle: messages sent, a node", nodes_, "/s");
    bytes.print("idle: sent, a node", nodes_, "kB/s");
  }

  void crash() {
    Figures first;
    Figures suspected;
    Figures dead;
    run_seeds([&](Cluster& cluster, std::uint64_t) {
      const auto victim = static_cast<NodeId>(nodes_ - 1);
      const auto rest = nodes_from(0, nodes_ - 1);
      cluster.crash(victim);
      const Time start = cluster.now();
      first.add(cluster.run_until(
          [&] {
            return std::ranges::any_of(
                rest, [&](NodeId by) { return cluster.all_suspect({by}, {victim}); });
          },
          60s));
      cluster.run_until([&] { return cluster.all_suspect(rest, {victim}); }, 60s);
      suspected.add(seconds(cluster.now() - start));
      cluster.run_until([&] { return cluster.agree(rest); }, 60s);
      dead.add(seconds(cluster.now() - start));
    });
    first.print("crash until the first suspects", nodes_, "s");
    suspected.print("crash until all suspect or know", nodes_, "s");
    dead.print("crash until dead to all", nodes_, "s");
  }

  void leave() {
    Figures known;
    run_seeds([&](Cluster& cluster, std::uint64_t) {
      cluster.leave(static_cast<NodeId>(nodes_ - 1));
      known.add(cluster.run_until([&] { return cluster.agree(nodes_from(0, nodes_ - 1)); }, 60s));
    });
    known.print("leave until all know", nodes_, "s");
  }

  void partition() {
    Figures noticed;
    Figures healed;
    const std::size_t majority = (3 * nodes_ + 4) / 5;
    run_seeds([&](Cluster& cluster, std::uint64_t) {
      const auto a = nodes_from(0, majority);
      const auto b = nodes_from(static_cast<NodeId>(majority), nodes_ - majority);
      cluster.network().partition(a, b);
      const Time start = cluster.now();
      noticed.add(cluster.run_until(
          [&] { return cluster.all_suspect(a, b) && cluster.all_suspect(b, a); }, 30s));
      cluster.run(std::max(Time{0}, start + 8s - cluster.now()));
      cluster.network().heal();
      healed.add(cluster.run_until([&] { return cluster.agree(); }, 60s));
    });
    noticed.print("partitioned 3:2 until all miss the other side", nodes_, "s");
    healed.print("healed after 8 s until all agree", nodes_, "s");
  }

  void freeze() {
    Figures recovered;
    run_seeds([&](Cluster& cluster, std::uint64_t) {
      cluster.freeze(1, 10s);
      cluster.run(10s);
      recovered.add(cluster.run_until([&] { return cluster.agree(); }, 60s));
    });
    recovered.print("back after 10 s frozen until all agree", nodes_, "s");
  }

  /// Each node alternately runs, for 0.5 s on average, and is frozen, for 1.5 s on average and 3 s
  /// at most. Prints counts of all seeds together.
  void slow() {
    core::MembershipCounts total;
    const Time duration = std::clamp<Time>(30'000s / nodes_, 120s, 600s);
    run_seeds([&](Cluster& cluster, std::uint64_t) {
      for (const NodeId node : nodes_from(0, nodes_))
        cluster.slow(node, {laws::Exponential{500ms}}, {laws::Uniform{1500ms}});
      const auto before = cluster.counts();
      cluster.run(duration);
      const auto after = cluster.counts();
      total.probes += after.probes - before.probes;
      total.deaths += after.deaths - before.deaths;
      total.suspicions += after.suspicions - before.suspicions;
    });
    const auto print = [&](const char* what, std::uint64_t count) {
      Figures figure;
      figure.add(1e4 * static_cast<double>(count) / static_cast<double>(total.probes));
      figure.print(what, nodes_, "");
    };
    print("all slow: suspicions in 10^4 probes", total.suspicions);
    print("all slow: false deaths in 10^4 probes", total.deaths);
  }

  std::size_t nodes_;
  std::uint64_t seeds_;
  ClusterOptions options_;
  Figures joined_;
};

/// Calls `call` `count` times and prints the mean time of a call.
template <class Call>
void print_mean_time(const char* what, int count, Call call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) call();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  std::printf("%-44s %10.2f us\n", what, took.count() / count);
}

/// Measures the processor time of one node that knows `nodes` nodes.
void measure_scale(std::uint64_t nodes) {
  const auto record = [](std::uint64_t i) {
    return core::NodeRecord{
        mix(i) | 1, "tcp://10.0.0.0:" + std::to_string(i), "node", 2, 0, core::NodeState::alive};
  };
  core::MembershipOptions options;
  options.self = record(0);
  core::Membership membership{options, 1};
  Random random{2};
  std::vector<core::MembershipEffect> effects;
  Time now{};
  const auto context = [&]() -> core::MembershipContext {
    effects.clear();
    return {now, random, effects};
  };
  membership.start(context());
  std::uint64_t next = 0;
  print_mean_time("to learn of a node", static_cast<int>(nodes), [&] {
    membership.on(context(), {record(1), core::Records{{record(++next)}}});
  });
  print_mean_time("to answer a ping with three pieces of news", 10'000, [&] {
    core::MembershipMessage message{record(random.below(nodes) + 1),
                                    core::Ping{options.self.id, 1}};
    for (int k = 0; k < 3; ++k) {
      message.updates.push_back({record(random.below(nodes) + 1), 1});
      message.updates.back().record.incarnation = ++next;
    }
    membership.on(context(), message);
  });
  print_mean_time("to act on a timer", 10'000, [&] {
    now += 30ms;
    membership.on_timer(context());
  });
}

int run(int argc, char** argv) {
  ClusterOptions options{.link = {.latency = {laws::Exponential{500us}}}};
  std::vector<std::size_t> sizes{3, 5, 50, 500};
  std::uint64_t seeds = 20;
  if (argc == 3 && std::string_view{argv[1]} == "scale") {
    const auto nodes = parse_count(argv[2]);
    if (!nodes || *nodes == 0)
      return std::fprintf(stderr, "scale needs a number of nodes above 0\n"), 2;
    return measure_scale(*nodes), 0;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "memberlist") {
      options.membership = memberlist_options();
    } else if (i == 1) {
      sizes.clear();
      for (const auto part : split(argument, ',')) {
        const auto size = parse_count(part);
        if (!size || *size < 3)
          return std::fprintf(stderr, "each of NODES must be a whole number of 3 or more\n"), 2;
        sizes.push_back(*size);
      }
    } else {
      const auto count = parse_count(argument);
      if (!count || *count == 0)
        return std::fprintf(stderr, "SEEDS must be a whole number of 1 or more\n"), 2;
      seeds = *count;
    }
  }
  std::printf("%6s  %-44s %10s %10s\n", "nodes", "figure", "mean", "largest");
  for (const std::size_t size : sizes)
    Scenarios{size, std::min(seeds, std::max<std::uint64_t>(2, seeds * 100 / size)), options}
        .run_all();
  return 0;
}

}  // namespace
}  // namespace starling::sim

int main(int argc, char** argv) { return starling::sim::run(argc, argv); }
