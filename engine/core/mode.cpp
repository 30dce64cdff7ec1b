#include "starling/engine/core/mode.hpp"

#include <algorithm>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"

namespace starling::core {
namespace {

/// In the order of Mode's enumerators.
const std::vector<std::string> mode_names{"central", "hybrid", "peer"};

/// Returns examples of the barriers that do not need every worker's step, each followed by a comma.
std::string distributed_barriers(std::size_t workers) {
  std::string text;
  for (const auto& barrier : barrier::descriptions(std::min<std::size_t>(2, workers - 1)))
    if (!barrier.central_only) text += barrier.example + ", ";
  return text;
}

}  // namespace

Result<Mode> parse_mode(std::string_view text) {
  const auto found = std::ranges::find(mode_names, text);
  if (found == mode_names.end())
    return Error{"mode: '" + std::string{text} + "' is unknown; " + suggest(text, mode_names)};
  return static_cast<Mode>(found - mode_names.begin());
}

std::string print(Mode mode) { return mode_names[static_cast<std::size_t>(mode)]; }

Result<void> check(Mode mode, const barrier::Barrier& barrier, const barrier::Recheck& recheck,
                   std::size_t workers, bool is_exchange_barrier, std::string_view alternative) {
  if (workers == 0) return Error{"workers=0: a job needs at least 1 worker"};
  if (!keeps_steps_centrally(mode) && !is_exchange_barrier && barrier::needs_every_step(barrier))
    return Error{"barrier " + barrier::print(barrier) +
                 " needs to see every worker's step, which no one does in " + print(mode) +
                 " mode; valid there: " + distributed_barriers(workers) + "or use " +
                 std::string{alternative}};
  constexpr barrier::Recheck::Duration automatic = barrier::Recheck::automatic;
  const auto interval = recheck.interval.value_or(automatic);
  if (interval != automatic && interval.count() <= 0)
    return Error{"recheck: the interval must be longer than 0; valid: interval:5ms, interval:auto"};
  if (interval > parsed_duration_max)
    return Error{"recheck: the interval is too long; valid: at most 285 years"};
  if (!keeps_steps_centrally(mode) && recheck.arrival)
    return Error{"recheck arrival works in central mode only; valid in " + print(mode) +
                 " mode: notify, interval:5ms, notify+interval:auto"};
  if (keeps_steps_centrally(mode) && barrier::is_weighted(barrier)) {
    barrier::Barrier uniform = barrier;
    uniform.weighting = barrier::Weighting::uniform;
    return Error{"barrier " + barrier::print(barrier) + ": draw=" + print(barrier.weighting) +
                 " needs workers that ask each other, which they do not in central mode; valid "
                 "there: " +
                 barrier::print(uniform) + ", or use mode hybrid or peer"};
  }
  return barrier::check(barrier, workers);
}

}  // namespace starling::core
