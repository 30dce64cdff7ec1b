/// Validates the options of a simulation of steps, and estimates its memory.
#include <algorithm>
#include <cmath>
#include <string>

#include "starling/barrier/tuner.hpp"
#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/engine/core/training/exchange_barrier.hpp"
#include "starling/engine/sim/absences.hpp"
#include "starling/engine/sim/steps/notify_requests.hpp"
#include "starling/engine/sim/steps/step_draws.hpp"
#include "starling/engine/sim/steps/steps.hpp"
#include "starling/engine/sim/steps/waiter.hpp"

namespace starling::sim {
namespace {

Result<void> check_exchange(const StepOptions& options) {
  if (!options.exchange) return {};
  const auto& exchange = *options.exchange;
  if (auto valid = check(exchange, options.mode, options.workers); !valid) return valid;
  if (!options.absences.empty())
    return Error{
        "straggler: a worker that is away would answer no message, and exchanges are "
        "simulated without such workers; valid: a slow one, as 5%:4x, or --level protocol"};
  return core::check_barrier_of_exchange(exchange.name, options.mode, options.barrier,
                                         options.recheck, options.workers);
}

Result<void> check_slowness(const StepOptions& options) {
  if (options.slowness.empty()) return {};
  if (options.slowness.size() != options.workers)
    return Error{std::to_string(options.slowness.size()) + " slowness factors for " +
                 std::to_string(options.workers) + " workers; valid: one for each, or none"};
  for (const double factor : options.slowness)
    if (!(factor > 0 && factor <= 1e6))
      return Error{"slowness factor " + print_number(factor) +
                   "; valid: a number above 0, at most 1000000"};
  return {};
}

}  // namespace

Result<void> check_of_both_levels(const StepOptions& options) {
  constexpr std::size_t workers_max = std::size_t{1} << 31U;
  constexpr Time horizon_max = std::chrono::hours{24LL * 365 * 200};
  if (options.workers == 0 || options.workers > workers_max)
    return Error{"workers: " + std::to_string(options.workers) + "; valid: 1 to " +
                 std::to_string(workers_max)};
  if (auto valid = barrier::check(options.barrier, options.workers); !valid) return valid;
  if (options.horizon <= Time{0} || options.horizon > horizon_max)
    return Error{"horizon: " + print_duration(options.horizon) +
                 "; valid: longer than 0, at most 200 years"};
  if (to_duration(options.step_time.mean() * 1e9) <= Time{0})
    return Error{"step time: " + print(options.step_time) +
                 " takes no time; valid: a law with a mean above 0, as exp:100ms"};
  const auto& interval = options.recheck.interval;
  if (interval && *interval != barrier::Recheck::automatic && *interval <= Time{0})
    return Error{"recheck: the interval must be longer than 0"};
  if (options.steps_max == 0) return Error{"last step: 0; valid: 1 or more"};
  if (auto valid = check_absences(options.absences, options.workers); !valid) return valid;
  return check_slowness(options);
}

Result<void> check(const StepOptions& options) {
  if (barrier::has_rounds(options.barrier))
    return Error{"barrier " + barrier::print(options.barrier) +
                 ": lets all workers go on together, which a simulation at the step level does not "
                 "do; valid: --level protocol, or another barrier"};
  if (barrier::hands_in_early(options.barrier))
    return Error{"barrier " + barrier::print(options.barrier) +
                 ": hands in some of a step's samples, and the step level simulates steps without "
                 "samples; valid: --level protocol, or another barrier"};
  if (barrier::moves_with_descent(options.barrier))
    return Error{
        "barrier " + barrier::print(options.barrier) +
        ": moves with the gradients of a model, and the step level simulates steps without "
        "gradients; valid: --level protocol, tuned:waiting=5%, tuned:staleness=3"};
  const bool is_central = core::keeps_steps_centrally(options.mode);
  if (is_central && barrier::is_weighted(options.barrier))
    return Error{"barrier " + barrier::print(options.barrier) +
                 ": a coordinator draws uniformly; valid: mode hybrid or peer"};
  if (!is_central && !options.absences.empty() && barrier::is_sampled(options.barrier) &&
      options.recheck.arrival)
    return Error{"recheck " + barrier::print(options.recheck) +
                 ": workers that ask others which are away learn of no arrival; valid: notify, "
                 "interval:5ms, notify+interval:auto"};
  if (auto valid = check_exchange(options); !valid) return valid;
  return check_of_both_levels(options);
}

double share_done(const StepOptions& options, Time now, std::uint64_t updates) {
  const double of_time =
      static_cast<double>(now.count()) / static_cast<double>(options.horizon.count());
  if (options.steps_max == barrier::finished) return of_time;
  const double updates_max =
      static_cast<double>(options.steps_max) * static_cast<double>(options.workers);
  return std::max(of_time, static_cast<double>(updates) / updates_max);
}

Time time_of_point(const StepOptions& options, std::size_t index) {
  const auto share = static_cast<double>(index + 1) /
                     static_cast<double>(std::max<std::size_t>(1, options.points));
  return Time{std::llround(share * static_cast<double>(options.horizon.count()))};
}

std::uint64_t memory_estimate(const StepOptions& options) {
  const bool has_timers = barrier::is_sampled(options.barrier) &&
                          (!options.recheck.arrival || options.recheck.interval);
  // A worker's step, its event in a half-full bucket, its entry among the waiters of a half-full
  // group, and its entry in the result.
  std::uint64_t per_worker = 144;
  if (!options.slowness.empty()) per_worker += sizeof(double);
  if (has_timers) per_worker += sizeof(Waiter) + 64;  // 64 bytes for stale events
  if (has_timers && options.recheck.notify)           // 96 requests: the largest number observed
    per_worker += sizeof(NotifyRequests) + 96 * sizeof(NotifyRequest);
  per_worker += StepDraws::bytes_per_worker(options);
  if (options.exchange)
    per_worker += bytes_per_worker(*options.exchange, options.mode, options.workers);
  return options.workers * per_worker + options.points * sizeof(Point) + (std::uint64_t{1} << 24U);
}

}  // namespace starling::sim
