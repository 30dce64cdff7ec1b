/// The member functions of Follower that fetch the ranges of its job.
#include <algorithm>
#include <thread>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/engine/core/member/message_validator.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/tools/cluster/follow/follower.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/checkpoint_changes.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// Nodes end a pause by themselves after pause_time, in case this program dies. As long as this
/// program needs the pause, it renews the pause after every pause_renewal.
constexpr auto pause_time = 5000ms;
constexpr auto pause_renewal = 1s;
/// The most time that workers have to finish their current steps and pause.
constexpr auto pause_timeout = 30s;

/// True if only the ledgers say which steps the model of the job contains.
bool model_lags(const actor::JobOptions& job) {
  return core::exchange_type(job.exchange).model_lags;
}

}  // namespace

Result<std::vector<core::RangeState>> Follower::fetch(const core::Layout& layout,
                                                      FetchTimeouts timeouts) {
  return read(layout, false, timeouts);
}

std::set<wire::NodeId> Follower::member_nodes() const {
  std::set<wire::NodeId> nodes;
  if (merged_.configuration)
    for (const core::Member& member : merged_.configuration->members) nodes.insert(member.node);
  return nodes;
}

bool Follower::have_all_members_answered() const {
  return std::ranges::all_of(member_nodes(), [&](wire::NodeId node) {
    const auto address = address_of_node_.find(node);
    return address != address_of_node_.end() && !unanswered_since_.contains(address->second);
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
    const auto report = poll(true);
    if (!report) return report.error();
    if (report->is_paused) return {};
    if (!report->failure.empty() || is_interrupted()) return Error{"the job ends"};
    std::this_thread::sleep_for(5ms);
  }
  return Error{"a worker's step takes longer than " +
               std::to_string(pause_timeout / std::chrono::seconds{1}) + " s"};
}

std::map<core::MemberId, core::LedgerEntry> Follower::worker_entries() const {
  std::map<core::MemberId, core::LedgerEntry> entries;
  for (const core::Member& member : merged_.configuration->members) {
    const auto known = merged_.members.find(member.id);
    if (member.works && known != merged_.members.end())
      entries[member.id] = {member.incarnation, known->second.status.step,
                            known->second.status.samples};
  }
  return entries;
}

Result<std::optional<core::Deal>> Follower::fetch_deal(const actor::TrainOptions& options) {
  const bool revises_deals =
      options.dynamic_batches || barrier::hands_in_early(options.job.barrier);
  if (merged_.configuration->members_since == 1 && !revises_deals)
    return std::optional<core::Deal>{};
  const auto address = address_of_node_.find(merged_.configuration->members.front().node);
  if (address == address_of_node_.end()) return Error{"not all nodes answer"};
  auto description =
      client_.ask_for<wire::JobDescription>(address->second, wire::GetJob{job_}, reply_timeout);
  if (!description) return std::move(description).error();
  if (description->deal && description->deal->number.epoch != merged_.configuration->members_since)
    return Error{"members came or went"};
  return std::move(description->deal);
}

Result<std::vector<models::FormerDeal>> Follower::end_deal(
    const core::Deal& deal, const actor::TrainOptions& options, std::uint64_t samples,
    std::vector<core::RangeState>& states) const {
  std::uint64_t samples_taken = 0;
  for (const core::RangeState& state : states)
    samples_taken = std::max(samples_taken, state.samples);
  std::vector<models::Taken> taken;
  for (const core::DealtWorker& worker : deal.workers) {
    const auto member = merged_.members.find(worker.id);
    if (member == merged_.members.end()) return Error{"members came or went"};
    if (!worker.first_step) {  // the worker began later: all its samples are of this deal
      taken.push_back({.samples = core::first_ledger_entry(states, worker.id).samples});
      continue;
    }
    // Under BSP, an update that waits for the next round is not in the cut.
    core::Step step = model_lags(options.job) ? core::first_ledger_entry(states, worker.id).step
                                              : member->second.status.step;
    if (barrier::is_bsp(options.job.barrier)) step = std::min(step, states.front().round);
    if (step < *worker.first_step)
      return Error{"a step from before the last change of workers is not finished"};
    if (barrier::hands_in_early(options.job.barrier)) {
      taken.push_back(taken_of(worker, core::first_ledger_entry(states, worker.id), options));
      continue;
    }
    taken.push_back({.steps = step - *worker.first_step});
  }
  return program::end_deal(deal, std::move(taken), options, samples, samples_taken, states);
}

/// Reads the states of all ranges between two moments at which all workers are paused, at the same
/// steps: none has pushed while the ranges were read. If all workers wait for a sum, they count as
/// paused, and make one step more when they have it; then the ranges are read again.
Result<std::vector<core::RangeState>> Follower::read_paused(const core::Layout& layout,
                                                            const FetchTimeouts& timeouts) {
  constexpr int reads_max = 4;
  if (auto paused = await_pause(); !paused) return std::move(paused).error();
  for (int i = 0; i < reads_max; ++i) {
    const auto entries = worker_entries();
    auto states = read(layout, true, timeouts);
    if (!states) return std::move(states).error();
    if (auto paused = await_pause(); !paused) return std::move(paused).error();
    const auto now = worker_entries();
    if (now == entries) return states;
    const auto is_same = [&](const auto& one, const auto& other) {
      return one.first == other.first && one.second.incarnation == other.second.incarnation;
    };
    if (!std::ranges::equal(now, entries, is_same)) return Error{"members came or went"};
  }
  return Error{"workers made steps in a pause"};
}

Result<ModelCut> Follower::fetch_cut(const core::Layout& layout, const actor::TrainOptions& options,
                                     std::uint64_t samples, FetchTimeouts timeouts) {
  // Checked before the pause, so that workers do not pause for a cut that cannot be complete.
  if (!have_all_members_answered()) return Error{"not all nodes answer"};
  struct EndPause {
    ~EndPause() { (void)follower.pause(0ms); }
    Follower& follower;
  } const end_pause{*this};
  if (!pause(pause_time)) return Error{"not all nodes answer"};
  timeouts.reply = std::min<std::chrono::milliseconds>(timeouts.reply, pause_time - pause_renewal);
  auto states = read_paused(layout, timeouts);
  if (!states) return std::move(states).error();
  const auto entries = worker_entries();
  for (const core::RangeState& state : *states) {
    const auto slots = models::slot_count(options.optimizer) * layout.ranges[state.range].count;
    if (!state.slots.empty() && state.slots.count != slots)
      return Error{"range " + std::to_string(state.range) + " lacks the state of this optimiser"};
    if (state.round != states->front().round) return Error{"ranges contain different rounds"};
  }
  auto deal = fetch_deal(options);
  if (!deal) return std::move(deal).error();
  ModelCut cut{*std::move(states), options.job.former_deals, {}};
  cut.updates = merged_.updates_made();
  // Steps after the model's round are made again.
  if (barrier::is_bsp(options.job.barrier))
    for (const auto& [worker, entry] : entries)
      cut.updates -= entry.step - std::min(entry.step, cut.states.front().round);
  if (*deal) {
    auto former = end_deal(**deal, options, samples, cut.states);
    if (!former) return std::move(former).error();
    cut.former_deals = *std::move(former);
    return cut;
  }
  align_ledgers(cut.states, entries, options.job);
  actor::reset_ledgers(cut.states, options.job);
  return cut;
}

void Follower::align_ledgers(std::vector<core::RangeState>& states,
                             const std::map<core::MemberId, core::LedgerEntry>& workers,
                             const actor::JobOptions& options) {
  // Under BSP, reset_ledgers() sets all entries to the last round instead, because a round applies
  // the pushes of all workers at once. A push that waits for the next round is not in the cut: its
  // worker pushes it again.
  if (barrier::is_bsp(options.barrier)) return;
  core::Step lowest = UINT64_MAX;
  for (const auto& [worker, entry] : workers) lowest = std::min(lowest, entry.step);
  for (core::RangeState& state : states) state.ledger.resize(options.workers);
  for (core::MemberId worker = 0; worker < options.workers; ++worker) {
    core::LedgerEntry entry;
    const auto known = workers.find(worker);
    if (known != workers.end() && !model_lags(options)) {
      // A range that the worker's last steps did not change may have counted fewer steps.
      entry = known->second;
    } else {
      // A worker that has died resumes at the slowest worker's step, so that no other waits for it.
      // If the model lags, only ledgers say which steps it contains.
      for (const core::RangeState& state : states) {
        entry.step = std::max(entry.step, state.ledger[worker].step);
        entry.samples = std::max(entry.samples, state.ledger[worker].samples);
      }
      if (!workers.empty() && !model_lags(options)) entry.step = std::max(entry.step, lowest);
    }
    for (core::RangeState& state : states) {
      core::LedgerEntry& known_entry = state.ledger[worker];
      state.samples += entry.samples - std::min(entry.samples, known_entry.samples);
      known_entry = entry;
    }
  }
}

Result<std::vector<core::RangeState>> Follower::read(const core::Layout& layout,
                                                     bool with_slots_and_ledger,
                                                     FetchTimeouts timeouts) {
  const std::size_t ranges = layout.ranges.size();
  std::map<core::RangeId, core::RangeState> state_of_range;
  bool is_retry = false;
  // Tries again until the deadline, because ranges may be moving from one owner to another.
  auto deadline = Clock::now() + timeouts.progress;
  while (state_of_range.size() < ranges && Clock::now() < deadline) {
    if (std::exchange(is_retry, true)) {
      std::this_thread::sleep_for(100ms);
      if (auto report = poll(); !report) return std::move(report).error();
    }
    std::set<std::string> addresses;
    for (core::RangeId range = 0; range < ranges; ++range)
      if (!state_of_range.contains(range)) addresses.insert(address_of(range));
    for (const std::string& address : addresses) {
      if (address.empty() || unanswered_since_.contains(address)) continue;
      core::RangeId first_range = 0;
      do {
        if (with_slots_and_ledger && Clock::now() > paused_at_ + pause_renewal &&
            !pause(pause_time))
          return Error{"not all nodes answer"};
        auto reply = client_.ask_for<wire::Ranges>(
            address, wire::ReadRanges{job_, first_range, with_slots_and_ledger}, timeouts.reply);
        if (!reply) break;
        for (auto& state : reply->states) {
          if (address_of(state.range) != address) continue;
          if (state.range >= ranges || state.value.rows ||
              state.value.count != layout.ranges[state.range].count)
            return Error{"range " + std::to_string(state.range) + " is not of this model"};
          state_of_range[state.range] = std::move(state);
          deadline = Clock::now() + timeouts.progress;
        }
        // `next` is the first range that did not fit in the reply; 0 if all did.
        first_range = reply->next > first_range ? reply->next : 0;
      } while (first_range != 0);
    }
  }
  std::vector<core::RangeState> states;
  states.reserve(state_of_range.size());
  for (auto& [range, state] : state_of_range) states.push_back(std::move(state));
  for (std::size_t range = 0; range < ranges; ++range)
    if (range >= states.size() || states[range].range != range)
      return Error{"range " + std::to_string(range) + " of the model: no node has it"};
  return states;
}

}  // namespace starling::program
