/// The jobs that a node has accepted, each with its client and its threads, and the limits for
/// them. Internal to ClusterNode.
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
  /// The number of its compute threads; 0 until the job is prepared.
  std::size_t threads = 0;
};

/// A job has a slot from the time when the node begins to prepare it until it is closed, or until
/// the node discards its preparation because the job does not start here. A job that has ended
/// keeps its slot until it is closed, because it still holds its model and its threads. The Errors
/// do not name the node: callers put a prefix in front, such as "node a1 " or
/// "node at 10.0.0.1:7070: ". Call only on the thread of the node's EventLoop.
class JobSlots {
 public:
  explicit JobSlots(const JobLimits& limits) : limits_(limits) {}

  /// Reserves a slot for job `id`, unless it has one. Returns an Error if the node has no free slot
  /// for `client`.
  [[nodiscard]] Result<void> reserve(wire::JobId id, const wire::JobSettings& settings,
                                     const std::string& client, core::Time now) {
    if (slots_.contains(id)) return {};
    if (auto valid = check_quota(client); !valid) return valid;
    if (auto fits = check_settings(settings); !fits) return fits;
    slots_[id] = {settings, client, now, 0};
    return {};
  }

  /// Returns an Error if the node holds as many jobs as it may, of all clients or of `client`.
  [[nodiscard]] Result<void> check_quota(const std::string& client) const {
    if (slots_.size() >= limits_.jobs)
      return Error{"holds " + std::to_string(slots_.size()) +
                   " jobs, and takes no more (--jobs): " + list_clients() + "; " + remedy};
    std::string own;
    std::size_t count = 0;
    for (const auto& [id, slot] : slots_) {
      if (slot.client != client) continue;
      ++count;
      own += (own.empty() ? "" : ", ") + name_of(slot.settings, id);
    }
    if (count < limits_.jobs_per_client) return {};
    return Error{"holds " + print_count(count, "job") + " of " + client +
                 ", and takes no more of one client (--jobs-per-client): " + own + "; " + remedy};
  }

  /// Returns an Error if a job other than `id` has this name.
  [[nodiscard]] Result<void> check_name(const std::string& name, wire::JobId id) const {
    for (const auto& [other, slot] : slots_)
      if (!name.empty() && other != id && setting_of(slot.settings, "name") == name)
        return Error{"has a job called '" + name + "' already (" + summary_of(slot.settings) +
                     "); try: another --name"};
    return {};
  }

  /// Reserves compute threads for a job that has a slot. Returns an Error if the limits leave too
  /// few.
  [[nodiscard]] Result<void> reserve_threads(wire::JobId id, std::size_t threads) {
    const auto slot = slots_.find(id);
    if (slot == slots_.end()) return Error{"the job was closed meanwhile"};
    std::size_t total_threads = threads;
    std::size_t client_threads = threads;
    for (const auto& [other_id, other] : slots_) {
      if (other_id == id) continue;
      total_threads += other.threads;
      if (other.client == slot->second.client) client_threads += other.threads;
    }
    if (total_threads > limits_.threads)
      return too_many(threads, total_threads, "all jobs", limits_.threads, "--threads", id);
    if (client_threads > limits_.threads_per_client)
      return too_many(threads, client_threads, "the jobs of " + slot->second.client,
                      limits_.threads_per_client, "--threads-per-client", id);
    slot->second.threads = threads;
    return {};
  }

  /// Returns the job's slot, or nullptr if it has none.
  [[nodiscard]] const JobSlot* find(wire::JobId id) const {
    const auto slot = slots_.find(id);
    return slot == slots_.end() ? nullptr : &slot->second;
  }
  /// Moves the slot of job `from` to id `to`, because the job is started again with a new id.
  void change_id(wire::JobId from, wire::JobId to) {
    auto slot = slots_.extract(from);
    if (slot) slots_[to] = std::move(slot.mapped());
  }
  void release(wire::JobId id) { slots_.erase(id); }
  [[nodiscard]] const std::map<wire::JobId, JobSlot>& slots() const { return slots_; }

  /// Returns the jobs whose slots were reserved before `time`, and for which `is_running(id)` is
  /// false.
  template <class IsRunning>
  [[nodiscard]] std::vector<wire::JobId> unused(IsRunning is_running, core::Time time) const {
    std::vector<wire::JobId> unused;
    for (const auto& [id, slot] : slots_)
      if (slot.reserved_at < time && !is_running(id)) unused.push_back(id);
    return unused;
  }

 private:
  static constexpr const char* remedy =
      "try: submit again once a job has ended and its model was saved, or `stop --drop` for one "
      "that nobody needs";

  /// The most bytes of the settings of all jobs together. A node sends them all in its NodeStatus,
  /// which must fit into one message.
  static constexpr std::size_t settings_bytes_max = std::size_t{4} << 20U;

  /// Returns an Error if the settings of all jobs, with those of a further one, are too long.
  [[nodiscard]] Result<void> check_settings(const wire::JobSettings& further) const {
    std::size_t bytes = wire_bytes(further);
    for (const auto& [id, slot] : slots_) bytes += wire_bytes(slot.settings);
    if (bytes <= settings_bytes_max) return {};
    return Error{"would hold jobs whose settings take " + std::to_string(bytes) +
                 " bytes together; valid: up to " + std::to_string(settings_bytes_max) + "; " +
                 remedy};
  }
  /// The bytes that settings take in a message: each text has a length of four bytes before it.
  static std::size_t wire_bytes(const wire::JobSettings& settings) {
    std::size_t bytes = 0;
    for (const auto& [key, text] : settings) bytes += 8 + key.size() + text.size();
    return bytes;
  }

  /// Returns the Error for job `id`, whose `threads` compute threads are too many: those of all
  /// jobs in `whose`, such as "the jobs of alice", would then be `sum`, and the node's option
  /// `flag` allows only `limit`.
  [[nodiscard]] Error too_many(std::size_t threads, std::size_t sum, const std::string& whose,
                               std::size_t limit, const std::string& flag, wire::JobId id) const {
    return Error{"the job's " + std::to_string(threads) + " compute threads would bring those of " +
                 whose + " to " + std::to_string(sum) + "; valid: up to " + std::to_string(limit) +
                 " (the node's " + flag + "): " + list_clients(id)};
  }
  /// Lists how many jobs and threads each client has, without those of job `excluded`.
  [[nodiscard]] std::string list_clients(std::optional<wire::JobId> excluded = std::nullopt) const {
    std::map<std::string, std::pair<std::size_t, std::size_t>> jobs_and_threads;
    for (const auto& [id, slot] : slots_) {
      if (id == excluded) continue;
      ++jobs_and_threads[slot.client].first;
      jobs_and_threads[slot.client].second += slot.threads;
    }
    std::string text;
    for (const auto& [client, counts] : jobs_and_threads)
      text += (text.empty() ? "" : ", ") + client + " has " + print_count(counts.first, "job") +
              " with " + print_count(counts.second, "thread");
    return text.empty() ? "no client has another job" : text;
  }

  const JobLimits limits_;
  std::map<wire::JobId, JobSlot> slots_;
};

}  // namespace starling::actor
