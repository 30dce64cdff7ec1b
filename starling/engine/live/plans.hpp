/// Jobs made from their settings, with their data read. Internal to the cluster's node.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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
    std::map<wire::JobId, std::jthread> ending;
    {
      const std::lock_guard lock{mutex_};
      closing_ = true;
      ending.swap(threads_);
    }
  }

  /// Calls `then` with what the job's settings make. Data is read once, on a thread of its own.
  void prepare(wire::JobId id, const wire::JobSettings& settings, OnPrepared then) {
    if (const auto plan = find(id)) return then(plan);
    auto& waiting = preparing_[id];
    waiting.push_back(std::move(then));
    if (waiting.size() > 1) return;
    const std::lock_guard lock{mutex_};
    if (closing_) return;
    // What failed may be tried again: the thread that has said so is joined here.
    threads_[id] = std::jthread{[this, id, settings] {
      auto made = guarded([&] { return make_(settings); });
      loop_.post([this, id, made = std::move(made)] { take(id, made); });
    }};
  }

  /// nullptr where it is not prepared.
  [[nodiscard]] std::shared_ptr<const JobPlan> find(wire::JobId id) const {
    const auto plan = plans_.find(id);
    return plan == plans_.end() ? nullptr : plan->second;
  }

  /// What is being read is dropped when it comes.
  void forget(wire::JobId id) {
    plans_.erase(id);
    if (preparing_.erase(id) > 0) return;
    const std::lock_guard lock{mutex_};
    threads_.erase(id);
  }

 private:
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

  std::mutex mutex_;
  bool closing_ = false;
  std::map<wire::JobId, std::jthread> threads_;
};

}  // namespace starling::live
