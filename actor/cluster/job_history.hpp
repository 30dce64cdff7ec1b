/// The jobs that a node took part in and that have ended. Internal to the cluster's node.
///
/// The history is kept in memory alone: every node of a job keeps it, so that a node's death loses
/// nothing that another node has not, and no node needs a disk.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "starling/actor/wire/control.hpp"
#include "starling/engine/core/ids.hpp"

namespace starling::actor {

/// On the loop's thread alone.
class JobHistory {
 public:
  static constexpr std::size_t jobs_max = 200;
  static constexpr core::Time kept_for = std::chrono::hours{24};

  /// Adds a record. A follower's summary of a job replaces what the node itself saw; nothing else
  /// does.
  void add(wire::JobRecord record, core::Time now) {
    shorten(record);
    const auto known = all_.find(record.job);
    if (known != all_.end()) {
      if (known->second.record.is_told || !record.is_told) return;
      known->second.record.summary = std::move(record.summary);
      known->second.record.is_told = true;
      return;
    }
    all_[record.job] = {std::move(record), now};
    forget(now);
  }

  /// Adds a follower's summary of a job that is known already.
  void end(wire::JobId job, const wire::JobSummary& summary, core::Time now) {
    if (!all_.contains(job)) return;
    wire::JobRecord told;
    told.job = job;
    told.summary = summary;
    told.is_told = true;
    add(std::move(told), now);
  }

  void forget(core::Time now) {
    std::erase_if(all_, [&](const auto& kept) { return now > kept.second.since + kept_for; });
    while (all_.size() > jobs_max)
      all_.erase(
          std::ranges::min_element(all_, {}, [](const auto& kept) { return kept.second.since; }));
  }

  /// All records, in the order in which the jobs ended.
  [[nodiscard]] wire::JobRecords all() const {
    wire::JobRecords some;
    for (const auto& [job, kept] : all_) some.jobs.push_back(kept.record);
    std::ranges::sort(some.jobs, {}, &wire::JobRecord::ended_ms);
    return some;
  }

 private:
  struct Kept {
    wire::JobRecord record;
    core::Time since{};
  };
  static constexpr std::size_t text_max = 500;
  static constexpr std::size_t figures_max = 32;

  /// Shortens texts that clients choose freely.
  static void shorten(wire::JobRecord& record) {
    for (std::string* text : {&record.name, &record.what, &record.client, &record.summary.why})
      if (text->size() > text_max) text->resize(text_max);
    auto& figures = record.summary.figures;
    if (figures.size() > figures_max) figures.resize(figures_max);
    for (auto& [name, value] : figures)
      if (name.size() > text_max) name.resize(text_max);
  }

  std::map<wire::JobId, Kept> all_;
};

}  // namespace starling::actor
