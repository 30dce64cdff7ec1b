/// Runs scenarios that tests have as texts.
#pragma once

#include <string_view>

#include "starling/engine/sim/chaos/chaos.hpp"

namespace starling::sim {

/// Requires: `text` is valid as the text of a scenario.
inline ChaosReport run_text(std::string_view text) {
  return run_chaos(parse_scenario(text).value());
}

}  // namespace starling::sim
