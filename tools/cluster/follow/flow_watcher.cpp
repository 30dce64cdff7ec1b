#include "starling/tools/cluster/follow/flow_watcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/program/time_text.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// The time between two polls grows from first_poll_interval to last_poll_interval, because a flow
/// may take only a moment.
constexpr std::chrono::milliseconds first_poll_interval = 20ms;
constexpr std::chrono::milliseconds last_poll_interval = 200ms;
/// The time for one reply, which may hold 4 MiB of lines.
constexpr auto result_timeout = 10s;
constexpr auto status_timeout = 2s;
/// The time for the reply of a node that has answered a moment before.
constexpr std::chrono::milliseconds report_timeout = 500ms;

}  // namespace

FlowWatcher::End FlowWatcher::run() {
  const End end = follow();
  display_.close();
  if (end == End::done || end == End::failed) update_stages();
  if (end != End::done) return end;
  if (fetch_result()) return End::done;
  if (is_stopping_ || was_stopped()) return End::stopped;
  if (has_silent_node_) {
    why_ = "the flow has ended, and no node that answers has sent its result";
    return End::not_fetched;
  }
  why_ = "the flow has ended, and no node has its result any more";
  return End::failed;
}

FlowWatcher::End FlowWatcher::follow() {
  for (auto interval = first_poll_interval;;
       interval = std::min(last_poll_interval, interval + interval / 2)) {
    const auto report = follower_.poll();
    for (const std::string& line : follower_.take_events()) warn(line);
    if (!report) {
      why_ = printable(report.error().message);
      return follower_.is_dropped() ? End::dropped : End::unreachable;
    }
    report_blocked(report->blocked_reason);
    if (!report->failure.empty()) {
      why_ = printable(report->failure);
      return End::failed;
    }
    workers_ = report->workers;
    if (report->is_done) return End::done;
    if (is_interrupted() && on_leave_ == OnLeave::leave_running) return End::goes_on;
    // The request to stop is sent after every poll, because a node may not have answered before.
    is_stopping_ = is_stopping_ || is_interrupted();
    if (is_stopping_) follower_.stop_job(false);
    update_stages();
    show_progress();
    std::this_thread::sleep_for(interval);
  }
}

void FlowWatcher::warn(const std::string& message) {
  display_.close();
  print_error(message);
}

void FlowWatcher::report_blocked(const std::string& reason) {
  if (const auto notice = blocked_.update(reason, Clock::now())) warn(*notice);
}

void FlowWatcher::update_stages() {
  std::vector<std::string> addresses;
  for (const auto& [node, address] : follower_.answering_nodes()) addresses.push_back(address);
  for (auto& reply : client_.ask_all(addresses, wire::GetFlowReport{job_}, report_timeout))
    if (auto* report = reply ? std::get_if<wire::FlowReport>(&*reply) : nullptr)
      stages_.receive(std::move(*report));
}

void FlowWatcher::show_progress() {
  std::string line = fmt::format("job {} {}, {}", name_, is_stopping_ ? "stops" : "runs",
                                 time_text(seconds_since(start_)));
  if (const auto stage = stages_.running(follower_.member_nodes())) line += ": " + print(*stage);
  if (const RecomputedParts recomputed = stages_.recomputed_parts(); recomputed.parts > 0)
    line += ", " + print(recomputed);
  display_.show(line);
}

bool FlowWatcher::fetch_result() {
  const auto nodes = follower_.answering_nodes();
  has_silent_node_ = nodes.size() < follower_.member_nodes().size();
  for (const auto& [node, address] : nodes) {
    auto result = client_.ask_for<wire::FlowResult>(address, wire::GetResult{job_}, result_timeout);
    has_silent_node_ |= !result;
    if (!result || !result->is_known) continue;
    outcome_.lines = result->lines;
    outcome_.first_lines = std::move(result->first_lines);
    // Another process has written the names and the numbers.
    for (auto& [name, value] : result->figures)
      if (std::isfinite(value)) outcome_.figures.emplace_back(printable(name), value);
    for (std::string& reason : result->skipped) outcome_.skipped.push_back(printable(reason));
    seconds_ = std::isfinite(result->seconds) ? result->seconds : 0;
    return true;
  }
  return false;
}

bool FlowWatcher::was_stopped() {
  std::vector<std::string> addresses;
  for (const auto& [node, address] : follower_.answering_nodes()) addresses.push_back(address);
  for (const auto& reply : client_.ask_all(
           addresses, wire::GetStatus{.job = job_, .with_nodes = false}, status_timeout)) {
    const auto* status = reply ? std::get_if<wire::NodeStatus>(&*reply) : nullptr;
    if (status == nullptr) continue;
    for (const wire::JobStatus& job : status->jobs)
      if (job.job == job_ && job.state == wire::JobState::stopped) return true;
  }
  return false;
}

}  // namespace starling::program
