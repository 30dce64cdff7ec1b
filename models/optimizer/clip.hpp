/// Gradient clipping. Plain values and functions; any thread may call them on memory of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::models {

/// A bound on a gradient:
/// - none: as it is;
/// - value: every element within [-limit, limit];
/// - norm: g *= limit / ||g|| where the Euclidean norm of all of g exceeds the limit (Pascanu,
///   Mikolov, Bengio, ICML 2013, algorithm 1).
struct Clip {
  enum class Kind { none, value, norm };
  Kind kind = Kind::none;
  double limit = 0;
  bool operator==(const Clip&) const = default;
};

/// Reads `none`, `value:LIMIT` or `norm:LIMIT`, with a limit above 0.
[[nodiscard]] Result<Clip> parse_clip(std::string_view text);

/// Returns text that parse_clip reads back to the same value.
[[nodiscard]] std::string print(const Clip& clip);

/// Clips `g` and returns its Euclidean norm before clipping. A gradient whose norm is not finite is
/// not scaled. `none` does not read g and returns 0.
template <class T>
double apply(const Clip& clip, std::span<T> g);

/// The same for one gradient that lies in several places.
template <class T>
double apply(const Clip& clip, std::span<const std::span<T>> pieces);

}  // namespace starling::models
