/// One number as it stands in a text file.
#pragma once

#include <string>
#include <string_view>

namespace starling::models {

enum class Cell { number, not_finite, text };

/// Reads `cell` into `value`: a decimal number, a `+` before it allowed. not_finite covers nan, inf
/// and what float cannot hold; `value` is then untouched.
Cell read_cell(std::string_view cell, float& value);

/// Nothing, `?`, or one of the words that programs write for a value that is missing: NA, NaN, null
/// and the like.
[[nodiscard]] bool is_missing(std::string_view cell);

/// `cell` in quotes for a message: cut behind 40 bytes, unprintable bytes shown as `?`.
[[nodiscard]] std::string in_quotes(std::string_view cell);

}  // namespace starling::models
