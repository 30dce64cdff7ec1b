/// The records of the closed jobs that a node took part in. Internal to ClusterNode.
///
/// Every node of a job keeps a record of it, in memory and not on disk, so that no record is lost
/// when one node dies.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "starling/actor/wire/control.hpp"
#include "starling/engine/core/ids.hpp"

namespace starling::actor {

/// Call only on the loop's thread.
class JobHistory {
 public:
  static constexpr std::size_t jobs_max = 200;
  /// Records older than this are deleted.
  static constexpr core::Time retention = std::chrono::hours{24};

  /// Adds a record. If the job has a record already, the old one stays, except that an outcome
  /// which a client reports replaces one that this node found out by itself.
  void add(wire::JobRecord record, core::Time now) {
    limit_sizes(record);
    const auto existing = entries_.find(record.job);
    if (existing != entries_.end()) {
      if (existing->second.record.is_reported_by_client || !record.is_reported_by_client) return;
      existing->second.record.summary = std::move(record.summary);
      existing->second.record.is_reported_by_client = true;
      return;
    }
    entries_[record.job] = {std::move(record), now};
    expire(now);
  }

  /// Sets the outcome that a client reports for a job. No effect if the job has no record.
  void set_outcome(wire::JobId job, const wire::JobSummary& summary, core::Time now) {
    if (!entries_.contains(job)) return;
    wire::JobRecord reported;
    reported.job = job;
    reported.summary = summary;
    reported.is_reported_by_client = true;
    add(std::move(reported), now);
  }

  /// Deletes records that are older than `retention`, and the oldest ones beyond `jobs_max`.
  void expire(core::Time now) {
    std::erase_if(entries_,
                  [&](const auto& entry) { return now > entry.second.recorded_at + retention; });
    while (entries_.size() > jobs_max)
      entries_.erase(std::ranges::min_element(
          entries_, {}, [](const auto& entry) { return entry.second.recorded_at; }));
  }

  /// Returns all records, in the order in which the jobs ended.
  [[nodiscard]] wire::JobRecords records() const {
    wire::JobRecords records;
    for (const auto& [job, entry] : entries_) records.jobs.push_back(entry.record);
    std::ranges::sort(records.jobs, {}, &wire::JobRecord::ended_at_ms);
    return records;
  }

 private:
  struct Entry {
    wire::JobRecord record;
    core::Time recorded_at{};
  };
  static constexpr std::size_t text_max = 500;
  static constexpr std::size_t figures_max = 32;
  static constexpr std::size_t workers_max = 65'536;

  /// Limits the size of the texts and figures that clients choose freely.
  static void limit_sizes(wire::JobRecord& record) {
    for (std::string* text :
         {&record.name, &record.description, &record.client, &record.summary.why})
      if (text->size() > text_max) text->resize(text_max);
    auto& figures = record.summary.figures;
    if (figures.size() > figures_max) figures.resize(figures_max);
    if (record.workers.size() > workers_max) record.workers.resize(workers_max);
    for (auto& [name, value] : figures)
      if (name.size() > text_max) name.resize(text_max);
  }

  std::map<wire::JobId, Entry> entries_;
};

}  // namespace starling::actor
