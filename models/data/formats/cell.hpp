/// One cell of a text file: a number, a text or a missing value. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace starling::models {

/// The kind of a cell's text. not_finite: nan, inf, or a number that float cannot hold.
enum class CellKind { number, not_finite, text };

/// Reads a decimal number, with or without a leading `+`, from `cell` into `value`. Changes `value`
/// only if it returns CellKind::number.
CellKind read_cell(std::string_view cell, float& value);

/// Returns whether `cell` is empty, `?`, or a word that programs write for a missing value: NA,
/// N/A, nan, null, None, <NA>.
[[nodiscard]] bool is_missing(std::string_view cell);

/// Returns `cell` in quotes, for messages: cut after 40 bytes, control characters shown as `?`.
[[nodiscard]] std::string in_quotes(std::string_view cell);

}  // namespace starling::models
