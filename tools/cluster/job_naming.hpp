/// Chooses names for jobs without one. Pure; any thread.
#pragma once

#include <set>
#include <string>

#include "starling/actor/wire/control.hpp"

namespace starling::program {

/// "softmax-digits" of a job's model and data: words that a person can say, and a valid name.
[[nodiscard]] std::string name_stem(const wire::JobSettings& settings);

/// `stem` with the number behind the highest that follows it in `taken`: "softmax-digits-3".
[[nodiscard]] std::string next_name(const std::string& stem, const std::set<std::string>& taken);

}  // namespace starling::program
