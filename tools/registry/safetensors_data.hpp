/// Loads training data from a safetensors file: `safetensors:FILE[,task=class|value]`.
///
/// The tensor `features` or `x` of shape [n, ...] holds the samples. All dimensions after the first
/// make one row; images have their channels last. Values of U8 are divided by 255, as in IDX files.
/// The tensor `labels` or `y` of shape [n] or [n, 1] holds one number for each sample: a class from
/// 0 to k-1 if it is of U8, I32, I64 or U64, a real target if it is of F32 or F64, unless `task`
/// chooses one of them. Other tensors of these types are ignored. Blocking. Any thread.
#pragma once

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/table.hpp"

namespace starling::program {

inline constexpr const char* safetensors_source = "safetensors";
inline constexpr const char* safetensors_summary =
    "tensors 'features' or 'x', 'labels' or 'y': safetensors:FILE[,task=class|value]";

/// Errors name the file, the wrong tensor and sample, and what would be valid.
[[nodiscard]] Result<models::Table> load_safetensors(SpecReader& read);

}  // namespace starling::program
