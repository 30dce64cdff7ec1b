/// Evaluates models that clients send to a node, because the node has the data. Internal to
/// ClusterNode.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/actor/cluster/event_loop.hpp"
#include "starling/actor/cluster/prepared_jobs.hpp"
#include "starling/actor/thread_priority.hpp"
#include "starling/actor/wire/control.hpp"
#include "starling/base/catch_errors.hpp"
#include "starling/base/exception_text.hpp"

namespace starling::actor {

/// Call only on the loop's thread, unless a comment says otherwise. A model arrives in several
/// requests; then a thread of its own evaluates it. The metrics are kept until the client has sent
/// other models, or has sent no request for `retention`.
class Evaluations {
 public:
  using OnReply = std::function<void(wire::ReplyBody)>;

  /// The most models of one job that are kept.
  static constexpr std::size_t models_per_job_max = 2;
  /// The most models that are evaluated at the same time, including those of closed jobs whose code
  /// hangs.
  static constexpr std::size_t computing_max = 32;
  static constexpr std::chrono::seconds retention{60};
  /// How long a request waits for the metrics before the reply says that they are not known yet.
  static constexpr std::chrono::seconds reply_delay_max{1};

  explicit Evaluations(EventLoop& loop) : loop_(loop), shared_(std::make_shared<Shared>(&loop)) {}

  /// Call it from any thread but the loop's, before the loop ends. Waits up to `end_timeout` for
  /// the evaluations that are running, and returns how many have not ended. They use nothing of
  /// this object any more, but still run code of the program.
  std::size_t close() {
    std::unique_lock lock{shared_->mutex};
    shared_->loop = nullptr;
    shared_->ended.wait_for(lock, end_timeout, [this] { return shared_->computing == 0; });
    return shared_->computing;
  }

  /// Takes the ranges of `request`, and evaluates the model once all ranges have arrived. Calls
  /// `on_reply` once: with wire::ModelMetrics, whose `is_done` is false if ranges are missing or
  /// the metrics are not known within `reply_delay_max`, or with wire::Refused if a range does not
  /// fit the job's model, if the job's code fails, or if too many models are evaluated. `job` is
  /// the job of the request.
  void answer(const wire::EvaluateModel& request, const std::shared_ptr<const PreparedJob>& job,
              OnReply on_reply) {
    const Id id{request.job, request.evaluation};
    if (!evaluations_.contains(id) && !make_capacity(request.job))
      return on_reply(wire::Refused{"this node still evaluates other models of the job"});
    Evaluation& evaluation = evaluations_[id];
    evaluation.used_at = EventLoop::Clock::now();
    if (!evaluation.job) {
      evaluation.job = job;
      evaluation.model = request;
      evaluation.model.states.clear();
    }
    if (auto taken = take(evaluation, request); !taken) {
      if (!evaluation.is_computing) evaluations_.erase(id);
      return on_reply(wire::Refused{taken.error().message});
    }
    if (evaluation.result) return on_reply(*evaluation.result);
    if (evaluation.next < job->ranges())
      return on_reply(wire::ModelMetrics{.next = evaluation.next});
    if (!evaluation.is_computing && !start(id, evaluation)) {
      evaluations_.erase(id);
      return on_reply(wire::Refused{"this node cannot evaluate more models now"});
    }
    evaluation.reply_later(std::move(on_reply));
    loop_.post_after(reply_delay_max, [this, id, number = evaluation.waiting_number] {
      const auto found = evaluations_.find(id);
      if (found != evaluations_.end() && found->second.waiting_number == number)
        found->second.reply_now();
    });
  }

  /// Discards the models of a job that is closed. Refuses the requests that wait for their metrics.
  void forget(wire::JobId job) {
    for (auto& [id, evaluation] : evaluations_)
      if (id.first == job)
        if (const OnReply reply = std::exchange(evaluation.waiting, nullptr))
          reply(wire::Refused{"the job was closed"});
    std::erase_if(evaluations_, [job](const auto& e) { return e.first.first == job; });
  }
  /// Discards the models for which no request has come for `retention`.
  void expire() {
    const auto oldest = EventLoop::Clock::now() - retention;
    std::erase_if(evaluations_, [oldest](const auto& e) {
      return !e.second.is_computing && e.second.used_at < oldest;
    });
  }

 private:
  static constexpr std::chrono::milliseconds end_timeout{500};

  /// The job and the number that its client has drawn.
  using Id = std::pair<wire::JobId, std::uint64_t>;

