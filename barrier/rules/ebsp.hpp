#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "starling/barrier/rules/bsp.hpp"

namespace starling::barrier {

/// Elastic bulk synchronous parallel (Zhao et al., ICDM 2019, arXiv 2001.01347). All workers
/// wait for one another, as under BSP, but not after each step: when all wait, each gets a number
/// of steps, 1 to `ahead`, after which it waits again. The numbers are such that the times at which
/// the workers will have made their steps, predicted from the last step of each, are as close
/// together as possible.
struct Ebsp {
  static constexpr std::string_view name = "ebsp";
  static constexpr std::string_view summary =
      "all wait, then each makes the steps after which all meet";

  Step ahead = 15;

  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    return Bsp{}.admits(own_step, seen);
  }
  [[nodiscard]] std::optional<Step> floor(Step) const { return std::nullopt; }
  /// A faster worker gets further ahead in every round.
  [[nodiscard]] std::optional<Step> max_lag() const { return std::nullopt; }

  [[nodiscard]] std::vector<Step> round(std::span<const Pace> workers) const {
    std::vector<Step> until;
    for (const Pace& worker : workers) until.push_back(worker.step + 1);
    std::vector<std::chrono::nanoseconds> durations;
    for (const Pace& worker : workers) {
      if (worker.duration.count() <= 0) return until;  // one step each, to learn the durations
      durations.push_back(worker.duration);
    }
    const std::vector<Step> steps = meeting(durations, ahead);
    for (std::size_t i = 0; i < until.size(); ++i) until[i] += steps[i] - 1;
    return until;
  }

  /// Returns a number of steps for each worker, 1 to `most`, such that the difference between the
  /// latest and the earliest end is as small as possible. If several choices have the same
  /// difference, returns the one with the earliest ends. A worker's k-th step ends at k times its
  /// duration. (ZipLine, algorithm 1.) Takes
  /// O(n log n) time, n = workers x most. Requires: durations above 0, below 2^63 ns / most.
  [[nodiscard]] static std::vector<Step> meeting(
      std::span<const std::chrono::nanoseconds> durations, Step most) {
    struct End {
      std::chrono::nanoseconds at;
      std::size_t worker;
    };
    std::vector<End> ends;
    ends.reserve(durations.size() * most);
    for (std::size_t i = 0; i < durations.size(); ++i)
      for (Step k = 1; k <= most; ++k)
        ends.push_back({durations[i] * static_cast<std::int64_t>(k), i});
    std::ranges::sort(ends, [](const End& a, const End& b) {
      return a.at != b.at ? a.at < b.at : a.worker < b.worker;
    });
    // Goes through the ends in their order. `steps` are each worker's ends so far, and `oldest` is
    // the earliest end that is still the last one of its worker.
    std::vector<Step> steps(durations.size());
    std::vector<Step> passed(durations.size());
    std::size_t chosen = 0;  // how many ends there are up to the best one
    auto least = std::chrono::nanoseconds::max();
    std::size_t absent = durations.size();
    std::size_t oldest = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const End& end = ends[i];
      if (++steps[end.worker] == 1) --absent;
      for (; steps[ends[oldest].worker] > passed[ends[oldest].worker] + 1; ++oldest)
        ++passed[ends[oldest].worker];
      if (absent > 0 || end.at - ends[oldest].at >= least) continue;
      least = end.at - ends[oldest].at;
      chosen = i + 1;
    }
    std::ranges::fill(steps, 0);
    for (std::size_t i = 0; i < chosen; ++i) ++steps[ends[i].worker];
    return steps;
  }

  static Ebsp parse(SpecReader& reader) { return {reader.count("ahead", 15, 1, 1000)}; }
  [[nodiscard]] std::string options() const { return "ahead=" + std::to_string(ahead); }

  bool operator==(const Ebsp&) const = default;
};

}  // namespace starling::barrier
