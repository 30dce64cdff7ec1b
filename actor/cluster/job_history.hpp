/// Records of the jobs that a node took part in and that were closed. Internal to the cluster's
/// node.
///
/// Every node of a job keeps a copy, so that the death of one node loses none. Copies are kept in
/// memory, not on disk.
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
  /// Records older than this are deleted.
  static constexpr core::Time retention = std::chrono::hours{24};

  /// Adds a record. Where the job has one already, only the outcome that a client reports is taken
  /// over, once: it replaces the one that the node itself saw.
  void add(wire::JobRecord record, core::Time now) {
    shorten(record);
    const auto known = all_.find(record.job);
    if (known != all_.end()) {
      if (known->second.record.is_from_client || !record.is_from_client) return;
      known->second.record.summary = std::move(record.summary);
      known->second.record.is_from_client = true;
      return;
    }
    all_[record.job] = {std::move(record), now};
    expire(now);
  }

  /// Sets the outcome that a client reports of a job that has a record; no effect for other jobs.
  void set_outcome(wire::JobId job, const wire::JobSummary& summary, core::Time now) {
    if (!all_.contains(job)) return;
    wire::JobRecord reported;
    reported.job = job;
    reported.summary = summary;
    reported.is_from_client = true;
    add(std::move(reported), now);
  }

  /// Deletes old records and, beyond `jobs_max`, the oldest ones.
  void expire(core::Time now) {
    std::erase_if(all_,
                  [&](const auto& kept) { return now > kept.second.recorded_at + retention; });
    while (all_.size() > jobs_max)
      all_.erase(std::ranges::min_element(
          all_, {}, [](const auto& kept) { return kept.second.recorded_at; }));
  }

  /// All records, in the order in which the jobs ended.
  [[nodiscard]] wire::JobRecords records() const {
    wire::JobRecords records;
    for (const auto& [job, kept] : all_) records.jobs.push_back(kept.record);
    std::ranges::sort(records.jobs, {}, &wire::JobRecord::ended_ms);
    return records;
  }

 private:
  struct Kept {
    wire::JobRecord record;
    core::Time recorded_at{};
  };
  static constexpr std::size_t text_max = 500;
  static constexpr std::size_t figures_max = 32;

  /// Shortens texts that clients choose freely.
  static void shorten(wire::JobRecord& record) {
    for (std::string* text :
         {&record.name, &record.description, &record.client, &record.summary.why})
      if (text->size() > text_max) text->resize(text_max);
    auto& figures = record.summary.figures;
    if (figures.size() > figures_max) figures.resize(figures_max);
    for (auto& [name, value] : figures)
      if (name.size() > text_max) name.resize(text_max);
  }

  std::map<wire::JobId, Kept> all_;
};

}  // namespace starling::actor
