/// How a Follower reads the ranges of its job.
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

/// A pause is renewed before it ends.
constexpr auto pause_for = 5000ms;
constexpr auto pause_again_after = 1s;
/// A worker whose step takes longer is not waited for.
constexpr auto pause_within = 30s;

}  // namespace

Result<std::vector<core::RangeState>> Follower::fetch(const core::Layout& layout,
                                                      Patience patience) {
  return read(layout, false, patience);
}

std::set<wire::NodeId> Follower::member_nodes() const {
  std::set<wire::NodeId> all;
  if (configuration_)
    for (const core::Member& member : configuration_->members) all.insert(member.node);
  return all;
}

bool Follower::all_answer() const {
  return std::ranges::all_of(member_nodes(), [&](wire::NodeId node) {
    const auto address = nodes_.find(node);
    return address != nodes_.end() && !silent_.contains(address->second);
  });
}

bool Follower::pause(std::chrono::milliseconds duration) {
  paused_at_ = Clock::now();
  const auto members = member_nodes();
  std::vector<std::string> asked;
  for (const wire::NodeId node : members)
    if (const auto address = nodes_.find(node); address != nodes_.end())
      asked.push_back(address->second);
  const wire::PauseJob request{job_, static_cast<std::uint32_t>(duration.count())};
  const auto replies = client_.ask_all(asked, request, answer_within);
  return !members.empty() && asked.size() == members.size() &&
         std::ranges::all_of(replies, [](const auto& reply) {
           return reply && std::holds_alternative<wire::Done>(*reply);
         });
}

Result<void> Follower::await_pause() {
  const auto deadline = Clock::now() + pause_within;
  while (Clock::now() < deadline) {
    if (Clock::now() > paused_at_ + pause_again_after && !pause(pause_for))
      return Error{"not all nodes answer"};
    const auto now = look();
    if (!now) return now.error();
    if (now->is_paused) return {};
    if (!now->failure.empty() || is_interrupted()) return Error{"the job ends"};
    std::this_thread::sleep_for(5ms);
  }
  return Error{"a worker's step takes longer than " +
               std::to_string(pause_within / std::chrono::seconds{1}) + " s"};
}

std::map<core::MemberId, core::LedgerEntry> Follower::standing() const {
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
                                                          Patience patience) {
  // Workers do not pause for a cut that cannot be complete.
  if (!all_answer()) return Error{"not all nodes answer"};
  struct GoOn {
    ~GoOn() { (void)follower.pause(0ms); }
    Follower& follower;
  } const go_on{*this};
  if (!pause(pause_for)) return Error{"not all nodes answer"};
  if (auto paused = await_pause(); !paused) return std::move(paused).error();
  const auto before = standing();
  patience.for_one = std::min(
      patience.for_one, std::chrono::floor<std::chrono::seconds>(pause_for - pause_again_after));
  auto states = read(layout, true, patience);
  if (!states) return states;
  // Workers that are all paused at the same steps as before have pushed nothing meanwhile. One that
  // passed the barrier meanwhile is not paused until it has read the model.
  if (auto paused = await_pause(); !paused) return std::move(paused).error();
  if (standing() != before) return Error{"members came or went"};
  for (const core::RangeState& state : *states) {
    const auto slots = models::slots(options.optimizer) * layout.ranges[state.range].count;
    if (!state.slots.empty() && state.slots.count != slots)
      return Error{"range " + std::to_string(state.range) + " has no state of this optimiser"};
    if (state.round != states->front().round) return Error{"ranges stand at different rounds"};
  }
  settle(*states, before, options.job);
  actor::make_fresh(*states, options.job);
  return states;
}

/// Gives each worker the same last step in all ranges.
void Follower::settle(std::vector<core::RangeState>& states,
                      const std::map<core::MemberId, core::LedgerEntry>& standing,
                      const actor::JobOptions& options) {
  // A round counts all workers at once, and pushes that wait for the next round are made again.
  if (barrier::is_bsp(options.barrier)) return;
  core::Step lowest = UINT64_MAX;
  for (const auto& [worker, stand] : standing) lowest = std::min(lowest, stand.step);
  for (core::RangeState& state : states) state.ledger.resize(options.workers);
  for (core::MemberId worker = 0; worker < options.workers; ++worker) {
    core::LedgerEntry entry;
    if (const auto known = standing.find(worker); known != standing.end()) {
      // A range that the worker's last steps did not change has counted fewer.
      entry = known->second;
    } else {
      // A worker that is gone resumes beside the slowest, or else the others would wait for it.
      for (const core::RangeState& state : states) {
        entry.step = std::max(entry.step, state.ledger[worker].step);
        entry.samples = std::max(entry.samples, state.ledger[worker].samples);
      }
      if (!standing.empty()) entry.step = std::max(entry.step, lowest);
    }
    for (core::RangeState& state : states) state.ledger[worker] = entry;
  }
}

Result<std::vector<core::RangeState>> Follower::read(const core::Layout& layout, bool with_state,
                                                     Patience patience) {
  const std::size_t ranges = layout.ranges.size();
  std::map<core::RangeId, core::RangeState> found;
  bool again = false;
  // Ranges may be moving from one owner to another.
  auto deadline = Clock::now() + patience.in_all;
  while (found.size() < ranges && Clock::now() < deadline) {
    if (std::exchange(again, true)) {
      std::this_thread::sleep_for(100ms);
      if (auto news = look(); !news) return std::move(news).error();
    }
    std::set<std::string> primaries;
    for (core::RangeId range = 0; range < ranges; ++range)
      if (!found.contains(range)) primaries.insert(primary_of(range));
    for (const std::string& address : primaries) {
      if (address.empty() || silent_.contains(address)) continue;
      core::RangeId from = 0;
      do {
        if (with_state && Clock::now() > paused_at_ + pause_again_after && !pause(pause_for))
          return Error{"not all nodes answer"};
        auto some = client_.ask_for<wire::Ranges>(address, wire::ReadRanges{job_, from, with_state},
                                                  patience.for_one);
        if (!some) break;
        for (auto& state : some->states) {
          if (primary_of(state.range) != address) continue;
          if (state.range >= ranges || state.value.rows ||
              state.value.count != layout.ranges[state.range].count)
            return Error{"range " + std::to_string(state.range) + " is none of this model"};
          found[state.range] = std::move(state);
          deadline = Clock::now() + patience.in_all;
        }
        from = some->next > from ? some->next : 0;
      } while (from != 0);
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
