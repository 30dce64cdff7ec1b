/// The version of this build.
#pragma once

#include <string>

namespace starling::app {

[[nodiscard]] std::string version();

}  // namespace starling::app
