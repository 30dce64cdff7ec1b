/// The version of this build.
#pragma once

#include <string>

namespace starling::program {

[[nodiscard]] std::string version();

/// The commit of this build; `unknown` if it was built outside of a repository.
[[nodiscard]] std::string commit();

}  // namespace starling::program
