/// Prepares jobs: makes each from its settings, and reads its data. Internal to ClusterNode.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/actor/cluster/event_loop.hpp"
#include "starling/actor/thread_priority.hpp"
#include "starling/base/catch_errors.hpp"
#include "starling/base/exception_text.hpp"
#include "starling/base/input.hpp"

namespace starling::actor {

/// Call only on the loop's thread, unless a comment says otherwise. Each job has a *reader*: a
/// thread of its own, on which it is prepared.
class PreparedJobs {
 public:
  using OnPrepared = std::function<void(const Result<std::shared_ptr<const PreparedJob>>&)>;

  PreparedJobs(EventLoop& loop, JobPreparer prepare_job)
      : loop_(loop),
        prepare_job_(std::move(prepare_job)),
        readers_(std::make_shared<Readers>(&loop)) {}

  /// Call it from any thread but the loop's, before the loop ends. Asks the readers to end, and
  /// waits for them up to `reader_end_timeout`, because a read that hangs in a file system cannot
  /// be ended. Returns how many readers did not end. They use nothing of this object any more, but
  /// still run code of the program.
  std::size_t close() {
    std::unique_lock lock{readers_->mutex};
    readers_->loop = nullptr;
    for (auto& [id, reader] : readers_->readers) reader.thread.request_stop();
    readers_->ended.wait_for(lock, reader_end_timeout, [this] {
      return std::ranges::all_of(readers_->readers,
                                 [](const auto& r) { return r.second.has_ended; });
    });
    std::size_t still_running = 0;
    for (auto& [id, reader] : readers_->readers)
      if (!reader.has_ended) {
        reader.thread.detach();
        ++still_running;
      }
    // Joins the readers that have ended. They do not take the lock again, which is held here.
    readers_->readers.clear();
    return still_running;
  }

  /// Refuses settings that are too long or too many: every node sends the settings of its jobs with
  /// its status, and each setting takes memory even if its texts are empty.
  [[nodiscard]] static Result<void> check_settings(const wire::JobSettings& settings) {
    if (settings.size() > settings_max)
      return Error{"the job has " + std::to_string(settings.size()) + " settings; valid: up to " +
                   std::to_string(settings_max)};
    std::size_t bytes = 0;
    for (const auto& [key, text] : settings) bytes += key.size() + text.size();
    if (bytes <= settings_bytes_max) return {};
    return Error{"the job's settings take " + std::to_string(bytes) + " bytes; valid: up to " +
                 std::to_string(settings_bytes_max)};
  }

  /// Prepares the job on a reader; while too many readers run, the job first waits for one of them
  /// to end. Calls `on_prepared` with the prepared job, at once if the job is prepared already, or
  /// with an Error, for example if this machine does not have the memory for its part of a job on
  /// `nodes` nodes. Does not call `on_prepared` if forget() is called before. `waiter` is the
  /// address that the result goes to, empty for this node itself. A second call for the same job
  /// and waiter replaces the callback of the first one, and starts no second reader. The caller
  /// bounds the number of jobs.
  void prepare(wire::JobId id, const wire::JobSettings& settings, std::size_t nodes,
               const std::string& waiter, OnPrepared on_prepared) {
    if (const auto job = find(id)) return on_prepared(job);
    if (auto valid = check_settings(settings); !valid) return on_prepared(std::move(valid).error());
    const bool has_reader = is_reading(id);
    if (has_reader && !preparing_.contains(id))
      return on_prepared(
          Error{"the data read for the job are being discarded; valid: to submit it again"});
    const bool is_first = !preparing_.contains(id);
    preparing_[id][waiter] = std::move(on_prepared);
    if (!is_first) return;
    waiting_.push_back({id, settings, nodes});
    start_waiting_jobs();
  }

