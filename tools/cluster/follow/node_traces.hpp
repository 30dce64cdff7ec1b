/// Joins the intervals that the nodes of a job have sent into one trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/wire/control.hpp"
#include "starling/tools/cluster/follow/clock_offset.hpp"
#include "starling/tools/train/trace_file.hpp"

namespace starling::program {

/// Not thread-safe.
class NodeTraces {
 public:
  /// Holds at most `intervals_max` intervals and those of one more reply.
  explicit NodeTraces(std::size_t intervals_max = actor::Timeline::intervals_max_default)
      : intervals_max_(intervals_max) {}

  /// Adds a node's reply to a request for the intervals from next_of(reply.node) on. The
  /// request was sent at `asked_at` by this process's steady clock, and the reply came at
  /// `received_at`. No effect once is_full().
  void receive(const wire::TraceIntervals& reply, core::Time asked_at, core::Time received_at);
  /// Returns the number of the first interval to ask this node for.
  [[nodiscard]] std::uint64_t next_of(wire::NodeId node) const;
  [[nodiscard]] bool is_full() const { return count_ >= intervals_max_; }

  /// Forgets the intervals that were received. next_of() stays the same.
  void discard();

  /// Returns the trace, which refers to this object. Its time 0 is when the first node started the
  /// job.
  [[nodiscard]] Trace trace(const std::function<std::string(wire::NodeId)>& name_of) const;

 private:
  struct Node {
    /// The value of next_of().
    std::uint64_t next = 0;
    /// Maps the node's clock to this process's.
    ClockOffset clock;
    /// The intervals of each worker.
    std::map<core::MemberId, std::vector<actor::Interval>> rows = {};
    /// A mark at each place where intervals are missing.
    std::vector<TraceMark> marks = {};
    /// The number of intervals that the node had dropped before it was asked for them.
    std::uint64_t dropped = 0;
    /// When the first of the dropped intervals would have begun, by the node's clock.
    std::optional<core::Time> dropped_from = std::nullopt;
    /// The end of the node's latest interval.
    core::Time end{};
  };

  std::size_t intervals_max_;
  std::size_t count_ = 0;
  std::map<wire::NodeId, Node> nodes_;
};

}  // namespace starling::program
