/// The options of `starling sim`. Each is a flag `--NAME` and a line of a job file, in its table
/// [sim] or, if a training job has the option too, at its top. A new option is one entry in
/// sim_keys.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/sim/sim_job.hpp"

namespace starling::program {

/// The input of SimKey::set: a value as text, and the job in which to store it.
struct SimKeyInput {
  SimJob& job;
  const Registry& registry;
  const std::string& text;
};

struct SimKey : KeyDescription {
  /// Parses a value and stores it in a job. An Error says what is wrong with the value.
  Result<void> (*set)(const SimKeyInput& in) = nullptr;
};

[[nodiscard]] const std::vector<SimKey>& sim_keys();

/// True for the options of an exchange. With `--level step` they have an effect only if `bytes` is
/// set.
[[nodiscard]] bool is_exchange_key(std::string_view name);

/// True for the options of the network.
[[nodiscard]] bool is_network_key(std::string_view name);

/// Returns the option of that name; null if there is none.
[[nodiscard]] const SimKey* find_sim_key(std::string_view name);

}  // namespace starling::program
