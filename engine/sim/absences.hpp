/// When the workers of a simulation are away (starling::Absence). Not thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/base/straggler.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/ids.hpp"

namespace starling::sim {

using core::MemberId;
using core::Time;

/// A worker's periods begin at a random moment, which the seed decides: so the workers are not away
/// all at once. A member without an absence is always there.
class Absences {
 public:
  /// Requires: check_absences() accepts `absences`, which has one for each worker or is empty.
  Absences(const std::vector<Absence>& absences, std::uint64_t seed) : absences_(absences) {
    constexpr std::uint64_t key = 3;
    for (MemberId worker = 0; worker < absences.size(); ++worker) {
      const Time period = absences[worker].period;
      auto random = Random::stream(seed, key, worker);
      phases_.push_back(period > Time{} ? Time{static_cast<Time::rep>(random.below(
                                              static_cast<std::uint64_t>(period.count())))}
                                        : Time{});
    }
  }

  [[nodiscard]] bool empty() const noexcept { return absences_.empty(); }

  /// Returns the first moment, from `at` on, at which the member is there.
  [[nodiscard]] Time available_at(MemberId member, Time at) const {
    if (!is_ever_away(member)) return at;
    const Time passed = passed_of_period(member, at);
    return passed < absences_[member].away ? at + (absences_[member].away - passed) : at;
  }
  [[nodiscard]] bool is_away(MemberId member, Time at) const {
    return available_at(member, at) > at;
  }
  /// Returns how long the member takes to work for `work` from `from` on; it does not work while it
  /// is away. At most 90 years.
  [[nodiscard]] Time time_to_work(MemberId member, Time from, Time work) const {
    if (!is_ever_away(member)) return work;
    const auto [away, period] = absences_[member];
    const Time until_start = available_at(member, from) - from;
    const Time left = period - passed_of_period(member, from + until_start);
    if (work < left) return until_start + work;
    const Time::rep more_absences = (work - left) / (period - away);
    constexpr Time longest = std::chrono::hours{24LL * 365 * 90};
    const double total =
        static_cast<double>(work.count()) +
        static_cast<double>(away.count()) * (static_cast<double>(more_absences) + 2);
    if (total > static_cast<double>(longest.count())) return longest;
    return until_start + work + away * (more_absences + 1);
  }

 private:
  [[nodiscard]] bool is_ever_away(MemberId member) const {
    return member < absences_.size() && absences_[member].away > Time{};
  }
  [[nodiscard]] Time passed_of_period(MemberId member, Time at) const {
    return (at + phases_[member]) % absences_[member].period;
  }

  std::vector<Absence> absences_;
  /// By worker: how much of its period has passed at time 0.
  std::vector<Time> phases_;
};

/// Refuses a number of absences other than 0 and the number of workers, and absences that last for
/// the whole period or for a negative time.
[[nodiscard]] inline Result<void> check_absences(const std::vector<Absence>& absences,
                                                 std::size_t workers) {
  if (absences.empty()) return {};
  if (absences.size() != workers)
    return Error{std::to_string(absences.size()) + " absences for " + std::to_string(workers) +
                 " workers; valid: one for each, or none"};
  for (const auto& [away, period] : absences)
    if (away < Time{} || (away > Time{} && away >= period))
      return Error{"absence of " + print_duration(away) + " in each " + print_duration(period) +
                   "; valid: from 0 to below the period"};
  return {};
}

}  // namespace starling::sim
