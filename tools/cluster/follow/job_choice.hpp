/// Finds the job that a user names by its name, its number, or the beginning of either. Pure
/// functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/actor/wire/control.hpp"
#include "starling/base/result.hpp"

namespace starling::program {

struct JobCandidate {
  wire::JobId job = 0;
  std::string name;
  /// The job's model, data and so on, to help a user who has to choose; may be empty.
  std::string description;
};

/// Returns the index of the candidate whose name or number is `text`; if there is none, that of the
/// only candidate whose name or number begins with `text`. An empty `text` stands for the only
/// candidate. Returns an Error if no candidate or several match. `no_candidate` ends the error
/// message if `candidates` is empty. A job with the number 0 can be chosen by its name only.
[[nodiscard]] Result<std::size_t> choose(std::string_view text,
                                         const std::vector<JobCandidate>& candidates,
                                         const std::string& no_candidate);

}  // namespace starling::program