  struct Evaluation {
    std::shared_ptr<const PreparedJob> job = nullptr;
    /// The request with all ranges that have arrived; without ranges once the evaluation has begun.
    wire::EvaluateModel model = {};
    /// The first range that has not arrived.
    core::RangeId next = 0;
    bool is_computing = false;
    std::optional<wire::ReplyBody> result = std::nullopt;
    /// The callback of the last request, if it waits for the result, and how many requests have
    /// waited so far.
    OnReply waiting = nullptr;
    std::uint64_t waiting_number = 0;
    EventLoop::Clock::time_point used_at{};

    /// Replies to the request that waits, if there is one: with the result if it is known.
    void reply_now() {
      if (const OnReply reply = std::exchange(waiting, nullptr))
        reply(result.value_or(wire::ModelMetrics{.next = next}));
    }
    void reply_later(OnReply on_reply) {
      reply_now();
      waiting = std::move(on_reply);
      ++waiting_number;
    }
  };
  /// The state that the computing threads share with Evaluations. A thread that hangs keeps it
  /// alive after Evaluations is destroyed.
  struct Shared {
    explicit Shared(EventLoop* event_loop) : loop(event_loop) {}
    std::mutex mutex;
    std::condition_variable ended;
    /// Null once close() has begun.
    EventLoop* loop;
    /// The number of threads that evaluate a model.
    std::size_t computing = 0;
  };

  /// If `models_per_job_max` models of `job` are kept, discards the least recently used one that is
  /// not being evaluated. Returns false if all of them are being evaluated now.
  bool make_capacity(wire::JobId job) {
    std::size_t count = 0;
    auto oldest = evaluations_.end();
    for (auto at = evaluations_.lower_bound({job, 0});
         at != evaluations_.end() && at->first.first == job; ++at) {
      ++count;
      if (at->second.is_computing) continue;
      if (oldest == evaluations_.end() || at->second.used_at < oldest->second.used_at) oldest = at;
    }
    if (count < models_per_job_max) return true;
    if (oldest == evaluations_.end()) return false;
    evaluations_.erase(oldest);
    return true;
  }

  /// Adds the ranges of `request` that follow those that have arrived. Ranges may come again, and
  /// ranges after a gap are sent again.
  static Result<void> take(Evaluation& evaluation, const wire::EvaluateModel& request) {
    for (const core::RangeState& state : request.states) {
      if (state.range != evaluation.next) continue;
      if (auto valid = evaluation.job->check_range(state); !valid) return valid;
      evaluation.model.states.push_back(state);
      ++evaluation.next;
    }
    return {};
  }

  /// Computes the metrics on a new thread. Returns false if `computing_max` threads compute now, or
  /// if the system cannot start a thread.
  bool start(const Id& id, Evaluation& evaluation) {
    const std::lock_guard lock{shared_->mutex};
    if (shared_->loop == nullptr || shared_->computing >= computing_max) return false;
    try {
      std::thread{[this, id, shared = shared_, job = evaluation.job,
                   model = std::move(evaluation.model)]() mutable {
        compute(this, id, *shared, std::move(job), std::move(model));
      }}.detach();
    } catch (const std::exception&) {
      return false;
    }
    evaluation.is_computing = true;
    ++shared_->computing;
    return true;
  }

  /// Runs on a thread of its own. Uses `evaluations` only on the loop and only if `shared.loop` is
  /// not null.
  static void compute(Evaluations* evaluations, const Id& id, Shared& shared,
                      std::shared_ptr<const PreparedJob> job, wire::EvaluateModel model) {
    set_priority(ThreadPriority::computing);
    auto metrics = catch_errors([&] { return job->evaluate(model); });
    // The text may come from a user's code and goes to the client, so its length is limited.
    if (!metrics) metrics = Error{metrics.error().message.substr(0, exception_text_max)};
    job.reset();
    model = {};
    const std::lock_guard lock{shared.mutex};
    --shared.computing;
    if (shared.loop != nullptr)
      shared.loop->post(
          [evaluations, id, metrics = std::move(metrics)] { evaluations->finish(id, metrics); });
    shared.ended.notify_all();
  }

  void finish(const Id& id, const Result<wire::ModelMetrics>& metrics) {
    const auto found = evaluations_.find(id);
    if (found == evaluations_.end()) return;
    Evaluation& evaluation = found->second;
    evaluation.is_computing = false;
    evaluation.used_at = EventLoop::Clock::now();
    if (metrics) {
      wire::ModelMetrics result = *metrics;
      result.next = evaluation.next;
      result.is_done = true;
      evaluation.result = std::move(result);
    } else {
      evaluation.result = wire::Refused{metrics.error().message};
    }
    evaluation.reply_now();
  }

  EventLoop& loop_;
  std::map<Id, Evaluation> evaluations_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace starling::actor
