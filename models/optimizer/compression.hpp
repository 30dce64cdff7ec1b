/// Gradient compression: which part of each gradient a worker sends. To add a rule, write a file in
/// compressions/, include it here and name it in Compression. Plain values and functions; any
/// thread may call them on memory of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "starling/base/result.hpp"
#include "starling/models/optimizer/compressions/bf16.hpp"
#include "starling/models/optimizer/compressions/none.hpp"
#include "starling/models/optimizer/compressions/threshold.hpp"
#include "starling/models/optimizer/compressions/top_k.hpp"

namespace starling::models {

/// One of the compression rules.
using Compression = std::variant<NoCompression, TopK, Threshold, Bf16>;

/// Reads a rule with its options, such as `topk:share=1%`.
[[nodiscard]] Result<Compression> parse_compression(std::string_view text);

/// Returns text that parse_compression reads back to the same value.
[[nodiscard]] std::string print(const Compression& compression);

/// Returns true unless workers send their whole gradients, as NoCompression does.
[[nodiscard]] bool compresses(const Compression& compression);
/// Returns true if an update contains only a few elements, and the others wait in the residual.
[[nodiscard]] bool sends_sparse(const Compression& compression);

/// Calls the rule's compress(), which CompressionMethod explains.
void compress(const Compression& compression, std::span<const float> g, std::span<float> residual,
              std::span<float> sent);

}  // namespace starling::models
