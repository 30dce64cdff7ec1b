/// One cell of a text file: a number, a text or a missing value. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace starling::models {

enum class CellKind { number, not_finite, text };

/// Reads a decimal number, with or without a leading `+`, from `cell` into `value`. Returns
/// not_finite for nan, inf and numbers that float cannot hold. Changes `value` only if it returns
/// number.
CellKind read_cell(std::string_view cell, float& value);

/// Returns whether `cell` is empty, `?`, or one of the words that programs write for a missing
/// value: NA, NaN, null and the like.
[[nodiscard]] bool is_missing(std::string_view cell);

/// Returns `cell` in quotes, for messages: cut after 40 bytes, control characters shown as `?`.
[[nodiscard]] std::string in_quotes(std::string_view cell);

}  // namespace starling::models
