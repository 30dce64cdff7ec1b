/// The latest log lines of a node, kept for later requests. Internal to ClusterNode.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "starling/actor/wire/control.hpp"
#include "starling/base/text.hpp"
#include "starling/base/utc.hpp"

namespace starling::actor {

/// Thread-safe.
class LogBuffer {
 public:
  using Print = std::function<void(const std::string&)>;

  /// Calls `print` with each line, one call at a time. `print` may be empty.
  explicit LogBuffer(Print print) : print_(std::move(print)) {}

  /// Adds a line, with unprintable characters replaced, because clients choose some names in it. If
  /// the line is about a job, `job` is the job's name, with which the line then begins.
  void add(const std::string& text, const std::string& job = {}) {
    const std::string line = printable((job.empty() ? "" : "job " + job + ": ") + text);
    {
      const std::lock_guard print_lock{print_mutex_};
      if (print_) print_(line);
    }
    const std::lock_guard lock{mutex_};
    lines_.push_back({utc_now_us(), job, line.substr(0, line_bytes_max)});
    if (lines_.size() <= lines_max) return;
    lines_.pop_front();
    ++oldest_;
  }

  /// Returns the kept lines from number `from` on, as many as one reply may hold.
  [[nodiscard]] wire::LogLines read(std::uint64_t from) const {
    const std::lock_guard lock{mutex_};
    wire::LogLines reply{std::clamp(from, oldest_, oldest_ + lines_.size()), {}, 0};
    const auto begin = static_cast<std::size_t>(reply.from - oldest_);
    for (std::size_t i = begin; i < std::min(begin + lines_per_read_max, lines_.size()); ++i)
      reply.lines.push_back(lines_[i]);
    reply.next = reply.from + reply.lines.size();
    return reply;
  }

 private:
  static constexpr std::size_t lines_max = 1000;
  static constexpr std::size_t line_bytes_max = 500;
  static constexpr std::size_t lines_per_read_max = 200;

  const Print print_;
  std::mutex print_mutex_;
  mutable std::mutex mutex_;
  /// The number of the oldest line that is kept.
  std::uint64_t oldest_ = 0;
  std::deque<wire::LogLine> lines_;
};

}  // namespace starling::actor
