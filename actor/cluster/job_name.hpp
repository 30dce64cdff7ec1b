/// The names of jobs, which clients choose by the setting `name`. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "starling/actor/wire/control.hpp"
#include "starling/base/result.hpp"

namespace starling::actor {

inline constexpr std::size_t job_name_max = 64;

/// Returns an Error if the name could be mistaken for a flag, a file or several words.
[[nodiscard]] Result<void> check_job_name(std::string_view name);

/// Returns the text of the setting `key`, or "" if there is none.
[[nodiscard]] std::string setting_of(const wire::JobSettings& settings, std::string_view key);

/// Returns the job's name or, if it has no valid one, its id in digits.
[[nodiscard]] std::string name_of(const wire::JobSettings& settings, wire::JobId job);

/// Describes a job by its settings `model`, `data`, `mode` and `barrier`, without those that are
/// not given: "softmax on digits, peer, pssp:s=4,beta=2". Describes a flow by its name and its
/// files: "flow wordcount on a.txt and 2 more".
[[nodiscard]] std::string summary_of(const wire::JobSettings& settings);

}  // namespace starling::actor
