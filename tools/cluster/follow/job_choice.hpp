/// Finds the job that a user names by its name, its number, or the beginning of either. Pure; any
/// thread.
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
  /// Says which job it is, for a user who has to choose.
  std::string description;
};

/// Returns the index of the candidate whose name or number is `text`, or of the only one whose name
/// or number begins with `text`. An empty text stands for the only candidate. `no_candidate` is the
/// error message if there is none.
[[nodiscard]] Result<std::size_t> choose(std::string_view text,
                                         const std::vector<JobCandidate>& candidates,
                                         const std::string& no_candidate);

}  // namespace starling::program
