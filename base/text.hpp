/// Reading what people write: numbers, durations, and names that are nearly right.
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

/// `text` without white space at either end.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// The parts of `text` between separators; an empty text has no parts.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
/// The parts would outlive a temporary text.
template <std::same_as<std::string> Text>
void split(Text&& text, char separator) = delete;

/// Returns `text` with \xNN in place of every byte that a terminal would not show: control
/// characters and invalid UTF-8.
[[nodiscard]] std::string printable(std::string text);

/// Returns 'text' in quotes, as errors show it: only its beginning, with \xNN in place of every
/// byte that is not printable ASCII.
[[nodiscard]] std::string shown(std::string_view text);

/// "1 seed", "2 seeds".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

/// Reads a whole number >= 0. Refuses signs, spaces, anything behind the digits, and numbers that
/// overflow.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text);

/// A finite decimal number; nothing may stand behind it.
[[nodiscard]] Result<double> parse_number(std::string_view text);

/// Reads a duration >= 0 with its unit: `250us`, `20ms`, `1.5s`, `2min`, `1h`. Refuses a bare
/// number, and durations of more than 285 years.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// The shortest exact form that parse_duration reads back.
[[nodiscard]] std::string print_duration(std::chrono::nanoseconds duration);

/// The shortest decimal form that parse_number reads back to the same double.
[[nodiscard]] std::string print_number(double number);

/// The candidate with the smallest edit distance to `word`, empty if none is near enough to be
/// meant (more than half of the word would have to change).
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// "valid: a, b, c"; "valid: none" where there is no candidate.
[[nodiscard]] std::string valid_names(std::span<const std::string> candidates);

/// The same, led by "did you mean 'a'? " where one candidate is near.
[[nodiscard]] std::string suggest(std::string_view word, std::span<const std::string> candidates);

}  // namespace starling
