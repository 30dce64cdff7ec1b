#include "starling/app/toml_file.hpp"

#include <algorithm>
#include <sstream>

#include "starling/base/text.hpp"

namespace starling::app {
namespace {

/// What lies between `before` and `after`, its first occurrence; empty where there is none.
std::string between(std::string_view text, std::string_view before, std::string_view after) {
  const auto from = text.find(before);
  if (from == std::string_view::npos) return {};
  text.remove_prefix(from + before.size());
  const auto to = text.find(after);
  return std::string{trimmed(text.substr(0, to == std::string_view::npos ? 0 : to))};
}

/// In our words, where toml11's picture is of a key that is given twice; empty otherwise:
///
///     [error] toml::insert_value: value ("workers") already exists.
///      --> job.toml
///        |
///      1 | workers = 4
std::string repetition(std::string_view picture) {
  const std::string key =
      between(picture.substr(0, picture.find('\n')), "(\"", "\") already exists");
  const std::string first = between(picture, " |\n", "|");
  if (key.empty() || first.empty()) return {};
  return key + ": is given twice, first in line " + first;
}

/// toml11's messages draw a picture over several lines; the first says what is wrong.
Error syntax_error(const std::string& path, const toml::syntax_error& fault) {
  std::string what = fault.what();
  const std::string place = path + ":" + std::to_string(fault.location().line()) + ": ";
  if (const std::string twice = repetition(what); !twice.empty()) return Error{place + twice};
  what = what.substr(0, what.find('\n'));
  // "[error] toml::parse_key_value_pair: missing value ..." names toml11's function, too.
  if (const auto at = what.find("toml::"); at != std::string::npos) what.erase(0, at + 6);
  if (const auto at = what.find(": "); at < what.find(' ')) what.erase(0, at + 2);
  return Error{place + "is no TOML: " + what};
}

/// How many bytes from the beginning are UTF-8 (RFC 3629).
std::size_t utf8_size(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  std::size_t at = 0;
  while (at < text.size()) {
    const unsigned first = byte(at);
    const unsigned second = byte(at + 1);
    const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    bool is_valid = first < 0x80 || (first >= 0xc2 && first <= 0xf4);
    for (std::size_t i = 1; i < size; ++i) is_valid = is_valid && (byte(at + i) & 0xc0U) == 0x80;
    // Neither longer than need be, nor a surrogate, nor beyond U+10FFFF.
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
      is_valid = false;
    if (!is_valid) break;
    at += size;
  }
  return at;
}

/// Refuses what toml11 3.7 cannot bear: it reads out of bounds where text is no UTF-8, and its
/// stack grows with each bracket that another stands in.
Result<void> check_bearable(std::string_view content, const std::string& path,
                            const std::string& what) {
  constexpr std::ptrdiff_t brackets_max = 256;
  if (const std::size_t size = utf8_size(content); size < content.size())
    return Error{path + ":" +
                 std::to_string(1 + std::ranges::count(content.substr(0, size), '\n')) +
                 ": is no TOML: holds a byte that is no UTF-8"};
  if (std::ranges::count_if(content, [](char c) { return c == '[' || c == '{'; }) > brackets_max)
    return Error{path + ": holds more than " + std::to_string(brackets_max) +
                 " brackets; valid: " + what};
  return {};
}

}  // namespace

Result<toml::value> parse_toml(std::string_view content, const std::string& path,
                               const std::string& what) {
  if (auto bearable = check_bearable(content, path, what); !bearable)
    return std::move(bearable).error();
  try {
    std::istringstream stream{std::string{content}};
    return toml::parse(stream, path);
  } catch (const toml::syntax_error& fault) {
    return syntax_error(path, fault);
  } catch (const std::exception& fault) {
    return Error{path + ": is no TOML: " + fault.what()};
  }
}

}  // namespace starling::app
