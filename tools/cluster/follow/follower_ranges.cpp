/// The member functions of Follower that fetch the ranges of its job.
#include <algorithm>
#include <thread>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/engine/core/member/message_validator.hpp"
#include "starling/tools/cluster/follow/follower.hpp"
#include "starling/tools/program/interrupt.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// Nodes end a pause after this time by themselves; it is renewed long before.
constexpr auto pause_time = 5000ms;
constexpr auto pause_renewal = 1s;
/// The most time that workers have to finish their current steps and pause.
constexpr auto pause_timeout = 30s;

}  // namespace

Result<std::vector<core::RangeState>> Follower::fetch(const core::Layout& layout,
                                                      FetchTimeouts timeouts) {
  return read(layout, false, timeouts);
}

std::set<wire::NodeId> Follower::member_nodes() const {
  std::set<wire::NodeId> all;
  if (configuration_)
    for (const core::Member& member : configuration_->members) all.insert(member.node);
  return all;
}

bool Follower::has_answer_of_all_members() const {
  return std::ranges::all_of(member_nodes(), [&](wire::NodeId node) {
    const auto address = address_of_node_.find(node);
    return address != address_of_node_.end() && !silent_at_.contains(address->second);
  });
}

bool Follower::pause(std::chrono::milliseconds duration) {
  paused_at_ = Clock::now();
  const auto members = member_nodes();
  std::vector<std::string> asked;
  for (const wire::NodeId node : members)
    if (const auto address = address_of_node_.find(node); address != address_of_node_.end())
      asked.push_back(address->second);
  const wire::PauseJob request{job_, static_cast<std::uint32_t>(duration.count())};
  const auto replies = client_.ask_all(asked, request, reply_timeout);
  return !members.empty() && asked.size() == members.size() &&
         std::ranges::all_of(replies, [](const auto& reply) {
           return reply && std::holds_alternative<wire::Done>(*reply);
         });
}

Result<void> Follower::await_pause() {
  const auto deadline = Clock::now() + pause_timeout;
  while (Clock::now() < deadline) {
    if (Clock::now() > paused_at_ + pause_renewal && !pause(pause_time))
      return Error{"not all nodes answer"};
    const auto report = poll();
    if (!report) return report.error();
    if (report->is_paused) return {};
    if (!report->failure.empty() || is_interrupted()) return Error{"the job ends"};
    std::this_thread::sleep_for(5ms);
  }
  return Error{"a worker's step takes longer than " +
               std::to_string(pause_timeout / std::chrono::seconds{1}) + " s"};
}

std::map<core::MemberId, core::LedgerEntry> Follower::worker_entries() const {
  std::map<core::MemberId, core::LedgerEntry> all;
  for (const core::Member& member : configuration_->members) {
    const auto known = members_.find(member.id);
    if (member.works && known != members_.end())
      all[member.id] = {member.incarnation, known->second.step, known->second.samples};
  }
  return all;
}

Result<std::vector<core::RangeState>> Follower::fetch_cut(const core::Layout& layout,
                                                          const actor::TrainOptions& options,
                                                          FetchTimeouts timeouts) {
  // Asked before the pause, so that workers do not pause for a cut that cannot be complete.
  if (!has_answer_of_all_members()) return Error{"not all nodes answer"};
  struct EndPause {
    ~EndPause() { (void)follower.pause(0ms); }
    Follower& follower;
  } const end_pause{*this};
  if (!pause(pause_time)) return Error{"not all nodes answer"};
  if (auto paused = await_pause(); !paused) return std::move(paused).error();
  const auto entries = worker_entries();
  timeouts.reply = std::min(timeouts.reply,
                            std::chrono::floor<std::chrono::seconds>(pause_time - pause_renewal));
  auto states = read(layout, true, timeouts);
  if (!states) return states;
  // If all workers are paused at the same steps as before, they have pushed nothing meanwhile. A
  // worker that has just passed the barrier is not paused until it has read the model.
  if (auto paused = await_pause(); !paused) return std::move(paused).error();
  if (worker_entries() != entries) return Error{"members came or went"};
  for (const core::RangeState& state : *states) {
    const auto slots = models::slots(options.optimizer) * layout.ranges[state.range].count;
    if (!state.slots.empty() && state.slots.count != slots)
      return Error{"range " + std::to_string(state.range) + " lacks the state of this optimiser"};
    if (state.round != states->front().round) return Error{"ranges are of different rounds"};
  }
  align_ledgers(*states, entries, options.job);
  actor::reset_ledgers(*states, options.job);
  return states;
}

