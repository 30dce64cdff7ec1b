/// Names of jobs, for people: the setting `name`. Plain functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "starling/actor/wire/control.hpp"
#include "starling/base/result.hpp"

namespace starling::actor {

inline constexpr std::size_t job_name_max = 64;

/// Refuses what could be taken for a flag, a file or several words.
[[nodiscard]] Result<void> check_job_name(std::string_view name);

/// The text of a setting; empty where there is none.
[[nodiscard]] std::string text_of(const wire::JobSettings& settings, std::string_view key);

/// The job's name, or its number where it has none.
[[nodiscard]] std::string name_of(const wire::JobSettings& settings, wire::JobId job);

/// A description, as far as the settings give it: "softmax on digits, peer, pssp:s=4,beta=2".
[[nodiscard]] std::string summary_of(const wire::JobSettings& settings);

}  // namespace starling::actor
