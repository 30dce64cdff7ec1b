#include "starling/base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "starling/base/to_duration.hpp"

namespace starling {
namespace {

using Duration = std::chrono::nanoseconds;

struct Unit {
  std::string_view name;
  Duration length;
};

/// The longest unit comes first, so that printing finds the largest unit that divides a duration.
constexpr std::array units{
    Unit{"h", std::chrono::hours{1}},         Unit{"min", std::chrono::minutes{1}},
    Unit{"s", std::chrono::seconds{1}},       Unit{"ms", std::chrono::milliseconds{1}},
    Unit{"us", std::chrono::microseconds{1}}, Unit{"ns", Duration{1}},
};

/// Returns the Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  // row[j] is the distance between the first i characters of a and the first j of b.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

void append_hex(std::string& out, char c) {
  constexpr std::string_view hex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  (out += "\\x") += {hex[byte / 16], hex[byte % 16]};
}

/// Returns the size in bytes of the first character of `text`, or 0 if it is a control character or
/// invalid UTF-8 (RFC 3629; surrogates count as valid). Requires: `text` is not empty.
std::size_t printable_size(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead < 0x20 || lead == 0x7f ? 0 : 1;
  const std::size_t size = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead > 0xf4) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  const bool is_overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool is_control = lead == 0xc2 && byte(1) < 0xa0;  // U+0080 to U+009F
  return is_overlong || is_control ? 0 : size;
}

/// Whole numbers below this one are printed without an exponent, although some are shorter with
/// one.
constexpr double plain_below = 1e15;

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const auto first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    if (text.empty()) parts.emplace_back();
  }
  return parts;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t size = printable_size(rest);
    if (size > 0)
      out += rest.substr(0, size);
    else
      append_hex(out, rest[0]);
    rest.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string quote(std::string_view text) {
  constexpr std::size_t length_max = 60;
  std::string out = "'";
  for (const char c : text.substr(0, length_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      out += c;
    else
      append_hex(out, c);
  }
  return out + (text.size() > length_max ? "...'" : "'");
}

std::string print_count(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string{noun} + (count == 1 ? "" : "s");
}

Result<std::uint64_t> parse_count(std::string_view text) {
  return parse_count(text, 0, UINT64_MAX);
}

Result<std::uint64_t> parse_count(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = !text.empty() && end == text.data() + text.size();
  const bool is_too_large = is_number && fault == std::errc::result_out_of_range;
  if (is_number && !is_too_large && value >= least && value <= most) return value;
  return Error{quote(text) + " must be a whole number >= " + std::to_string(least) +
               (most != UINT64_MAX || is_too_large ? " and <= " + std::to_string(most) : "")};
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc{} || end != text.data() + text.size() ||
      !std::isfinite(value))
    return Error{quote(text) + " is not a finite number"};
  return value;
}

Result<Duration> parse_duration(std::string_view text) {
  const Error bad{quote(text) + " is not a duration like 250us, 20ms, 1.5s, 2min or 1h"};
  const auto digits = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
  const auto number = parse_number(text.substr(0, digits));
  const auto unit = std::ranges::find(units, text.substr(digits), &Unit::name);
  if (!number || unit == units.end() || *number < 0) return bad;
  const double ns = *number * static_cast<double>(unit->length.count());
  if (ns > static_cast<double>(parsed_duration_max.count()))
    return Error{quote(text) + " is too long; valid: at most 285 years"};
  return Duration{std::llround(ns)};
}

std::string print_duration(Duration duration) {
  for (const Unit& unit : units)
    if (duration.count() != 0 && duration % unit.length == Duration{0})
      return std::to_string(duration / unit.length) + std::string{unit.name};
  return "0s";
}

std::string print_number(double number) {
  if (std::isnan(number)) return "nan";  // to_chars would print the sign of a NaN
  std::array<char, 32> text{};
  char* const text_end = text.data() + text.size();
  const bool is_whole = std::trunc(number) == number && std::abs(number) < plain_below;
  const auto [end, fault] =
      is_whole ? std::to_chars(text.data(), text_end, number, std::chars_format::fixed)
               : std::to_chars(text.data(), text_end, number);
  return fault == std::errc{} ? std::string{text.data(), end} : std::to_string(number);
}

std::string print_float(float number) {
  // Reads the float's shortest text as a double, which prints with the same digits.
  std::array<char, 32> text{};
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  double shortest = 0;
  std::from_chars(text.data(), end, shortest);
  return print_number(shortest);
}

std::string print_percent(double share) {
  // A hundredth of 7 has no exact double, so 100 times it may be a little above 7.
  const double percent = 100 * share;
  const double rounded = std::round(percent * 1e9) / 1e9;
  return print_number(rounded / 100 == share ? rounded : percent) + "%";
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string valid_names(std::span<const std::string> candidates) {
  std::string text = "valid: ";
  for (std::size_t i = 0; i < candidates.size(); ++i) text += (i ? ", " : "") + candidates[i];
  return candidates.empty() ? text + "none" : text;
}

std::string suggest(std::string_view word, std::span<const std::string> candidates) {
  const std::string best = nearest(word, candidates);
  return (best.empty() ? "" : "did you mean '" + best + "'? ") + valid_names(candidates);
}

}  // namespace starling
