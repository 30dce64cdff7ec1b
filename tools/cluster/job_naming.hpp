/// Chooses names for jobs to which the user gave none. Pure functions; thread-safe.
#pragma once

#include <set>
#include <string>

#include "starling/actor/wire/control.hpp"

namespace starling::program {

/// Returns the beginning of a job's name: from its model, if the settings name one, and its data,
/// such as "softmax-digits"; or from its flow and its first file, such as "wordcount-corpus".
[[nodiscard]] std::string name_stem(const wire::JobSettings& settings);

/// Returns `stem`, a hyphen and a number: one more than the highest number of such a name in
/// `taken`. An example is "softmax-digits-3".
[[nodiscard]] std::string next_name(const std::string& stem, const std::set<std::string>& taken);

}  // namespace starling::program
