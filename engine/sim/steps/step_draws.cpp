#include "starling/engine/sim/steps/step_draws.hpp"

#include <algorithm>
#include <numeric>

#include "starling/barrier/sampling.hpp"

namespace starling::sim {

bool decides_by_probability(const StepOptions& options) {
  if (barrier::is_tuned(options.barrier) || barrier::needs_paces(options.barrier) ||
      !barrier::floor(options.barrier, 0))
    return false;
  if (!barrier::is_sampled(options.barrier)) return true;
  // The workers' chances to pass differ if draws are weighted or workers do not answer.
  const bool is_silent = !options.absences.empty() && !core::keeps_steps_centrally(options.mode);
  return options.sampling == Sampling::exact && !barrier::is_weighted(options.barrier) &&
         !is_silent;
}

StepDraws::StepDraws(const StepOptions& options, bool sends_notices)
    : options_(options),
      sends_notices_(sends_notices),
      is_sampled_(barrier::is_sampled(options.barrier)),
      absences_(options.absences, options.seed),
      may_be_silent_(is_sampled_ && !absences_.empty() &&
                     !core::keeps_steps_centrally(options.mode)),
      chance_random_(Random::stream(options.seed, 3)) {
  if (barrier::needs_paces(options.barrier)) paced_.resize(options.workers);
  if (const auto tuner = barrier::make_tuner(options.barrier))
    tuners_.assign(options.workers, *tuner);
  if (!barrier::is_weighted(options.barrier)) return;
  weights_.assign(options.workers, core::DrawWeights{options.barrier.weighting});
  ids_.resize(options.workers);
  std::iota(ids_.begin(), ids_.end(), MemberId{0});
}

std::uint64_t StepDraws::bytes_per_worker(const StepOptions& options) {
  std::uint64_t bytes = options.absences.empty() ? 0 : sizeof(Absence) + sizeof(Time);
  if (barrier::is_tuned(options.barrier)) bytes += sizeof(barrier::Tuner);
  if (barrier::needs_paces(options.barrier)) bytes += sizeof(PacedWorker);
  // A worker's weights: at most 56 bytes for each worker that it remembers, in vectors that may
  // have twice the capacity.
  if (barrier::is_weighted(options.barrier))
    bytes += sizeof(core::DrawWeights) + sizeof(MemberId) +
             112 * std::min(options.workers, core::DrawWeights::remembered_max);
  return bytes;
}

DrawResult StepDraws::decide(MemberId worker, std::span<const Step> steps, Time now,
                             Random& random) {
  pick(worker, steps, now, random);
  if (!tuners_.empty()) tuners_[worker].begin_draw();
  const barrier::Barrier& barrier = barrier_of(worker);
  const auto floor = barrier::floor(barrier, steps[worker]);
  seen_steps_.clear();
  seen_paces_.clear();
  silent_.clear();
  std::uint64_t laggards = 0;
  DrawResult result{false};
  for (const std::uint32_t position : drawn_positions_) {
    const MemberId other = position + (position >= worker ? 1U : 0U);
    const Step step = steps[other];
    if (!weights_.empty()) weights_[worker].on_question(other, now);
    if (may_be_silent_ && absences_.is_away(other, now)) {
      silent_.push_back({absences_.available_at(other, now), other});
      continue;
    }
    if (!weights_.empty()) weights_[worker].on_answer(other, reported(step), now);
    see(worker, other, reported(step));
    if (!floor || step >= *floor) continue;
    ++laggards;
    // Each drawn laggard is equally likely to be the first that answers.
    if (sends_notices_ && random.below(laggards) == 0) result.laggard = other;
  }
  const bool is_open = laggards == 0 || !can_laggard_decide(worker);
  if (!silent_.empty() && is_open)
    await_silent(worker, steps, now, result);
  else
    result.pass = is_open && decide_by_seen(worker, steps[worker]);
  return result;
}

DrawResult StepDraws::decide(MemberId worker, const StepCounts& counts, std::span<const Step> steps,
                             Random& random) const {
  const StepGroup& group = counts.group(steps[worker]);
  if (group.pass >= 1 || (group.pass > 0 && random.real() < group.pass)) return {true};
  if (!sends_notices_) return {false};
  // Each laggard is equally likely to be the first that answers, so random workers are tried until
  // one is a laggard. If there are few laggards, few draws fail: on average there are at most beta
  // trials for each draw.
  while (true) {
    const auto other = static_cast<MemberId>(random.below(options_.workers));
    if (steps[other] < group.floor) return {false, other};
  }
}

void StepDraws::record_push(MemberId worker, Time now, Step step) {
  PacedWorker& paced = paced_[worker];
  paced.pace.step = step;
  paced.pace.record_push(now, now - paced.step_began_at, chance_random_.real());
}

void StepDraws::see(MemberId worker, MemberId other, Step step) {
  seen_steps_.push_back(step);
  if (!tuners_.empty()) tuners_[worker].see(step);
  if (paced_.empty()) return;
  seen_paces_.push_back(paced_[other].pace);
  seen_paces_.back().step = step;
}

void StepDraws::see_silence() {
  seen_steps_.push_back(0);
  if (!paced_.empty()) seen_paces_.emplace_back();
}

bool StepDraws::decide_by_seen(MemberId worker, Step own_step) {
  const barrier::Barrier& barrier = barrier_of(worker);
  if (paced_.empty()) return barrier::admits(barrier, own_step, seen_steps_);
  PacedWorker& own = paced_[worker];
  const Step until = barrier::run_to(barrier, own.pace, seen_paces_);
  own.pace.waits = until <= own_step;
  if (until > own_step) own.run_end = until;
  return until > own_step;
}

/// Decides a draw that the workers which answer at once leave open: waits for those that are away,
/// in the order in which they come back, each at most for the query timeout.
void StepDraws::await_silent(MemberId worker, std::span<const Step> steps, Time now,
                             DrawResult& result) {
  const barrier::Barrier& barrier = barrier_of(worker);
  const auto floor = barrier::floor(barrier, steps[worker]);
  const Time timeout = now + core::query_timeout;
  std::ranges::sort(silent_, {}, [](const Silent& s) { return std::pair{s.back_at, s.worker}; });
  for (const auto& [back_at, other] : silent_) {
    const bool answers = back_at < timeout;
    result.decided_at = answers ? back_at : timeout;
    const Step step = reported(steps[other]);
    if (answers)
      see(worker, other, step);
    else
      see_silence();
    if (!answers || !floor || step >= *floor) continue;
    if (sends_notices_ && !result.laggard) result.laggard = other;
    if (can_laggard_decide(worker)) return;
  }
  result.pass = decide_by_seen(worker, steps[worker]);
}

/// Fills drawn_positions_ with the workers that a worker sees: a random draw, or all others.
void StepDraws::pick(MemberId worker, std::span<const Step> steps, Time now, Random& random) {
  const auto others = static_cast<std::uint32_t>(options_.workers - 1);
  const auto sees = static_cast<std::uint32_t>(barrier::seen_workers(barrier_of(worker), others));
  if (!weights_.empty())
    return barrier::draw_weighted(others, sees, weights_of(worker, steps, now), random,
                                  drawn_positions_);
  if (is_sampled_) return barrier::draw(others, sees, random, drawn_positions_);
  drawn_positions_.resize(sees);
  std::iota(drawn_positions_.begin(), drawn_positions_.end(), 0U);
}

std::span<const barrier::Weighted> StepDraws::weights_of(MemberId worker,
                                                         std::span<const Step> steps, Time now) {
  if (weights_.empty()) return {};
  // The workers that were away when they were asked, and have come back, have answered meanwhile.
  const auto open = weights_[worker].open_questions();
  const std::vector<core::DrawWeights::OpenQuestion> asked(open.begin(), open.end());
  for (const auto& [to, asked_at] : asked) {
    const Time answered_at = absences_.available_at(to, asked_at);
    if (answered_at <= now) weights_[worker].on_answer(to, reported(steps[to]), answered_at);
  }
  return weights_[worker].weights(ids_, worker, now);
}

}  // namespace starling::sim
