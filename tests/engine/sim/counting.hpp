/// Simulated jobs whose parameters count updates. Every range has one counter for each worker, and
/// each update adds exactly 1 to the counter of its worker. The values that a worker reads
/// therefore show which updates they contain. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/sim/protocol/protocol.hpp"

namespace starling::sim {

/// Returns the options of a small job over a network that reorders and duplicates packets.
inline ProtocolOptions small_job() {
  ProtocolOptions options;
  options.workers = 4;
  options.shards = 2;
  options.steps = 10;
  options.step_time = {laws::Exponential{std::chrono::milliseconds{5}}};
  options.link = {.latency = {laws::Uniform{std::chrono::microseconds{1500}}}, .duplication = 0.1};
  options.events_max = 2'000'000;
  return options;
}

/// Returns slowness factors by which the steps of worker 0 take `factor` times as long as those of
/// the others.
inline std::vector<double> first_is_slow(std::size_t workers, double factor) {
  std::vector<double> slowness(workers, 1);
  slowness[0] = factor;
  return slowness;
}

/// Returns true if a worker's step reads and changes a range. If the function is empty, every step
/// reads and changes all ranges.
using Touches = std::function<bool(MemberId, Step, core::RangeId)>;

/// Returns a job that counts. If `uses_gradients`, its updates are gradients of -1, applied with
/// learning rate 1; else they are added. Jobs in which workers die must not use gradients, because
/// the mean of a bsp round is then over fewer workers.
inline Job counting_job(const ProtocolOptions& options, std::size_t ranges, const Touches& touches,
                        bool uses_gradients) {
  const std::size_t workers = options.workers;
  const bool bsp = barrier::is_bsp(options.barrier);
  core::Layout layout;
  Job job;
  for (core::RangeId r = 0; r < ranges; ++r) {
    auto zeros = core::Buffer::make<double>(workers);
    std::ranges::fill(zeros->as<double>(), 0.0);
    job.initial_states.push_back(
        {.range = r, .value = {std::move(zeros), 0, workers, nullptr}, .slots = {}, .ledger = {}});
    layout.parameters.push_back({.name = "counters", .shape = {workers}});
    layout.offsets.push_back(layout.size);
    layout.ranges.push_back({layout.size, workers, 0, {{r, 0, 0, workers}}});
    layout.size += workers;
  }
  job.layout = std::make_shared<const core::Layout>(std::move(layout));
  // Without bsp, a push of n samples has the weight n / (workers * batch), which is 1 for n =
  // `workers` and batch 1. With bsp, the mean of a round divides by the number of workers, and
  // gradients of -`workers` make up for that.
  if (uses_gradients)
    job.applier = core::gradient_applier<double>(
        {.optimizer = models::Sgd{.lr = 1}, .schedule = {}, .l2 = 0, .batch = 1});
  else
    job.applier = core::merge_applier<double>(
        [](const core::MergeTarget&, std::span<double> value, std::span<const double> update) {
          std::ranges::transform(value, update, value.begin(), std::plus<>{});
        });
  const double gradient = !uses_gradients ? 1 : bsp ? -static_cast<double>(workers) : -1;
  job.compute = [=](MemberId worker, const core::Compute& compute) {
    core::Update update{.parts = {}, .samples = static_cast<std::uint32_t>(workers)};
    for (core::RangeId r = 0; r < ranges; ++r) {
      if (touches && !touches(worker, compute.step, r)) continue;
      auto one_hot = core::Buffer::make<double>(workers);
      std::ranges::fill(one_hot->as<double>(), 0.0);
      one_hot->as<double>()[worker] = gradient;
      update.parts.push_back({r, {std::move(one_hot), 0, workers, nullptr}});
    }
    return update;
  };
  if (touches)
    job.plan = [=](MemberId worker, const core::Plan& plan) {
      std::vector<core::RangeRows> wanted;
      for (core::RangeId r = 0; r < ranges; ++r)
        if (touches(worker, plan.step, r)) wanted.push_back({r, nullptr});
      return wanted;
    };
  return job;
}

/// Runs a job that counts, and checks its invariants after every event: see the expect functions.
class CountingRun {
 public:
  /// The worker, step and time of each computation that has begun.
  std::vector<std::tuple<MemberId, Step, Time>> passes;

  explicit CountingRun(const ProtocolOptions& options, std::size_t ranges = 3,
                       const Touches& touches = nullptr, bool uses_gradients = true)
      : touches_(touches),
        last_draws_(options.workers),
        protocol_(options,
                  with_read_check(counting_job(options, ranges, touches, uses_gradients))) {
    protocol_.on_compute = [this](MemberId worker, const core::Compute& compute) {
      passes.emplace_back(worker, compute.step, protocol_.now());
      expect_fresh_enough(worker, compute);
      last_draws_[worker].second.clear();
    };
    protocol_.on_send = [this](MemberId from, MemberId to, const core::PeerMessage& message) {
      if (const auto* query = std::get_if<core::StepQuery>(&message)) {
        auto& [draw, members] = last_draws_[from];
        if (std::exchange(draw, query->draw) != query->draw) members.clear();
        members.insert(to);
      }
    };
    protocol_.on_event = [this] { expect_bounded_spread(); };
  }

