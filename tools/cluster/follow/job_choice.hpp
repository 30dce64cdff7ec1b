/// Which job a person means by a few letters of its name or number. Pure; any thread.
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
  /// A description for people who have to choose.
  std::string what;
};

/// Returns the index of the candidate whose name or number is `text`, or begins with `text` while
/// no other does. An empty text means the only candidate. `none` is the error where there is no
/// candidate.
[[nodiscard]] Result<std::size_t> choose(std::string_view text,
                                         const std::vector<JobCandidate>& candidates,
                                         const std::string& none);

}  // namespace starling::program
