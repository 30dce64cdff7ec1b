#include "starling/base/straggler.hpp"

#include <cmath>

#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"

namespace starling {
namespace {

/// Returns what happens to the stragglers: "4x", or "away=5s/10s".
std::string print_effect(const StragglerRule& straggler) {
  const auto& [away, period] = straggler.absence;
  if (away.count() > 0) return "away=" + print_duration(away) + "/" + print_duration(period);
  return print_number(straggler.factor) + "x";
}

/// Reads `5s/10s`, the time away and the period. `subject` begins an error.
Result<Absence> parse_absence(std::string_view text, const std::string& subject) {
  const auto times = split(text, '/');
  const auto bad_form = [&] {
    return Error{subject + " has no valid form; valid: away=5s/10s (away for 5s of each 10s)"};
  };
  if (times.size() != 2) return bad_form();
  const auto away = parse_duration(times[0]);
  const auto period = parse_duration(times[1]);
  if (!away || !period) return bad_form();
  if (away->count() == 0) return Error{subject + ": nobody is away; valid: longer than 0s"};
  if (*away >= *period)
    return Error{subject + ": nobody is ever back; valid: away for less than the period, " +
                 print_duration(*period)};
  return Absence{*away, *period};
}

/// Returns the error for a share that rounds to no worker, so that the job would have no
/// stragglers.
Error empty_share_error(const StragglerRule& straggler, std::size_t workers) {
  const std::string what = ":" + print_effect(straggler);
  return Error{"straggler " + print(straggler) + ": this share of " + std::to_string(workers) +
               " workers rounds to none; valid: " +
               print_number(std::ceil(500.0 / static_cast<double>(workers)) / 10) + "%" + what +
               " or more, or a number of workers, 1" + what};
}

/// Returns a value for each worker: `member` of the rule by which it is a straggler, or `usual`.
template <class Value>
Result<std::vector<Value>> values_of_workers(const std::vector<StragglerRule>& stragglers,
                                             std::size_t workers, Value usual,
                                             Value StragglerRule::*member) {
  std::vector<Value> values(workers, usual);
  std::size_t unaffected = workers;
  for (const StragglerRule& straggler : stragglers) {
    const auto share = std::llround(straggler.share * static_cast<double>(workers));
    if (straggler.share > 0 && share == 0) return empty_share_error(straggler, workers);
    const std::size_t count = straggler.count + static_cast<std::size_t>(share);
    if (count > unaffected)
      return Error{"straggler " + print(straggler) + ": more stragglers than the job's " +
                   print_count(workers, "worker") + "; valid: up to " + std::to_string(workers) +
                   " in all"};
    for (std::size_t i = 0; i < count; ++i) values[--unaffected] = straggler.*member;
  }
  return values;
}

}  // namespace

Result<StragglerRule> parse_straggler(std::string_view text) {
  const std::string subject = "straggler " + quote(text);
  const Error bad_form{
      subject +
      " has no valid form; valid: 1:4x (one worker, 4 times slower), 25%:4x or 25%:away=5s/10s"};
  constexpr std::string_view away = "away=";
  const auto parts = split(text, ':');
  if (parts.size() != 2 || parts[0].empty()) return bad_form;
  const bool is_away = parts[1].starts_with(away);
  if (!is_away && !parts[1].ends_with('x')) return bad_form;
  StragglerRule straggler;
  if (parts[0].ends_with('%')) {
    const auto percent = parse_number(parts[0].substr(0, parts[0].size() - 1));
    if (!percent) return bad_form;
    if (!(*percent > 0 && *percent <= 100))
      return Error{subject + ": no such share; valid: above 0 % and at most 100 %"};
    straggler.share = *percent / 100;
  } else {
    const auto count = parse_count(parts[0]);
    if (!count) return bad_form;
    if (*count == 0) return Error{subject + ": slows nobody; valid: 1 worker or more"};
    straggler.count = *count;
  }
  if (is_away) {
    const auto absence = parse_absence(parts[1].substr(away.size()), subject);
    if (!absence) return absence.error();
    straggler.absence = *absence;
    return straggler;
  }
  const auto factor = parse_number(parts[1].substr(0, parts[1].size() - 1));
  if (!factor) return bad_form;
  if (!(*factor >= 1 && *factor <= 1e6))
    return Error{subject + ": no such factor; valid: from 1 to 1000000"};
  straggler.factor = *factor;
  return straggler;
}

std::string print(const StragglerRule& straggler) {
  const std::string stragglers =
      straggler.share > 0 ? print_percent(straggler.share) : std::to_string(straggler.count);
  return stragglers + ":" + print_effect(straggler);
}

Result<std::vector<double>> slowdown_factors(const std::vector<StragglerRule>& stragglers,
                                             std::size_t workers) {
  return values_of_workers(stragglers, workers, 1.0, &StragglerRule::factor);
}

Result<std::vector<Absence>> absences(const std::vector<StragglerRule>& stragglers,
                                      std::size_t workers) {
  if (check_always_available(stragglers)) return std::vector<Absence>{};
  return values_of_workers(stragglers, workers, Absence{}, &StragglerRule::absence);
}

Result<void> check_always_available(const std::vector<StragglerRule>& stragglers) {
  for (const StragglerRule& straggler : stragglers)
    if (straggler.absence.away.count() > 0)
      return Error{"straggler " + print(straggler) +
                   ": only simulated workers can be away; valid: slow ones, as 1:4x, or "
                   "`starling sim`"};
  return {};
}

std::chrono::nanoseconds extra_delay(std::chrono::nanoseconds compute_time,
                                     std::chrono::nanoseconds delay, double factor) {
  return to_duration(static_cast<double>((compute_time + delay).count()) * factor) - compute_time;
}

}  // namespace starling
