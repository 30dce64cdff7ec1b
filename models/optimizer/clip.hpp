/// Gradient clipping. To add a clip rule, write a file in clips/, include it here and name it in
/// Clip; for devices, add an overload of bounds_of() in models/cuda/kernels/update.hpp. Plain
/// values and functions; any thread may call them on memory of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "starling/base/result.hpp"
#include "starling/models/optimizer/clips/none.hpp"
#include "starling/models/optimizer/clips/norm.hpp"
#include "starling/models/optimizer/clips/value.hpp"

namespace starling::models {

/// One of the clip rules.
using Clip = std::variant<NoClip, ValueClip, NormClip>;

/// Reads `none`, `value:LIMIT` or `norm:LIMIT`, with a limit above 0.
[[nodiscard]] Result<Clip> parse_clip(std::string_view text);

/// Returns text that parse_clip reads back to the same value.
[[nodiscard]] std::string print(const Clip& clip);

/// Clips `g` and returns its Euclidean norm before clipping. NoClip does not read g and returns 0.
template <class T>
double apply(const Clip& clip, std::span<T> g);

/// Does the same for one gradient that consists of several spans.
template <class T>
double apply(const Clip& clip, std::span<const std::span<T>> pieces);

}  // namespace starling::models
