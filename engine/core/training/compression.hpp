/// Which jobs can compress the gradients that their workers send
/// (models/optimizer/compression.hpp).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/models/optimizer/compression.hpp"
#include "starling/models/parameter.hpp"

namespace starling::core {

/// Refuses a compression rule with an exchange that is unknown, or whose members do not send
/// gradients, or send sums of them that would not get shorter; with a barrier that measures the
/// loss by whole gradients; for elements that are not floats; and for row-sparse parameters, whose
/// steps send few rows already.
[[nodiscard]] Result<void> check_compression(const models::Compression& compression,
                                             std::string_view exchange,
                                             const barrier::Barrier& barrier,
                                             const std::vector<models::Parameter>& parameters,
                                             std::size_t element_bytes);

}  // namespace starling::core
