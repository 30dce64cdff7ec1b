/// Checks the names that clients give jobs by the setting `name`, and makes the names and the
/// descriptions of jobs that users see. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "starling/actor/wire/control.hpp"
#include "starling/base/result.hpp"

namespace starling::actor {

/// The most characters that a job's name may have.
inline constexpr std::size_t job_name_max = 64;

/// Returns an Error unless `name` has 1 to job_name_max characters, begins with an ASCII letter or
/// digit, and contains only ASCII letters, digits, `-`, `_` and `.`.
[[nodiscard]] Result<void> check_job_name(std::string_view name);

/// Returns the value of the first setting `key`, or "" if there is none.
[[nodiscard]] std::string setting_of(const wire::JobSettings& settings, std::string_view key);

/// Returns the setting `name` or, if it is missing or not valid, the job's id in decimal.
[[nodiscard]] std::string name_of(const wire::JobSettings& settings, wire::JobId job);

/// Describes a job by its settings `model`, `data`, `mode` and `barrier`, and by its `exchange` if
/// that is not the default. Leaves out settings that are missing. An example:
/// "softmax on digits, peer, pssp:s=4,beta=2". Describes a flow by its name and its input files:
/// "flow wordcount on a.txt and 2 more".
[[nodiscard]] std::string summary_of(const wire::JobSettings& settings);

}  // namespace starling::actor