void Follower::align_ledgers(std::vector<core::RangeState>& states,
                             const std::map<core::MemberId, core::LedgerEntry>& workers,
                             const actor::JobOptions& options) {
  // Under BSP a round counts the pushes of all workers at once, and workers push again what waits
  // for the next round.
  if (barrier::is_bsp(options.barrier)) return;
  core::Step lowest = UINT64_MAX;
  for (const auto& [worker, entry] : workers) lowest = std::min(lowest, entry.step);
  for (core::RangeState& state : states) state.ledger.resize(options.workers);
  for (core::MemberId worker = 0; worker < options.workers; ++worker) {
    core::LedgerEntry entry;
    if (const auto known = workers.find(worker); known != workers.end()) {
      // Ranges that the worker's last steps did not change have counted fewer steps.
      entry = known->second;
    } else {
      // A worker that has died resumes at the step of the slowest, so that the others do not wait.
      for (const core::RangeState& state : states) {
        entry.step = std::max(entry.step, state.ledger[worker].step);
        entry.samples = std::max(entry.samples, state.ledger[worker].samples);
      }
      if (!workers.empty()) entry.step = std::max(entry.step, lowest);
    }
    for (core::RangeState& state : states) state.ledger[worker] = entry;
  }
}

Result<std::vector<core::RangeState>> Follower::read(const core::Layout& layout, bool with_state,
                                                     FetchTimeouts timeouts) {
  const std::size_t ranges = layout.ranges.size();
  std::map<core::RangeId, core::RangeState> found;
  bool is_retry = false;
  // Tries again until the deadline, because ranges may be moving from one owner to another.
  auto deadline = Clock::now() + timeouts.progress;
  while (found.size() < ranges && Clock::now() < deadline) {
    if (std::exchange(is_retry, true)) {
      std::this_thread::sleep_for(100ms);
      if (auto report = poll(); !report) return std::move(report).error();
    }
    std::set<std::string> primaries;
    for (core::RangeId range = 0; range < ranges; ++range)
      if (!found.contains(range)) primaries.insert(primary_of(range));
    for (const std::string& address : primaries) {
      if (address.empty() || silent_at_.contains(address)) continue;
      core::RangeId first = 0;
      do {
        if (with_state && Clock::now() > paused_at_ + pause_renewal && !pause(pause_time))
          return Error{"not all nodes answer"};
        auto reply = client_.ask_for<wire::Ranges>(
            address, wire::ReadRanges{job_, first, with_state}, timeouts.reply);
        if (!reply) break;
        for (auto& state : reply->states) {
          if (primary_of(state.range) != address) continue;
          if (state.range >= ranges || state.value.rows ||
              state.value.count != layout.ranges[state.range].count)
            return Error{"range " + std::to_string(state.range) + " is not of this model"};
          found[state.range] = std::move(state);
          deadline = Clock::now() + timeouts.progress;
        }
        first = reply->next > first ? reply->next : 0;
      } while (first != 0);
    }
  }
  std::vector<core::RangeState> all;
  all.reserve(found.size());
  for (auto& [range, state] : found) all.push_back(std::move(state));
  for (std::size_t range = 0; range < ranges; ++range)
    if (range >= all.size() || all[range].range != range)
      return Error{"range " + std::to_string(range) + " of the model: no node has it"};
  return all;
}

}  // namespace starling::program
