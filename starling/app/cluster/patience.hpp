/// How long a job on a cluster waits for nodes that it cannot go on without: the setting
/// `patience`.
#pragma once

#include <chrono>
#include <string>

#include "starling/base/result.hpp"

namespace starling::app {

inline constexpr std::chrono::seconds patience_default{30};

[[nodiscard]] Result<std::chrono::nanoseconds> parse_patience(const std::string& text);

}  // namespace starling::app
