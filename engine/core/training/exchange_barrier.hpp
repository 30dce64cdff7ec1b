/// Which barriers go with an exchange. Pure function; thread-safe.
#pragma once

#include <string_view>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/mode.hpp"

namespace starling::core {

/// Refuses a job of this mode, exchange (`name`), barrier and recheck policy if it cannot work.
/// Includes check(mode, ...) of mode.hpp, which needs `workers`. Does not check how many workers
/// the exchange can have.
[[nodiscard]] Result<void> check_barrier_of_exchange(std::string_view name, Mode mode,
                                                     const barrier::Barrier& barrier,
                                                     const barrier::Recheck& recheck,
                                                     std::size_t workers);

}  // namespace starling::core