  /// True if no more readers may start now. A reader may fill much memory, even if its job was
  /// forgotten in the meantime, so at most `readers_max` may run. A reader that still runs after
  /// its time limit reads no more data: it hangs, or makes initial values. At most `hanging_max`
  /// such readers may run in addition.
  [[nodiscard]] bool is_busy() const {
    const std::lock_guard lock{readers_->mutex};
    const auto hanging_before = EventLoop::Clock::now() - read_timeout - hang_check_delay;
    std::ptrdiff_t reading = 0;
    std::ptrdiff_t hanging = 0;
    for (const auto& [id, reader] : readers_->readers)
      if (!reader.has_ended) ++(reader.started_at < hanging_before ? hanging : reading);
    return reading >= readers_max || hanging >= hanging_max;
  }
  /// True if the job is prepared, or is being prepared.
  [[nodiscard]] bool contains(wire::JobId id) const {
    return prepared_.contains(id) || preparing_.contains(id);
  }
  /// Returns the prepared job, or nullptr if it is not prepared.
  [[nodiscard]] std::shared_ptr<const PreparedJob> find(wire::JobId id) const {
    const auto job = prepared_.find(id);
    return job == prepared_.end() ? nullptr : job->second;
  }

  /// Moves the prepared job `from` to id `to`, because it is started again with a new id.
  void change_id(wire::JobId from, wire::JobId to) {
    const auto job = prepared_.extract(from);
    if (job) prepared_[to] = job.mapped();
  }

  /// Asks the job's reader to end, and discards the prepared job.
  void forget(wire::JobId id) {
    prepared_.erase(id);
    preparing_.erase(id);
    std::erase_if(waiting_, [id](const WaitingJob& job) { return job.id == id; });
    const std::lock_guard lock{readers_->mutex};
    if (const auto reader = readers_->readers.find(id); reader != readers_->readers.end())
      reader->second.thread.request_stop();
  }

 private:
  /// A job that has no reader yet.
  struct WaitingJob {
    wire::JobId id;
    wire::JobSettings settings;
    std::size_t nodes;
  };

  /// The most settings of a job, and the most bytes of them.
  static constexpr std::size_t settings_max = 16'384;
  static constexpr std::size_t settings_bytes_max = std::size_t{64} << 10U;
  static constexpr std::ptrdiff_t readers_max = 4;
  static constexpr std::ptrdiff_t hanging_max = 32;
  /// The longest time for reading data. The node to which the job was submitted waits as long for
  /// the reply to PrepareJob (Submissions::prepare_timeout).
  static constexpr std::chrono::minutes read_timeout{5};
  /// A reader that still runs this long after `read_timeout` counts as hanging.
  static constexpr std::chrono::seconds hang_check_delay{5};
  /// How long close() waits for the readers. A reader that reads data checks at shorter intervals
  /// whether it must end; a reader that hangs, or that makes initial values, does not.
  static constexpr std::chrono::milliseconds reader_end_timeout{500};

  struct Reader {
    EventLoop::Clock::time_point started_at = EventLoop::Clock::now();
    /// True once the reader has posted its result: its thread then returns without further waiting.
    bool has_ended = false;
    std::jthread thread{};
  };
  /// The state that readers share with PreparedJobs. A reader that hangs keeps this state alive
  /// after PreparedJobs is destroyed.
  struct Readers {
    explicit Readers(EventLoop* event_loop) : loop(event_loop) {}
    std::mutex mutex;
    std::condition_variable ended;
    /// Null once close() has begun.
    EventLoop* loop;
    std::map<wire::JobId, Reader> readers;
  };

  [[nodiscard]] bool is_reading(wire::JobId id) const {
    const std::lock_guard lock{readers_->mutex};
    const auto reader = readers_->readers.find(id);
    return reader != readers_->readers.end() && !reader->second.has_ended;
  }

  /// Starts readers for waiting jobs, as many as may run.
  void start_waiting_jobs() {
    while (!waiting_.empty() && !is_busy()) {
      const WaitingJob job = std::move(waiting_.front());
      waiting_.pop_front();
      const auto started =
          catch_errors([&] { return start_reader(job.id, job.settings, job.nodes); });
      if (!started)
        finish(job.id, started.error());
      else
        loop_.post_after(read_timeout + hang_check_delay,
                         [this, id = job.id] { fail_hanging_reader(id); });
    }
  }

