/// Jobs made from their settings, with their data read. Internal to the cluster's node.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/actor/cluster/event_loop.hpp"
#include "starling/base/input.hpp"

namespace starling::actor {

/// Returns the result of `make`, or what it throws as an Error.
template <class Make>
auto catch_errors(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& fault) {
    return Error{fault.what()};
  }
}

/// On the loop's thread alone, unless a comment says otherwise.
class PreparedJobs {
 public:
  using OnPrepared = std::function<void(const Result<std::shared_ptr<const PreparedJob>>&)>;

  PreparedJobs(EventLoop& loop, JobPreparer make)
      : loop_(loop), make_(std::move(make)), readers_(std::make_shared<Readers>(&loop)) {}

  /// Call from any thread but the loop's, before the loop ends. Asks the readers to end, and waits
  /// for them up to `ends_within`: a read that hangs in a file system cannot be ended. Returns how
  /// many did not end; they touch nothing of this object any more, but run code of the program.
  std::size_t close() {
    std::unique_lock lock{readers_->mutex};
    readers_->loop = nullptr;
    for (auto& [id, reader] : readers_->all) reader.thread.request_stop();
    readers_->ended.wait_for(lock, ends_within, [this] {
      return std::ranges::all_of(readers_->all, [](const auto& r) { return r.second.has_ended; });
    });
    std::size_t left = 0;
    for (auto& [id, reader] : readers_->all)
      if (!reader.has_ended) {
        reader.thread.detach();
        ++left;
      }
    // A reader that has ended needs the lock no more: to join its thread takes no time.
    readers_->all.clear();
    return left;
  }

  /// Refuses settings that are too long for every node to send with its status.
  [[nodiscard]] static Result<void> check(const wire::JobSettings& settings) {
    std::size_t bytes = 0;
    for (const auto& [key, text] : settings) bytes += key.size() + text.size();
    if (bytes <= settings_bytes_max) return {};
    return Error{"its settings take " + std::to_string(bytes) + " bytes; valid: up to " +
                 std::to_string(settings_bytes_max)};
  }

  /// Prepares the job as its settings say, and calls `then` with it, or with an Error, as where
  /// this machine cannot hold one node's share of the job on `nodes` nodes. Its data are read and
  /// its model is laid out once, on a thread of its own.
  void prepare(wire::JobId id, const wire::JobSettings& settings, std::size_t nodes,
               OnPrepared then) {
    if (const auto job = find(id)) return then(job);
    if (auto fits = check(settings); !fits) return then(std::move(fits).error());
    const bool is_read = is_reading(id);
    if (is_read && !preparing_.contains(id))
      return then(Error{"the data read for it are being discarded; valid: to submit it again"});
    if (is_busy() && !is_read)
      return then(
          Error{std::to_string(readers_max) +
                " jobs are being prepared; valid: to try again when one of them has begun"});
    auto& waiting = preparing_[id];
    waiting.push_back(std::move(then));
    if (waiting.size() > 1) return;
    const auto begun = catch_errors([&] { return start_reader(id, settings, nodes); });
    if (!begun) return take(id, begun.error());
    loop_.post_after(read_within + late_after, [this, id] { fail_hanging_reader(id); });
  }

  /// Whether no more jobs may be read now. Each job whose data is being read may fill much memory,
  /// whether or not it was forgotten since. A reader that hangs long after its time is up fills no
  /// more, but only `hanging_max` readers may hang.
  [[nodiscard]] bool is_busy() const {
    const std::lock_guard lock{readers_->mutex};
    const auto late = EventLoop::Clock::now() - read_within - late_after;
    std::ptrdiff_t reading = 0;
    std::ptrdiff_t hanging = 0;
    for (const auto& [id, reader] : readers_->all)
      if (!reader.has_ended) ++(reader.begun < late ? hanging : reading);
    return reading >= readers_max || hanging >= hanging_max;
  }
  /// Whether it is prepared, or is being prepared.
  [[nodiscard]] bool knows(wire::JobId id) const {
    return prepared_.contains(id) || preparing_.contains(id);
  }
  /// nullptr where it is not prepared.
  [[nodiscard]] std::shared_ptr<const PreparedJob> find(wire::JobId id) const {
    const auto job = prepared_.find(id);
    return job == prepared_.end() ? nullptr : job->second;
  }

  /// Gives what was prepared for job `from` to job `to`, which is the same job under a new number.
  void rename_job(wire::JobId from, wire::JobId to) {
    const auto job = prepared_.extract(from);
    if (job) prepared_[to] = job.mapped();
  }

  /// Ends the reading for the job, and discards what was prepared.
  void forget(wire::JobId id) {
    prepared_.erase(id);
    preparing_.erase(id);
    const std::lock_guard lock{readers_->mutex};
    if (const auto reader = readers_->all.find(id); reader != readers_->all.end())
      reader->second.thread.request_stop();
  }

