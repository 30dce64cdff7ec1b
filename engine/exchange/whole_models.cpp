#include "starling/engine/exchange/whole_models.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

namespace starling::core {
namespace {

/// If nobody has a copy, a joining worker asks again after this time.
constexpr Time ask_every = std::chrono::milliseconds{50};
/// The job fails if nobody has had a copy for this long.
constexpr Time lost_after = std::chrono::seconds{20};

}  // namespace

std::vector<MemberIncarnation> other_workers(const Configuration& configuration, MemberId self) {
  std::vector<MemberIncarnation> others;
  for (const Member& member : configuration.members)
    if (member.works && member.id != self) others.push_back({member.id, member.incarnation});
  return others;
}

std::optional<MemberId> first_worker(const Configuration& configuration) {
  const auto first = std::ranges::find(configuration.members, true, &Member::works);
  if (first == configuration.members.end()) return std::nullopt;
  return first->id;
}

std::vector<WorkerProgress> progress_of(const StepsOfWorkers& workers) {
  std::vector<WorkerProgress> all;
  for (const auto& [worker, steps] : workers)
    if (steps.step > 0) all.push_back({worker, steps.step, steps.samples});
  return all;
}

RangeState state_of(RangeId range, const RangeValues& values, const StepsOfWorkers& progress,
                    std::size_t workers) {
  RangeState state{.range = range,
                   .value = {values.value, 0, values.value->size(), nullptr},
                   .slots = {values.slots, 0, values.slots->size(), nullptr},
                   .updates = values.updates,
                   .samples = values.samples,
                   .ledger = std::vector<LedgerEntry>(workers)};
  for (const auto& [worker, steps] : progress) {  // a later incarnation replaces an earlier one
    if (worker.id >= state.ledger.size()) state.ledger.resize(worker.id + 1);
    state.ledger[worker.id] = {worker.incarnation, steps.step, steps.samples};
  }
  return state;
}

std::uint64_t add_to_hash(std::uint64_t hash, std::span<const std::byte> bytes) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * odd;
    hash ^= hash >> 29U;
  }
  return std::max<std::uint64_t>(hash, 1);
}

bool is_from_worker(const ExchangeScope& scope) {
  const Member* sender = scope.configuration.find(scope.from);
  return sender != nullptr && sender->works;
}

bool has_valid_progress(const ExchangeScope& scope, const std::vector<WorkerProgress>& workers) {
  return std::ranges::adjacent_find(workers, std::greater_equal<>{}, &WorkerProgress::worker) ==
             workers.end() &&
         std::ranges::all_of(workers, [&](const WorkerProgress& progress) {
           return progress.worker.id < scope.members_max && progress.step < barrier::finished &&
                  progress.samples < barrier::finished;
         });
}

bool is_valid(const ExchangeScope& scope, RangeId range, const ModelCopy& copy) {
  return scope.has_range(range) && copy.state.range == range && !copy.state.value.rows &&
         !copy.state.slots.rows && scope.fits_range(range, copy.state.value) &&
         has_valid_progress(scope, copy.progress);
}

CopySource::Next CopySource::begin(std::span<const MemberIncarnation> others) {
  asked_.reset();
  refusals_ = 0;
  return ask_next(others);
}

CopySource::Next CopySource::ask_next(std::span<const MemberIncarnation> others) {
  if (others.empty())
    return Fail{"no worker with a copy of the parameters is left; valid: start from a checkpoint"};
  const auto next = asked_ ? std::ranges::upper_bound(others, *asked_) : others.begin();
  asked_ = next == others.end() ? others.front() : *next;
  return asked_->id;
}

CopySource::Next CopySource::on_refusal(Time now, std::span<const MemberIncarnation> others) {
  if (++refusals_ < others.size()) return ask_next(others);
  if (!nobody_has_it_since_) nobody_has_it_since_ = now;
  if (now - *nobody_has_it_since_ >= lost_after)
    return Fail{"no worker has a copy of the parameters; valid: start from a checkpoint"};
  ask_again_at_ = now + ask_every;
  return SetTimer{*ask_again_at_};
}

bool CopySource::on_timer(Time now) {
  if (!ask_again_at_ || now < *ask_again_at_) return false;
  ask_again_at_.reset();
  return asked_.has_value();
}

}  // namespace starling::core