  Result<void> start_reader(wire::JobId id, const wire::JobSettings& settings, std::size_t nodes) {
    const std::lock_guard lock{readers_->mutex};
    std::erase_if(readers_->readers, [](const auto& reader) { return reader.second.has_ended; });
    if (readers_->loop == nullptr) return {};
    Reader& reader = readers_->readers[id];
    try {
      reader.thread = std::jthread{
          [this, id, make = make_preparation(prepare_job_, settings, nodes),
           shared = readers_](const std::stop_token& stop) { read(this, id, make, shared, stop); }};
    } catch (...) {
      readers_->readers.erase(id);
      throw;
    }
    return {};
  }

  using Make = std::function<Result<std::shared_ptr<const PreparedJob>>()>;

  /// Returns the function that a reader runs: it makes the job and, if this machine can hold it,
  /// makes its initial parameter values.
  static Make make_preparation(const JobPreparer& prepare_job, const wire::JobSettings& settings,
                               std::size_t nodes) {
    return [prepare_job, settings, nodes]() -> Result<std::shared_ptr<const PreparedJob>> {
      auto job = prepare_job(settings);
      if (!job) return job;
      if (auto fits = (*job)->check_memory(std::max<std::size_t>(1, nodes)); !fits)
        return std::move(fits).error();
      if (auto initialised = (*job)->make_initial_values(); !initialised)
        return std::move(initialised).error();
      return job;
    };
  }

  /// Runs on a reader's thread. Uses `jobs` only on the loop and only if `shared->loop` is not
  /// null, because `jobs` may be destroyed earlier than the reader ends.
  static void read(PreparedJobs* jobs, wire::JobId id, const Make& make,
                   const std::shared_ptr<Readers>& shared, const std::stop_token& stop) {
    set_priority(ThreadPriority::computing);
    const ReadScope scope{{.refuses_pipes = true,
                           .memory_max = 0,
                           .stop = stop,
                           .deadline = EventLoop::Clock::now() + read_timeout}};
    auto made = catch_errors(make);
    // The text may come from a user's code and goes to other nodes and the client, so its length is
    // limited.
    if (!made) made = Error{made.error().message.substr(0, exception_text_max)};
    const std::lock_guard lock{shared->mutex};
    if (shared->loop != nullptr)
      shared->loop->post([jobs, id, made = std::move(made)] { jobs->finish(id, made); });
    if (const auto own = shared->readers.find(id); own != shared->readers.end())
      own->second.has_ended = true;
    shared->ended.notify_all();
  }

  /// Calls the job's callbacks with an Error if its reader hangs.
  void fail_hanging_reader(wire::JobId id) {
    {
      const std::lock_guard lock{readers_->mutex};
      const auto reader = readers_->readers.find(id);
      const bool hangs = reader != readers_->readers.end() && !reader->second.has_ended &&
                         EventLoop::Clock::now() >= reader->second.started_at + read_timeout;
      if (!hangs) return;
    }
    finish(id, Error{"the job's data were not read within 5 minutes"});
  }

  /// Stores the prepared job, if `made` is no Error, and calls the job's callbacks.
  void finish(wire::JobId id, const Result<std::shared_ptr<const PreparedJob>>& made) {
    if (const auto callbacks = preparing_.extract(id)) {
      if (made) prepared_[id] = *made;
      for (const auto& [waiter, on_prepared] : callbacks.mapped()) on_prepared(made);
    }
    start_waiting_jobs();
  }

  EventLoop& loop_;
  const JobPreparer prepare_job_;
  std::map<wire::JobId, std::shared_ptr<const PreparedJob>> prepared_;
  /// The callbacks of the jobs that are being prepared, by waiter.
  std::map<wire::JobId, std::map<std::string, OnPrepared>> preparing_;
  /// The jobs among them that wait for a reader, in the order in which they came.
  std::deque<WaitingJob> waiting_;
  const std::shared_ptr<Readers> readers_;
};

}  // namespace starling::actor
