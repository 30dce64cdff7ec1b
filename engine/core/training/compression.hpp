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

/// Returns true if the members of the exchange compress what they send themselves, by bf16
/// (ExchangeOptions::rounds_to_bf16), so that workers hand it whole gradients. Requires:
/// check_exchange(exchange).
[[nodiscard]] bool exchange_compresses(const models::Compression& compression,
                                       std::string_view exchange);

/// Refuses a compression rule with an exchange that is unknown, or whose members do not send
/// gradients, unless they can round what they send; with a barrier that measures the
/// loss by whole gradients; for elements that are not floats; and for row-sparse parameters, whose
/// steps send few rows already.
[[nodiscard]] Result<void> check_compression(const models::Compression& compression,
                                             std::string_view exchange,
                                             const barrier::Barrier& barrier,
                                             const std::vector<models::Parameter>& parameters,
                                             std::size_t element_bytes);

}  // namespace starling::core
