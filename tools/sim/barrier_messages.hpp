/// The kinds of messages that barriers send. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "starling/engine/sim/steps/steps.hpp"

namespace starling::program {

/// Each kind's name in reports, and its count in sim::Messages.
inline constexpr std::array<std::pair<const char*, std::uint64_t sim::Messages::*>, 6>
    barrier_messages{{{"arrivals", &sim::Messages::arrivals},
                      {"releases", &sim::Messages::releases},
                      {"queries", &sim::Messages::queries},
                      {"answers", &sim::Messages::answers},
                      {"notify_requests", &sim::Messages::notify_requests},
                      {"notices", &sim::Messages::notices}}};

}  // namespace starling::program
