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

/// Returns true if the exchange compresses: its members round what they send to bf16
/// (ExchangeOptions::rounds_to_bf16). Workers then hand uncompressed gradients to the exchange.
/// Requires: check_exchange(exchange).
[[nodiscard]] bool exchange_compresses(const models::Compression& compression,
                                       std::string_view exchange);

/// Returns an Error if the rule compresses gradients, and one of these is true:
///  - the exchange is unknown;
///  - the rule is sparse (sends_sparse()), and members of the exchange send each other models;
///  - the rule is not sparse, members of the exchange send each other sums or models, and they
///    cannot round these to bf16;
///  - the barrier needs uncompressed gradients, by which it measures the loss;
///  - the elements are not floats;
///  - a parameter is row-sparse: the steps already send only the rows of it that they touch.
[[nodiscard]] Result<void> check_compression(const models::Compression& compression,
                                             std::string_view exchange,
                                             const barrier::Barrier& barrier,
                                             const std::vector<models::Parameter>& parameters,
                                             std::size_t element_bytes);

}  // namespace starling::core
