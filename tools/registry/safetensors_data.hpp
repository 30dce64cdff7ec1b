/// Training data in a safetensors file: `safetensors:FILE[,task=class|value]`.
///
/// The tensor `features` or `x` holds the samples, [n, ...]; all dimensions behind the first make
/// one row, images with their channels last, and U8 become 0 to 1, as in IDX files. The tensor
/// `labels` or `y` holds one number a sample, [n] or [n, 1]: classes 0 to k-1 where it is of U8,
/// I32, I64 or U64, real targets where it is of F32 or F64. `task` says it otherwise. Other
/// tensors, of the types named here, are ignored. Blocking; any thread.
#pragma once

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/table.hpp"

namespace starling::program {

inline constexpr const char* safetensors_source = "safetensors";
inline constexpr const char* safetensors_summary =
    "tensors 'features' or 'x', 'labels' or 'y': safetensors:FILE[,task=class|value]";

/// Errors name the file, and the tensor and sample that are wrong, with what would be valid.
[[nodiscard]] Result<models::Table> load_safetensors(SpecReader& read);

}  // namespace starling::program
