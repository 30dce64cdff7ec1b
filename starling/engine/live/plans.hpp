/// Jobs made from their settings, with their data read. Internal to the cluster's node.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/engine/live/cluster_node.hpp"
#include "starling/engine/live/event_loop.hpp"

namespace starling::live {

/// What `make` gives; what it throws as an Error.
template <class Make>
auto guarded(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& fault) {
    return Error{fault.what()};
  }
}

/// On the loop's thread alone, unless something else is said.
class Plans {
 public:
  using OnPrepared = std::function<void(const Result<std::shared_ptr<const JobPlan>>&)>;

  Plans(EventLoop& loop, PlanMaker make) : loop_(loop), make_(std::move(make)) {}

  /// Any thread but the loop's, and before the loop ends: waits until nothing is made any more.
  void close() {
    std::map<wire::JobId, Reader> ending;
    {
      const std::lock_guard lock{mutex_};
      closing_ = true;
      ending.swap(readers_);
    }
  }

  /// Calls `then` with what the job's settings make. Data is read once, on a thread of its own.
  void prepare(wire::JobId id, const wire::JobSettings& settings, OnPrepared then) {
    if (const auto plan = find(id)) return then(plan);
    std::size_t bytes = 0;
    for (const auto& [key, text] : settings) bytes += key.size() + text.size();
    if (bytes > settings_bytes_max)
      return then(Error{"its settings take " + std::to_string(bytes) + " bytes; valid: up to " +
                        std::to_string(settings_bytes_max)});
    if (is_busy() && !is_reading(id))
      return then(
          Error{std::to_string(readers_max) +
                " jobs are being prepared; valid: to try again when one of them has begun"});
    auto& waiting = preparing_[id];
    waiting.push_back(std::move(then));
    if (waiting.size() > 1) return;
    const auto begun = guarded([&] { return begin(id, settings); });
    if (!begun) take(id, begun.error());
  }

  /// Each job whose data is being read may fill much memory, whether or not it was forgotten since.
  [[nodiscard]] bool is_busy() const {
    const std::lock_guard lock{mutex_};
    return std::ranges::count_if(readers_, [](const auto& reader) {
             return !reader.second.has_ended;
           }) >= readers_max;
  }
  /// Whether it is prepared, or is being prepared.
  [[nodiscard]] bool knows(wire::JobId id) const {
    return plans_.contains(id) || preparing_.contains(id);
  }
  /// nullptr where it is not prepared.
  [[nodiscard]] std::shared_ptr<const JobPlan> find(wire::JobId id) const {
    const auto plan = plans_.find(id);
    return plan == plans_.end() ? nullptr : plan->second;
  }

  /// What was made for job `from` is job `to`'s from now on.
  void hand_on(wire::JobId from, wire::JobId to) {
    const auto plan = plans_.extract(from);
    if (plan) plans_[to] = plan.mapped();
  }

  /// What is being read is dropped when it comes.
  void forget(wire::JobId id) {
    plans_.erase(id);
    preparing_.erase(id);
  }

 private:
  /// All nodes say them whenever they are asked what they run.
  static constexpr std::size_t settings_bytes_max = std::size_t{64} << 10U;
  static constexpr std::ptrdiff_t readers_max = 4;

  struct Reader {
    /// It has said what it made: to join it takes no time.
    bool has_ended = false;
    std::jthread thread{};
  };

  [[nodiscard]] bool is_reading(wire::JobId id) const {
    const std::lock_guard lock{mutex_};
    return readers_.contains(id);
  }

  Result<void> begin(wire::JobId id, const wire::JobSettings& settings) {
    const std::lock_guard lock{mutex_};
    std::erase_if(readers_, [](const auto& reader) { return reader.second.has_ended; });
    // Who reads for a job that was forgotten meanwhile reads for whoever wants it now.
    if (closing_ || readers_.contains(id)) return {};
    Reader reader;
    reader.thread = std::jthread{[this, id, settings] {
      auto made = guarded([&] { return make_(settings); });
      loop_.post([this, id, made = std::move(made)] {
        {
          const std::lock_guard at_end{mutex_};
          if (const auto ended = readers_.find(id); ended != readers_.end())
            ended->second.has_ended = true;
        }
        take(id, made);
      });
    }};
    readers_.emplace(id, std::move(reader));
    return {};
  }

  void take(wire::JobId id, const Result<std::shared_ptr<const JobPlan>>& made) {
    const auto waiting = preparing_.extract(id);
    if (!waiting) return;
    if (made) plans_[id] = *made;
    for (const auto& one : waiting.mapped()) one(made);
  }

  EventLoop& loop_;
  const PlanMaker make_;
  std::map<wire::JobId, std::shared_ptr<const JobPlan>> plans_;
  std::map<wire::JobId, std::vector<OnPrepared>> preparing_;

  mutable std::mutex mutex_;
  bool closing_ = false;
  std::map<wire::JobId, Reader> readers_;
};

}  // namespace starling::live
