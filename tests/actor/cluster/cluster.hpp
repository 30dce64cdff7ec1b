/// A cluster of nodes in this process that run CountingJobs, over sockets on the loopback
/// interface. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/cluster_client.hpp"
#include "starling/actor/cluster/cluster_node.hpp"
#include "tests/actor/cluster/counting_job.hpp"
#include "tests/waiting.hpp"

namespace starling::actor {

/// A cluster of nodes, and a client of it.
class Cluster : public testing::Test {
 protected:
  using State = actor::MemberReport::State;

  Cluster() : client_(ClusterClient::open({}).value()) {}

  /// Adds a node that joins through the nodes before it, and returns its index.
  std::size_t add() {
    ClusterOptions options;
    for (const auto& node : nodes_)
      if (node) options.seeds.push_back(node->address());
    options.name = "n" + std::to_string(nodes_.size());
    options.prepare_job = prepare_counting_job;
    nodes_.push_back(ClusterNode::open(options).value());
    return nodes_.size() - 1;
  }

  /// Adds the first node of a cluster. It prepares jobs only once `released` is ready.
  void add_waiting(const std::shared_future<void>& released) {
    ClusterOptions options;
    options.name = "n0";
    options.prepare_job = [released](const auto& settings) {
      released.wait();
      return prepare_counting_job(settings);
    };
    nodes_.push_back(ClusterNode::open(options).value());
  }

  /// Adds `count` nodes to an empty cluster, and waits until they have found each other.
  void add(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add();
    ASSERT_TRUE(wait_until([&] {
      return std::ranges::all_of(nodes_,
                                 [&](auto& node) { return live_others(*node) == count - 1; });
    }));
  }

  /// Returns how many other nodes a node knows as live.
  static std::size_t live_others(ClusterNode& node) {
    const auto status = node.status();
    return static_cast<std::size_t>(std::ranges::count_if(
        status.others, [](const auto& other) { return core::is_live(other.state); }));
  }

  /// Submits the job `job_` to a node, and waits up to 30 s for the start.
  Result<wire::JobStarted> submit(std::size_t node, const wire::JobSettings& settings) {
    return client_->ask_for<wire::JobStarted>(
        nodes_[node]->address(), wire::SubmitJob{job_, settings}, std::chrono::seconds{30});
  }

  /// Returns the settings of a CountingJob.
  static wire::JobSettings counting_settings(const char* mode, const char* barrier,
                                             const char* workers, const char* steps,
                                             const char* delay_ms) {
    return {{"mode", mode},
            {"barrier", barrier},
            {"workers", workers},
            {"steps", steps},
            {"delay", delay_ms}};
  }

  /// Returns the status of each member of the job on each running node.
  std::vector<wire::MemberStatus> members() {
    std::vector<wire::MemberStatus> all;
    for (auto& node : nodes_) {
      if (!node) continue;
      const auto status = node->status();
      for (const auto& job : status.jobs)
        if (job.job == job_)
          all.insert(all.end(), job.local_members.begin(), job.local_members.end());
    }
    return all;
  }

  /// Returns true if there are members, and all have finished or were excluded.
  bool all_done() {
    const auto all = members();
    return !all.empty() && std::ranges::all_of(all, [](const auto& member) {
      return member.state == static_cast<std::uint8_t>(State::done) ||
             member.state == static_cast<std::uint8_t>(State::excluded);
    });
  }

  core::Step lowest_step() {
    const auto all = members();
    core::Step lowest = UINT64_MAX;
    for (const auto& member : all) lowest = std::min(lowest, member.step);
    return lowest;
  }

  core::Step highest_step() {
    core::Step highest = 0;
    for (const auto& member : members()) highest = std::max(highest, member.step);
    return highest;
  }

  /// Reads all ranges from the running nodes, ordered by their ids.
  std::vector<core::RangeState> model() {
    std::map<core::RangeId, core::RangeState> states;
    for (auto& node : nodes_) {
      if (!node) continue;
      core::RangeId from = 0;
      do {
        auto ranges = client_->ask_for<wire::Ranges>(
            node->address(), wire::ReadRanges{job_, from, true}, std::chrono::seconds{10});
        if (!ranges) break;
        for (auto& state : ranges->states) states[state.range] = std::move(state);
        from = ranges->next;
      } while (from != 0);
    }
    std::vector<core::RangeState> all;
    for (auto& [range, state] : states) all.push_back(std::move(state));
    return all;
  }

  wire::JobId job_ = 42;
  /// By index; null if the test has ended the node.
  std::vector<std::unique_ptr<ClusterNode>> nodes_;
  std::unique_ptr<ClusterClient> client_;
};

}  // namespace starling::actor
