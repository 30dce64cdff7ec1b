#include "starling/tools/cluster/follow/job_choice.hpp"

namespace starling::program {
namespace {

/// At most so many are listed.
constexpr std::size_t listed_max = 20;

std::string list(const std::vector<JobCandidate>& candidates,
                 const std::vector<std::size_t>& chosen) {
  std::string text;
  for (std::size_t i = 0; i < chosen.size() && i < listed_max; ++i) {
    const JobCandidate& one = candidates[chosen[i]];
    bool is_doubled = false;
    for (const JobCandidate& other : candidates)
      is_doubled = is_doubled || (&other != &one && other.name == one.name);
    text += (text.empty() ? "" : ", ") + one.name;
    const std::string number = is_doubled ? std::to_string(one.job) : std::string{};
    const std::string both = number + (number.empty() || one.what.empty() ? "" : ", ") + one.what;
    if (!both.empty()) text += " (" + both + ")";
  }
  if (chosen.size() > listed_max)
    text += " and " + std::to_string(chosen.size() - listed_max) + " others";
  return text;
}

/// The candidates that `fits`.
template <class Fits>
std::vector<std::size_t> those(const std::vector<JobCandidate>& candidates, Fits fits) {
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (fits(candidates[i])) some.push_back(i);
  return some;
}

}  // namespace

Result<std::size_t> choose(std::string_view text, const std::vector<JobCandidate>& candidates,
                           const std::string& none) {
  const auto all = those(candidates, [](const auto&) { return true; });
  if (all.empty()) return Error{none};
  if (text.empty()) {
    if (all.size() == 1) return std::size_t{0};
    return Error{"which of several jobs is not said; valid: " + list(candidates, all)};
  }
  auto found = those(candidates, [&](const JobCandidate& one) {
    return one.name == text || (one.job != 0 && std::to_string(one.job) == text);
  });
  if (found.empty())
    found = those(candidates, [&](const JobCandidate& one) {
      return one.name.starts_with(text) ||
             (one.job != 0 && std::to_string(one.job).starts_with(text));
    });
  if (found.size() == 1) return found[0];
  const std::string word = "'" + std::string{text} + "'";
  if (found.empty()) return Error{word + " is no job here; valid: " + list(candidates, all)};
  return Error{word + " means more than one job; valid: one of " + list(candidates, found)};
}

}  // namespace starling::program
