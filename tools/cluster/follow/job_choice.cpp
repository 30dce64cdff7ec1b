#include "starling/tools/cluster/follow/job_choice.hpp"

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// The most candidates that an error lists.
constexpr std::size_t listed_max = 20;

/// Returns the names and descriptions of the candidates with the indices `chosen`. A name that
/// several candidates have is followed by the job's number.
std::string list(const std::vector<JobCandidate>& candidates,
                 const std::vector<std::size_t>& chosen) {
  std::string text;
  for (std::size_t i = 0; i < chosen.size() && i < listed_max; ++i) {
    const JobCandidate& job = candidates[chosen[i]];
    bool is_ambiguous = false;
    for (const JobCandidate& other : candidates)
      is_ambiguous = is_ambiguous || (&other != &job && other.name == job.name);
    text += (text.empty() ? "" : ", ") + job.name;
    const std::string number = is_ambiguous ? std::to_string(job.job) : std::string{};
    const std::string separator = number.empty() || job.description.empty() ? "" : ", ";
    const std::string details = number + separator + job.description;
    if (!details.empty()) text += " (" + details + ")";
  }
  if (chosen.size() > listed_max)
    text += " and " + std::to_string(chosen.size() - listed_max) + " others";
  return text;
}

/// Returns the indices of the candidates for which `matches` holds.
template <class Matches>
std::vector<std::size_t> indices_of(const std::vector<JobCandidate>& candidates, Matches matches) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (matches(candidates[i])) indices.push_back(i);
  return indices;
}

}  // namespace

Result<std::size_t> choose(std::string_view text, const std::vector<JobCandidate>& candidates,
                           const std::string& no_candidate) {
  const auto all = indices_of(candidates, [](const auto&) { return true; });
  const std::string quoted = quote(text);
  if (all.empty()) return Error{text.empty() ? no_candidate : quoted + ": " + no_candidate};
  if (text.empty()) {
    if (all.size() == 1) return std::size_t{0};
    return Error{"there are several jobs, and none is named; valid: " + list(candidates, all)};
  }
  auto found = indices_of(candidates, [&](const JobCandidate& candidate) {
    return candidate.name == text || (candidate.job != 0 && std::to_string(candidate.job) == text);
  });
  if (found.empty())
    found = indices_of(candidates, [&](const JobCandidate& candidate) {
      return candidate.name.starts_with(text) ||
             (candidate.job != 0 && std::to_string(candidate.job).starts_with(text));
    });
  if (found.size() == 1) return found[0];
  if (found.empty()) return Error{quoted + " is not a job here; valid: " + list(candidates, all)};
  return Error{quoted + " matches more than one job; valid: one of " + list(candidates, found)};
}

}  // namespace starling::program
