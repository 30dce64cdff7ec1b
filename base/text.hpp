/// Parses and prints numbers and durations as users write them, makes text safe to print, and
/// suggests valid names for misspelt ones. Pure functions; any thread.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling {

/// Returns `text` without white space at either end.
[[nodiscard]] std::string_view trim(std::string_view text);

/// Returns the parts of `text` between separators; an empty text has no parts.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
/// Deleted, because the parts would outlive a temporary text.
template <std::same_as<std::string> Text>
void split(Text&& text, char separator) = delete;

/// Returns `text` with \xNN instead of each byte of a control character or of invalid UTF-8, so
/// that it is safe to write to a terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// Returns `text` in single quotes, for errors: its first 60 bytes, with \xNN instead of each byte
/// that is not printable ASCII.
[[nodiscard]] std::string quote(std::string_view text);

/// Returns the count and the noun in singular or plural: "1 seed", "2 seeds".
[[nodiscard]] std::string print_count(std::uint64_t count, std::string_view noun);

/// Reads a whole number >= 0. Refuses signs, spaces, anything after the digits, and numbers that
/// overflow.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text);
/// Reads a whole number from `least` to `most`. The error names `most` if it is a bound, or if only
/// the bound of 64 bits makes the text wrong.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text, std::uint64_t least,
                                                std::uint64_t most);

/// Reads a finite decimal number; refuses anything after it.
[[nodiscard]] Result<double> parse_number(std::string_view text);

/// Reads a duration >= 0 with its unit: `250us`, `20ms`, `1.5s`, `2min`, `1h`. Refuses a bare
/// number, and durations of more than 285 years.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// Returns the shortest exact text that parse_duration reads back.
[[nodiscard]] std::string print_duration(std::chrono::nanoseconds duration);

/// Returns the shortest decimal text that parse_number reads back to the same double. Whole numbers
/// below 1e15 have no exponent, although some would be shorter with one.
[[nodiscard]] std::string print_number(double number);
/// Returns the shortest decimal text that is nearest to this float: 0.1 where print_number() of the
/// same value as a double has 17 digits. Whole numbers below 1e15 have no exponent here either.
[[nodiscard]] std::string print_float(float number);
/// Returns a share as a percentage: "7%" for 0.07. Rounds the percentage to nine decimal places if
/// a hundredth of the rounded number is still `share`.
[[nodiscard]] std::string print_percent(double share);

/// Returns the candidate with the smallest edit distance to `word`; empty if for each candidate
/// more than half of the word would have to change.
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// Returns "valid: a, b, c", or "valid: none" if there is no candidate.
[[nodiscard]] std::string valid_names(std::span<const std::string> candidates);

/// Returns valid_names(), after "did you mean 'a'? " if nearest() finds a candidate.
[[nodiscard]] std::string suggest(std::string_view word, std::span<const std::string> candidates);

}  // namespace starling