  Protocol& operator*() { return protocol_; }
  Protocol* operator->() { return &protocol_; }

  void run() {
    ASSERT_TRUE(protocol_.run()) << protocol_.error();
    for (MemberId w = 0; w < protocol_.options().workers; ++w)
      EXPECT_TRUE(protocol_.worker(w).is_done() || protocol_.is_dead(w))
          << "worker " << w << " hangs at step " << protocol_.worker(w).step();
  }

  /// Expects that each range has each acknowledged update that touches it exactly once.
  void expect_each_update_once() {
    for (const core::RangeState& state : protocol_.model())
      for (MemberId w = 0; w < protocol_.options().workers; ++w) {
        if (protocol_.is_dead(w)) continue;
        EXPECT_EQ(state.value.as<double>()[w],
                  expected_count(w, state.range, protocol_.worker(w).step()))
            << "range " << state.range << ", worker " << w;
        if (!touches_) {
          EXPECT_EQ(state.ledger[w].step, protocol_.worker(w).step());
        }
      }
  }

  [[nodiscard]] Step largest_spread() const { return largest_spread_; }

 private:
  /// Returns the job, with a compute function that first checks that the values read at the begin
  /// of the computation are unchanged.
  Job with_read_check(Job job) {
    job.compute = [this, compute = std::move(job.compute)](MemberId worker,
                                                           const core::Compute& read) {
      EXPECT_EQ(counters(read), last_read_[worker])
          << "an owner has changed values that a worker holds";
      return compute(worker, read);
    };
    return job;
  }

  /// Returns all counters that a worker has read, range after range.
  static std::vector<double> counters(const core::Compute& compute) {
    std::vector<double> all;
    for (const core::Value& value : compute.values)
      for (const double counter : value.value.as<double>()) all.push_back(counter);
    return all;
  }

  /// Returns how many of the first `steps` updates of a worker touch a range.
  [[nodiscard]] double expected_count(MemberId worker, core::RangeId range, Step steps) const {
    if (!touches_) return static_cast<double>(steps);
    double count = 0;
    for (Step step = 0; step < steps; ++step) count += touches_(worker, step, range) ? 1 : 0;
    return count;
  }

  /// Expects that the values read contain all updates of the reader itself, and, of each worker
  /// whose step the barrier saw when it let the reader pass, all updates up to the reader's step
  /// minus the staleness.
  void expect_fresh_enough(MemberId reader, const core::Compute& compute) {
    last_read_[reader] = counters(compute);
    const auto& options = protocol_.options();
    // If rounds overlap with steps, a worker reads the copy before that of its last step's round.
    const Step unread = options.exchange.ends_with("overlap") && compute.step > 0 ? 1 : 0;
    const Step promised = barrier::promised_floor(options.barrier, compute.step).value_or(0);
    const Step floor = promised - std::min(promised, unread);
    const bool sees_everyone =
        barrier::needs_every_step(options.barrier) || options.barrier.sample == options.workers - 1;
    for (const core::Value& value : compute.values) {
      const auto counters = value.value.as<double>();
      EXPECT_EQ(counters[reader], expected_count(reader, value.range, compute.step - unread));
      for (MemberId other = 0; other < options.workers; ++other) {
        if (other == reader || protocol_.is_dead(other)) continue;
        if (!sees_everyone && !last_draws_[reader].second.contains(other)) continue;
        if (!protocol_.has_worker(other)) {
          EXPECT_EQ(floor, 0U) << "worker " << other << " has not started";
          continue;
        }
        const core::Worker& worker = protocol_.worker(other);
        const Step required = worker.is_done() ? std::min(floor, worker.step()) : floor;
        ASSERT_GE(counters[other], expected_count(other, value.range, required))
            << "worker " << reader << " at step " << compute.step << " read range " << value.range
            << " without worker " << other << "'s updates";
      }
    }
  }

  /// Expects that the steps of the running workers differ by no more than the barrier's bound.
  void expect_bounded_spread() {
    Step slowest = barrier::finished;
    Step fastest = 0;
    for (MemberId w = 0; w < protocol_.options().workers; ++w) {
      if (protocol_.worker(w).is_done() || protocol_.is_dead(w)) continue;
      slowest = std::min(slowest, protocol_.worker(w).step());
      fastest = std::max(fastest, protocol_.worker(w).step());
    }
    if (slowest > fastest) return;
    largest_spread_ = std::max(largest_spread_, fastest - slowest);
    if (const auto bound = barrier::spread_bound(protocol_.options().barrier)) {
      ASSERT_LE(fastest - slowest, *bound);
    }
  }

  Touches touches_;
  /// By worker: the counters that it read for the step that it computes.
  std::map<MemberId, std::vector<double>> last_read_;
  /// By worker: the number of its last draw, and the workers that it asked in that draw.
  std::vector<std::pair<std::uint64_t, std::set<MemberId>>> last_draws_;
  Protocol protocol_;
  Step largest_spread_ = 0;
};

}  // namespace starling::sim