 private:
  /// The most bytes of a job's settings, which every node sends with its status.
  static constexpr std::size_t settings_bytes_max = std::size_t{64} << 10U;
  static constexpr std::ptrdiff_t readers_max = 4;
  static constexpr std::ptrdiff_t hanging_max = 32;
  /// The longest time for reading: the client that submitted the job waits no longer.
  static constexpr std::chrono::minutes read_within{5};
  static constexpr std::chrono::seconds late_after{5};
  /// Readers that can be ended check at least this often whether they must end.
  static constexpr std::chrono::milliseconds ends_within{500};

  struct Reader {
    EventLoop::Clock::time_point begun = EventLoop::Clock::now();
    /// It has handed in its result, and ends without waiting for anything.
    bool has_ended = false;
    std::jthread thread{};
  };
  /// State that readers share with PreparedJobs; it outlives PreparedJobs where a reader hangs.
  struct Readers {
    explicit Readers(EventLoop* l) : loop(l) {}
    std::mutex mutex;
    std::condition_variable ended;
    /// Null once close() has begun.
    EventLoop* loop;
    std::map<wire::JobId, Reader> all;
  };

  [[nodiscard]] bool is_reading(wire::JobId id) const {
    const std::lock_guard lock{readers_->mutex};
    const auto reader = readers_->all.find(id);
    return reader != readers_->all.end() && !reader->second.has_ended;
  }

  Result<void> start_reader(wire::JobId id, const wire::JobSettings& settings, std::size_t nodes) {
    const std::lock_guard lock{readers_->mutex};
    std::erase_if(readers_->all, [](const auto& reader) { return reader.second.has_ended; });
    if (readers_->loop == nullptr) return {};
    Reader& reader = readers_->all[id];
    try {
      reader.thread =
          std::jthread{[this, id, make = preparation(make_, settings, nodes), shared = readers_](
                           const std::stop_token& stop) { read(this, id, make, shared, stop); }};
    } catch (...) {
      readers_->all.erase(id);
      throw;
    }
    return {};
  }

  using Make = std::function<Result<std::shared_ptr<const PreparedJob>>()>;

  /// Returns what a reader runs: it makes the job and, where this machine can hold it, lays out its
  /// model.
  static Make preparation(const JobPreparer& make, const wire::JobSettings& settings,
                          std::size_t nodes) {
    return [make, settings, nodes]() -> Result<std::shared_ptr<const PreparedJob>> {
      auto job = make(settings);
      if (!job) return job;
      if (auto fits = (*job)->fits_one_of(std::max<std::size_t>(1, nodes)); !fits)
        return std::move(fits).error();
      if (auto laid = (*job)->lay_out(); !laid) return std::move(laid).error();
      return job;
    };
  }

  /// On a reader's thread. `owner` is destroyed where there is no loop any more.
  static void read(PreparedJobs* owner, wire::JobId id, const Make& make,
                   const std::shared_ptr<Readers>& shared, const std::stop_token& stop) {
    const ReadScope scope{{.regular_only = true,
                           .memory_max = 0,
                           .stop = stop,
                           .deadline = EventLoop::Clock::now() + read_within}};
    auto made = catch_errors(make);
    const std::lock_guard lock{shared->mutex};
    if (shared->loop != nullptr)
      shared->loop->post([owner, id, made = std::move(made)] { owner->take(id, made); });
    if (const auto own = shared->all.find(id); own != shared->all.end())
      own->second.has_ended = true;
    shared->ended.notify_all();
  }

  /// Calls back with an Error for a reader that hangs.
  void fail_hanging_reader(wire::JobId id) {
    {
      const std::lock_guard lock{readers_->mutex};
      const auto reader = readers_->all.find(id);
      const bool hangs = reader != readers_->all.end() && !reader->second.has_ended &&
                         EventLoop::Clock::now() >= reader->second.begun + read_within;
      if (!hangs) return;
    }
    take(id, Error{"its data were not read within 5 minutes"});
  }

  void take(wire::JobId id, const Result<std::shared_ptr<const PreparedJob>>& made) {
    const auto waiting = preparing_.extract(id);
    if (!waiting) return;
    if (made) prepared_[id] = *made;
    for (const auto& one : waiting.mapped()) one(made);
  }

  EventLoop& loop_;
  const JobPreparer make_;
  std::map<wire::JobId, std::shared_ptr<const PreparedJob>> prepared_;
  std::map<wire::JobId, std::vector<OnPrepared>> preparing_;
  const std::shared_ptr<Readers> readers_;
};

}  // namespace starling::actor
