/// Counting jobs on several nodes in this process, each with a transport of its own. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/local_job.hpp"
#include "starling/actor/wire/transport.hpp"
#include "tests/actor/job/counters.hpp"
#include "tests/waiting.hpp"

namespace starling::actor {

/// Reads the ranges that members of `job` are primary of.
inline std::vector<core::RangeState> ranges_of(LocalJob& job) {
  std::promise<std::vector<core::RangeState>> read;
  job.read_ranges({},
                  [&](std::vector<core::RangeState> states) { read.set_value(std::move(states)); });
  return read.get_future().get();
}

/// Makes the job; called once for each node.
using MakeJob = std::function<Assignment()>;

/// Nodes in this process, numbered from 0. Each has a transport and a LocalJob. Packets for a
/// member go to the node with which it was added, until route_to() changes that.
class Nodes {
 public:
  explicit Nodes(MakeJob job)
      : job_(std::move(job)), ranges_(job_().task->layout().ranges.size()) {}
  ~Nodes() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) kill(node);
  }

  /// Adds a node for initial members of the job, or for a member that joins later. Returns its
  /// number.
  std::size_t add(std::vector<core::Member> members) {
    const std::size_t index = nodes_.size();
    LocalJobOptions options;
    options.send = [this, index](const std::vector<core::Envelope>& envelopes) {
      for (const core::Envelope& envelope : envelopes) send(index, envelope);
    };
    auto made = make_local_job(job_(), options).value();
    auto transport = wire::Transport::open(
        {}, [this, index](const wire::IncomingFrame& incoming) { receive(index, incoming); });
    const std::lock_guard lock{mutex_};
    nodes_.push_back({std::move(transport).value(), std::move(made)});
    for (const core::Member& member : members) route_to(member.id, index);
    members_.push_back(std::move(members));
    addresses_.push_back(nodes_[index].transport->address());
    return index;
  }

  /// From now on, packets for the member go to `node`.
  void route_to(core::MemberId id, std::size_t node) {
    const std::lock_guard lock{mutex_};
    node_of_.resize(std::max<std::size_t>(node_of_.size(), id + 1));
    node_of_[id] = node;
  }

  /// Starts the job with the members that were added.
  void start() {
    std::vector<core::Member> all;
    for (const auto& of_node : members_) all.insert(all.end(), of_node.begin(), of_node.end());
    std::ranges::sort(all);
    const auto first = std::make_shared<const core::Configuration>(core::first_configuration(
        std::move(all), ranges_, 2, core::keeps_steps_centrally(job_().job.mode)));
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].local->add_initial_members(members_[node], first);
      start(node, first);
    }
  }

  /// Starts the own actors and then the members of a node.
  void start(std::size_t node, const core::ConfigurationPtr& configuration) {
    std::promise<bool> started;
    local(node).start_user_actors(
        configuration, [&](const Result<void>& result) { started.set_value(result.ok()); });
    ASSERT_TRUE(started.get_future().get());
    local(node).start_members();
  }

  LocalJob& local(std::size_t node) { return *nodes_.at(node).local; }
  [[nodiscard]] bool is_running(std::size_t node) const { return nodes_[node].local != nullptr; }

  /// Ends a node at once, without notice to the others.
  void kill(std::size_t node) {
    NodeEntry dead;
    {
      const std::lock_guard lock{mutex_};
      std::swap(dead, nodes_.at(node));
    }
    dead.transport.reset();
    dead.local.reset();
  }

  /// Reports the members of `node` as dead to every running node, as failure detection does.
  void declare_dead(std::size_t node) {
    for (std::size_t other = 0; other < nodes_.size(); ++other)
      if (is_running(other))
        for (const core::Member& member : members_[node])
          local(other).report_liveness({member.id, member.incarnation, true});
  }

  /// From now on, packets between `node` and the others are lost; nullopt ends the partition.
  void partition_off(std::optional<std::size_t> node) {
    const std::lock_guard lock{mutex_};
    partitioned_off_ = node;
  }

  /// Returns true if all members on the running nodes are in this state.
  bool all_are(actor::MemberReport::State state) {
    for (auto& node : nodes_)
      if (node.local)
        for (const auto& report : node.local->reports())
          if (report.state != state) return false;
    return true;
  }

  /// Returns the step of the first member on `node`.
  core::Step step(std::size_t node) { return local(node).reports().at(0).worker.step; }

  /// Reads all ranges, each from its primary.
  std::vector<core::RangeState> model() {
    std::vector<core::RangeState> states;
    for (auto& node : nodes_)
      if (node.local)
        for (auto& state : ranges_of(*node.local)) states.push_back(std::move(state));
    std::ranges::sort(states, {}, &core::RangeState::range);
    EXPECT_EQ(states.size(), ranges_);
    return states;
  }

  /// Expects that the model contains each update of each worker exactly once.
  void expect_exact() {
    const auto states = model();
    expect_exact_counts(states);
    for (const auto& state : states)
      for (auto& node : nodes_) {
        if (!node.local) continue;
        for (const auto& report : node.local->reports())
          EXPECT_EQ(state.ledger.at(report.member).step, report.worker.step);
      }
  }

 private:
  struct NodeEntry {
    std::unique_ptr<wire::Transport> transport;
    std::unique_ptr<LocalJob> local;
  };

  void send(std::size_t from, const core::Envelope& envelope) {
    wire::Frame frame = wire::encode(1, from, envelope);
    const auto traffic_class = wire::traffic_class_of(frame);
    const std::lock_guard lock{mutex_};
    if (envelope.to >= node_of_.size() || !nodes_[from].transport) return;
    const std::size_t to = node_of_[envelope.to];
    if (from != to && (partitioned_off_ == from || partitioned_off_ == to)) return;
    nodes_[from].transport->send({addresses_[to], std::nullopt}, traffic_class, std::move(frame));
  }

  void receive(std::size_t to, const wire::IncomingFrame& incoming) {
    auto decoded = wire::decode_envelope(incoming.frame);
    ASSERT_TRUE(decoded) << decoded.error().message;
    const std::lock_guard lock{mutex_};
    if (to < nodes_.size() && nodes_[to].local)
      nodes_[to].local->deliver(std::move(decoded->envelope), incoming.frame.may_handle_inline);
  }

  MakeJob job_;
  std::size_t ranges_;
  /// Recursive, because a LocalJob may send while a packet is delivered to it.
  std::recursive_mutex mutex_;
  std::vector<std::string> addresses_;
  std::optional<std::size_t> partitioned_off_;
  std::vector<NodeEntry> nodes_;
  std::vector<std::vector<core::Member>> members_;
  std::vector<std::size_t> node_of_;
};

