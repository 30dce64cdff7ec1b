/// Loads training data from a safetensors file: `safetensors:FILE[,task=class|value]`.
///
/// The tensor `features` or `x` of shape [n, ...] holds the samples. The dimensions after the first
/// become one row of features; images have their channels last. Values of type U8 are divided by
/// 255, as in IDX files. The tensor `labels` or `y` of shape [n] or [n, 1] holds one number for
/// each sample. A number of type U8, I32, I64 or U64 is a class from 0 to k-1, and one of type F32
/// or F64 is a real target, unless `task` says otherwise. Other tensors of these types are ignored;
/// a tensor of another type is an error. Blocking. Thread-safe.
#pragma once

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/table.hpp"

namespace starling::program {

inline constexpr const char* safetensors_source = "safetensors";
inline constexpr const char* safetensors_summary =
    "tensors 'features' or 'x', 'labels' or 'y': safetensors:FILE[,task=class|value]";

/// Loads the file that the options of the source name. Errors name the file, the wrong tensor and
/// sample, and what would be valid.
[[nodiscard]] Result<models::Table> load_safetensors(SpecReader& options);

}  // namespace starling::program
