/// The latest log lines of a node, kept for later requests. Internal to the cluster's node.
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
  using Show = std::function<void(const std::string&)>;

  /// `show` may be empty.
  explicit LogBuffer(Show show) : show_(std::move(show)) {}

  /// Adds a line, which may contain names that others chose. `job` is the name of the job that it
  /// is about, if any, and leads the line.
  void add(const std::string& said, const std::string& job = {}) {
    const std::string line = printable((job.empty() ? "" : "job " + job + ": ") + said);
    {
      const std::lock_guard turn{showing_};
      if (show_) show_(line);
    }
    const std::lock_guard lock{mutex_};
    lines_.push_back({utc_now_us(), job, line.substr(0, line_max)});
    if (lines_.size() <= lines_max) return;
    lines_.pop_front();
    ++first_;
  }

  /// Returns lines from number `from` on, as far as they are kept, as many as one reply holds.
  [[nodiscard]] wire::LogLines read(std::uint64_t from) const {
    const std::lock_guard lock{mutex_};
    wire::LogLines some{std::clamp(from, first_, first_ + lines_.size()), {}, 0};
    const auto begin = static_cast<std::size_t>(some.from - first_);
    for (std::size_t i = begin; i < std::min(begin + read_max, lines_.size()); ++i)
      some.lines.push_back(lines_[i]);
    some.next = some.from + some.lines.size();
    return some;
  }

 private:
  static constexpr std::size_t lines_max = 1000;
  static constexpr std::size_t line_max = 500;
  static constexpr std::size_t read_max = 200;

  const Show show_;
  std::mutex showing_;
  mutable std::mutex mutex_;
  /// The number of the first line that is kept.
  std::uint64_t first_ = 0;
  std::deque<wire::LogLine> lines_;
};

}  // namespace starling::actor