/// Returns a function that makes a job which trains Counters.
inline MakeJob make_counting_job(const TrainOptions& options) {
  return [options, data = std::make_shared<models::Table>(load("linear:d=2,n=1200"))] {
    return counting_assignment(*data, options);
  };
}

inline TrainOptions options_of(std::size_t workers, core::Step steps, const char* barrier,
                               core::Mode mode = core::Mode::peer,
                               core::Time delay = std::chrono::milliseconds{2}) {
  return counting_options(mode, workers, steps, barrier, delay);
}

/// Adds `joiner`, who asks member 0, to node number `node`, and starts it.
inline void join(Nodes& nodes, std::size_t node, const core::Member& joiner) {
  nodes.local(node).add_joiner(joiner, {0});
  nodes.local(node).start_members();
}

/// Adds `count` nodes with one peer each.
inline void add_peers(Nodes& nodes, core::MemberId count) {
  for (core::MemberId id = 0; id < count; ++id) nodes.add({{id, 1, true, true}});
}

/// Adds three nodes. Each has two of the workers 0 to 5, and one of the servers 6 to 8. The first
/// node also has member 9, the coordinator.
inline void add_servers(Nodes& nodes) {
  for (core::MemberId node = 0; node < 3; ++node) {
    std::vector<core::Member> members{
        {2 * node, 1, true, false}, {2 * node + 1, 1, true, false}, {6 + node, 1, false, true}};
    if (node == 0) members.push_back({9, 1, false, false});
    nodes.add(std::move(members));
  }
}

inline constexpr const char* sampled_barrier = "pssp:s=4,beta=2";

}  // namespace starling::actor
