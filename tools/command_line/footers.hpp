/// The texts below the flags in the help of commands. Pure functions; any thread.
#pragma once

#include <string>

#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Returns the part of a help text that lists the data sources.
[[nodiscard]] std::string sources_help(const Registry& registry);

[[nodiscard]] std::string data_and_models_help(const Registry& registry);
[[nodiscard]] std::string train_footer(const Registry& registry);
[[nodiscard]] std::string submit_footer(const Registry& registry);
[[nodiscard]] std::string sim_footer(const Registry& registry);
[[nodiscard]] std::string twin_footer(const Registry& registry);

}  // namespace starling::program
