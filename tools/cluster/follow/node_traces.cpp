#include "starling/tools/cluster/follow/node_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "starling/actor/cluster/local_job.hpp"

namespace starling::program {
namespace {

/// About 35 years. Later times are not believed.
constexpr std::uint64_t time_max_ns = std::uint64_t{1} << 60U;

/// Returns the interval that a node has sent; nullopt if a field is out of range.
std::optional<actor::Interval> interval_of(const wire::TraceInterval& received) {
  const core::MemberId members_max = actor::LocalJobOptions::members_max;
  if (received.worker >= members_max || received.awaited.value_or(0) >= members_max ||
      received.from_ns > time_max_ns || received.duration_ns > time_max_ns ||
      received.activity > static_cast<std::uint8_t>(last_of(actor::Activity{})))
    return std::nullopt;
  const core::Time from{static_cast<core::Time::rep>(received.from_ns)};
  const core::Time duration{static_cast<core::Time::rep>(received.duration_ns)};
  return actor::Interval{from, from + duration, received.step, received.awaited,
                         static_cast<actor::Activity>(received.activity)};
}

}  // namespace

std::uint64_t NodeTraces::next_of(wire::NodeId node) const {
  const auto known = nodes_.find(node);
  return known == nodes_.end() ? 0 : known->second.next;
}

void NodeTraces::receive(const wire::TraceIntervals& reply, core::Time asked_at,
                         core::Time received_at) {
  if (is_full() || reply.now_ns > time_max_ns || reply.first < next_of(reply.node)) return;
  Node& node = nodes_[reply.node];
  node.clock.add(asked_at, received_at, core::Time{static_cast<core::Time::rep>(reply.now_ns)});
  const std::uint64_t missing = reply.first - node.next;
  if (missing > 0) {
    node.dropped += missing;
    node.dropped_from = node.dropped_from.value_or(node.end);
    node.marks.push_back({node.end, fmt::format("{} intervals are missing here", missing)});
  }
  node.next = reply.first + reply.intervals.size();
  for (const wire::TraceInterval& received : reply.intervals) {
    const auto interval = interval_of(received);
    if (!interval) continue;
    node.rows[received.worker].push_back(*interval);
    node.end = std::max(node.end, interval->to);
    ++count_;
  }
}

void NodeTraces::discard() {
  for (auto& [id, node] : nodes_) {
    node.rows.clear();
    node.marks.clear();
    node.dropped = 0;
    node.dropped_from.reset();
  }
  count_ = 0;
}

Trace NodeTraces::trace(const std::function<std::string(wire::NodeId)>& name_of) const {
  Trace trace;
  core::Time start = core::Time::max();
  for (const auto& [id, node] : nodes_) start = std::min(start, node.clock.zero());
  core::Time end{};
  for (const auto& [id, node] : nodes_) {
    TraceProcess process{.name = "node " + name_of(id),
                         .shift = node.clock.zero() - start,
                         .marks = node.marks,
                         .clock = TraceClock{node.clock.error(), node.clock.drift()},
                         .dropped = node.dropped};
    for (const auto& [worker, intervals] : node.rows) process.rows.push_back({worker, intervals});
    if (is_full()) process.marks.push_back({node.end, "not fetched from here on"});
    trace.dropped += node.dropped;
    if (node.dropped_from)
      trace.dropped_from = std::min(trace.dropped_from.value_or(core::Time::max()),
                                    *node.dropped_from + process.shift);
    end = std::max(end, node.end + process.shift);
    trace.processes.push_back(std::move(process));
  }
  const auto seconds = [](core::Time time) { return std::chrono::duration<double>{time}.count(); };
  if (trace.dropped > 0)
    trace.warning = fmt::format(
        "{} intervals are missing, the first from {:.3g} s on: nodes had dropped them before they "
        "were asked, because each keeps the latest {} of a job",
        trace.dropped, seconds(*trace.dropped_from), actor::TraceBuffer::intervals_max_default);
  if (is_full())
    trace.warning += fmt::format(
        "{}a trace holds at most {} intervals: none was fetched from {:.3g} s on; valid: a shorter "
        "job, or fewer workers",
        trace.warning.empty() ? "" : "; ", intervals_max_, seconds(end));
  return trace;
}

}  // namespace starling::program
