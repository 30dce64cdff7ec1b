/// Chooses names for jobs without one. Pure; any thread.
#pragma once

#include <set>
#include <string>

#include "starling/actor/wire/control.hpp"

namespace starling::program {

/// Returns the beginning of a name for a job, from its model and data: "softmax-digits".
[[nodiscard]] std::string name_stem(const wire::JobSettings& settings);

/// Returns `stem` and a number, one more than the highest that names in `taken` have after `stem`:
/// "softmax-digits-3".
[[nodiscard]] std::string next_name(const std::string& stem, const std::set<std::string>& taken);

}  // namespace starling::program
