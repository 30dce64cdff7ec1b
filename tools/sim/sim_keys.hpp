/// The keys of `starling sim`: every key is a flag `--key` and a line of a job file, in its table
/// [sim] or, where a job has the key too, at its top. A new key is one entry in sim_keys.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/sim/sim_job.hpp"

namespace starling::program {

/// The text of a value, and the simulation that it is put into.
struct SimKeyInput {
  SimJob& job;
  const Registry& registry;
  const std::string& text;
};

struct SimKey : KeyForm {
  /// Puts a value into a simulation, or says what is wrong with it.
  Result<void> (*set)(const SimKeyInput& in) = nullptr;
};

[[nodiscard]] const std::vector<SimKey>& sim_keys();

/// True for the keys of the network, which only the protocol level has.
[[nodiscard]] bool is_network_key(std::string_view name);

/// Returns null where no key has that name.
[[nodiscard]] const SimKey* find_sim_key(std::string_view name);

}  // namespace starling::program
