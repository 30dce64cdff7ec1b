/// The jobs that a node has accepted: the client of each, and how many each client may have.
/// Internal to the cluster's node.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/actor/cluster/job_name.hpp"
#include "starling/actor/wire/control.hpp"
#include "starling/base/result.hpp"
#include "starling/base/text.hpp"

namespace starling::actor {

/// The resources that a node has reserved for one job.
struct JobSlot {
  wire::JobSettings settings;
  std::string client;
  core::Time reserved_at{};
  /// Threads that compute for it; 0 while it is not prepared.
  std::size_t threads = 0;
};

/// On the loop's thread alone. A job has a slot from when it is prepared until it is closed: a job
/// that has ended keeps its model, and its threads.
class JobSlots {
 public:
  explicit JobSlots(const JobLimits& limits) : limits_(limits) {}

  /// Reserves a slot for job `id` where it has none; an Error where `client` may not have another.
  [[nodiscard]] Result<void> reserve(wire::JobId id, const wire::JobSettings& settings,
                                     const std::string& client, core::Time now) {
    if (all_.contains(id)) return {};
    if (auto free = check(client); !free) return free;
    all_[id] = {settings, client, now, 0};
    return {};
  }

  /// An Error where `client` may not have another job.
  [[nodiscard]] Result<void> check(const std::string& client) const {
    if (all_.size() >= limits_.jobs)
      return Error{"holds " + std::to_string(all_.size()) +
                   " jobs, and takes no more (--jobs): " + by_client() + "; " + remedy};
    std::string own;
    std::size_t count = 0;
    for (const auto& [id, slot] : all_) {
      if (slot.client != client) continue;
      ++count;
      own += (own.empty() ? "" : ", ") + name_of(slot.settings, id);
    }
    if (count < limits_.jobs_per_client) return {};
    return Error{"holds " + counted(count, "job") + " of " + client +
                 ", and takes no more of one client (--jobs-per-client): " + own + "; " + remedy};
  }

  /// An Error where a job other than `id` has this name.
  [[nodiscard]] Result<void> check_name(const std::string& name, wire::JobId id) const {
    for (const auto& [other, slot] : all_)
      if (!name.empty() && other != id && text_of(slot.settings, "name") == name)
        return Error{"has a job called '" + name + "' already (" + summary_of(slot.settings) +
                     "); valid: another --name"};
    return {};
  }

  /// Reserves threads for a job that has a slot, once their number is known.
  [[nodiscard]] Result<void> reserve_threads(wire::JobId id, std::size_t threads) {
    const auto slot = all_.find(id);
    if (slot == all_.end()) return Error{"the job was closed meanwhile"};
    std::size_t all = threads;
    std::size_t own = threads;
    for (const auto& [other, held] : all_) {
      if (other == id) continue;
      all += held.threads;
      if (held.client == slot->second.client) own += held.threads;
    }
    if (all > limits_.threads)
      return Error{too_many(threads, all, "all jobs") + std::to_string(limits_.threads) +
                   " (the node's --threads): " + by_client(id)};
    if (own > limits_.threads_per_client)
      return Error{too_many(threads, own, "the jobs of " + slot->second.client) +
                   std::to_string(limits_.threads_per_client) +
                   " (the node's --threads-per-client): " + by_client(id)};
    slot->second.threads = threads;
    return {};
  }

  /// nullptr where the job has none.
  [[nodiscard]] const JobSlot* find(wire::JobId id) const {
    const auto slot = all_.find(id);
    return slot == all_.end() ? nullptr : &slot->second;
  }
  /// Gives the slot of job `from` to job `to`, which is the same job under a new number.
  void rename_job(wire::JobId from, wire::JobId to) {
    auto slot = all_.extract(from);
    if (slot) all_[to] = std::move(slot.mapped());
  }
  void release(wire::JobId id) { all_.erase(id); }
  [[nodiscard]] const std::map<wire::JobId, JobSlot>& all() const { return all_; }

  /// Jobs whose slots were reserved before `then`, and for which `runs(id)` is false.
  template <class Runs>
  [[nodiscard]] std::vector<wire::JobId> unused(Runs runs, core::Time then) const {
    std::vector<wire::JobId> some;
    for (const auto& [id, slot] : all_)
      if (slot.reserved_at < then && !runs(id)) some.push_back(id);
    return some;
  }

 private:
  static constexpr const char* remedy =
      "valid: to try again once a job has ended and its model was saved, or `stop --drop` for one "
      "that nobody needs";

  static std::string too_many(std::size_t threads, std::size_t sum, const std::string& whose) {
    return "its " + std::to_string(threads) + " compute threads would make " + std::to_string(sum) +
           " of " + whose + "; valid: up to ";
  }
  /// Lists how many slots and threads each client holds, without those of job `excluded`.
  [[nodiscard]] std::string by_client(std::optional<wire::JobId> excluded = std::nullopt) const {
    std::map<std::string, std::pair<std::size_t, std::size_t>> held;
    for (const auto& [id, slot] : all_) {
      if (id == excluded) continue;
      ++held[slot.client].first;
      held[slot.client].second += slot.threads;
    }
    std::string text;
    for (const auto& [client, sum] : held)
      text += (text.empty() ? "" : ", ") + client + " has " + counted(sum.first, "job") + " with " +
              counted(sum.second, "thread");
    return text.empty() ? "nobody has any yet" : text;
  }

  const JobLimits limits_;
  std::map<wire::JobId, JobSlot> all_;
};

}  // namespace starling::actor
