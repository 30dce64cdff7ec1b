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

/// On the loop's thread alone. A job has a place from when it is prepared until it is closed: a job
/// that has ended keeps its model, and its threads.
class Places {
 public:
  struct Place {
    wire::JobSettings settings;
    std::string client;
    core::Time since{};
    /// Threads that compute for it; 0 while it is not prepared.
    std::size_t threads = 0;
  };

  explicit Places(const JobLimits& limits) : limits_(limits) {}

  /// Gives job `id` a place where it has none; an Error where `client` may not have another.
  [[nodiscard]] Result<void> take(wire::JobId id, const wire::JobSettings& settings,
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
    for (const auto& [id, place] : all_) {
      if (place.client != client) continue;
      ++count;
      own += (own.empty() ? "" : ", ") + name_of(place.settings, id);
    }
    if (count < limits_.jobs_per_client) return {};
    return Error{"holds " + counted(count, "job") + " of " + client +
                 ", and takes no more of one client (--jobs-per-client): " + own + "; " + remedy};
  }

  /// An Error where a job other than `id` has this name.
  [[nodiscard]] Result<void> check_name(const std::string& name, wire::JobId id) const {
    for (const auto& [other, place] : all_)
      if (!name.empty() && other != id && text_of(place.settings, "name") == name)
        return Error{"has a job called '" + name + "' already (" + summary_of(place.settings) +
                     "); valid: another --name"};
    return {};
  }

  /// Takes threads for a job that has a place, once their number is known.
  [[nodiscard]] Result<void> take_threads(wire::JobId id, std::size_t threads) {
    const auto place = all_.find(id);
    if (place == all_.end()) return Error{"the job was closed meanwhile"};
    std::size_t all = threads;
    std::size_t own = threads;
    for (const auto& [other, held] : all_) {
      if (other == id) continue;
      all += held.threads;
      if (held.client == place->second.client) own += held.threads;
    }
    if (all > limits_.threads)
      return Error{too_many(threads, all, "all jobs") + std::to_string(limits_.threads) +
                   " (the node's --threads): " + by_client(id)};
    if (own > limits_.threads_per_client)
      return Error{too_many(threads, own, "the jobs of " + place->second.client) +
                   std::to_string(limits_.threads_per_client) +
                   " (the node's --threads-per-client): " + by_client(id)};
    place->second.threads = threads;
    return {};
  }

  /// nullptr where the job has none.
  [[nodiscard]] const Place* find(wire::JobId id) const {
    const auto place = all_.find(id);
    return place == all_.end() ? nullptr : &place->second;
  }
  /// Gives the place of job `from` to job `to`.
  void hand_on(wire::JobId from, wire::JobId to) {
    auto place = all_.extract(from);
    if (place) all_[to] = std::move(place.mapped());
  }
  void give_up(wire::JobId id) { all_.erase(id); }
  [[nodiscard]] const std::map<wire::JobId, Place>& all() const { return all_; }

  /// Jobs that were prepared before `then`, and of which `runs(id)` does not hold.
  template <class Runs>
  [[nodiscard]] std::vector<wire::JobId> unused(Runs runs, core::Time then) const {
    std::vector<wire::JobId> some;
    for (const auto& [id, place] : all_)
      if (place.since < then && !runs(id)) some.push_back(id);
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
  /// Lists how many places and threads each client holds, without those of job `but`.
  [[nodiscard]] std::string by_client(std::optional<wire::JobId> but = std::nullopt) const {
    std::map<std::string, std::pair<std::size_t, std::size_t>> held;
    for (const auto& [id, place] : all_) {
      if (id == but) continue;
      ++held[place.client].first;
      held[place.client].second += place.threads;
    }
    std::string text;
    for (const auto& [client, sum] : held)
      text += (text.empty() ? "" : ", ") + client + " has " + counted(sum.first, "job") + " with " +
              counted(sum.second, "thread");
    return text.empty() ? "nobody has any yet" : text;
  }

  const JobLimits limits_;
  std::map<wire::JobId, Place> all_;
};

}  // namespace starling::actor
