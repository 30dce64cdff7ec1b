/// The version of this build.
#pragma once

#include <string>

namespace starling::program {

[[nodiscard]] std::string version();

/// The commit that it was built from, `unknown` outside of a repository.
[[nodiscard]] std::string commit();

}  // namespace starling::program
