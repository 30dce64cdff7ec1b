#include "starling/tools/files/toml_file.hpp"

#include <algorithm>
#include <optional>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// Returns the lines of `content` before line number `line`. The first line has the number 1.
std::string_view before_line(std::string_view content, std::size_t line) {
  std::size_t end = 0;
  for (; line > 1 && end < content.size(); --line)
    end = std::min(content.find('\n', end), content.size() - 1) + 1;
  return content.substr(0, end);
}

/// Returns the number of the last line on which `file`, or a table in it, sets `key`; nullopt if no
/// line does. `key` is one name without dots. Does not look into arrays.
std::optional<std::size_t> line_of_key(const toml::table& file, std::string_view key) {
  std::optional<std::size_t> line;
  for (const auto& [name, value] : file) {
    if (name == key) line = std::max(line.value_or(0), line_of(value));
    if (const toml::table* inner = value.as_table())
      line = std::max(line, line_of_key(*inner, key));
  }
  return line;
}

/// Parses `content` and calls line_of_key(). Returns nullopt if `content` is not valid TOML.
std::optional<std::size_t> line_of_key_in(std::string_view content, std::string_view key) {
  try {
    return line_of_key(toml::parse(content), key);
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

/// Returns the key at the beginning of line number `line`, without the quotes around it.
std::string_view key_of_line(std::string_view content, std::size_t line) {
  std::string_view text = content.substr(before_line(content, line).size());
  text = trim(text.substr(0, text.find('\n')));
  if (text.empty() || (text.front() != '"' && text.front() != '\''))
    return trim(text.substr(0, text.find('=')));
  const auto end = text.find(text.front(), 1);
  return text.substr(1, end == std::string_view::npos ? end : end - 1);
}

/// If toml++ reports that a key is given twice, returns a message with the key and, if it is found,
/// the last earlier line that gives a key of this name, in any table. Returns an empty text for
/// other errors. The description by toml++ has the key in single quotes, but garbles a key that
/// stands in double quotes: this function reads such a key from its line.
std::string duplicate_key_message(std::string_view content, const toml::parse_error& error) {
  constexpr std::string_view marker = "cannot redefine existing ";
  const std::string_view description = error.description();
  const auto begin = description.find('\'');
  if (description.find(marker) == std::string_view::npos || begin == std::string_view::npos)
    return {};
  const std::size_t line = error.source().begin.line;
  const std::string_view quoted =
      description.substr(begin + 1, description.rfind('\'') - begin - 1);
  const std::string key{
      quoted.find_first_of("\"'") == std::string_view::npos ? quoted : key_of_line(content, line)};
  const auto first = line_of_key_in(before_line(content, line), key);
  return key + ": is given twice" + (first ? ", first in line " + std::to_string(*first) : "") +
         "; valid: once";
}

Error syntax_error(std::string_view content, const std::string& path,
                   const toml::parse_error& error) {
  const std::string location = path + ":" + std::to_string(error.source().begin.line) + ": ";
  if (const std::string duplicate = duplicate_key_message(content, error); !duplicate.empty())
    return Error{location + duplicate};
  const std::string why{error.description()};
  const bool is_unquoted_text = why.find("could not determine value type") != std::string::npos;
  return Error{location + "is not valid TOML: " + why +
               (is_unquoted_text ? R"(; text stands in quotes, as in barrier = "bsp")" : "")};
}

/// Returns an Error for a line with more than 200 dots. It counts dots in values and comments too.
/// Each dot of a key adds a level of nested tables, and toml++ 3.3 exhausts the stack when it frees
/// 50,000 levels. With 200 dots a line, a file has fewer levels, because toml++ refuses more than
/// 256 nested values.
Result<void> check_dots(std::string_view content, const std::string& path,
                        const std::string& valid) {
  constexpr std::size_t dots_max = 200;
  std::size_t line = 1;
  std::size_t dots = 0;
  for (const char c : content) {
    if (c == '\n') {
      ++line;
      dots = 0;
    }
    if (c == '.' && ++dots > dots_max)
      return Error{path + ":" + std::to_string(line) + ": holds more than " +
                   std::to_string(dots_max) + " dots; valid: " + valid};
  }
  return {};
}

}  // namespace

Result<toml::table> parse_toml(std::string_view content, const std::string& path,
                               const std::string& valid) {
  if (auto checked = check_dots(content, path, valid); !checked) return std::move(checked).error();
  try {
    return toml::parse(content);
  } catch (const toml::parse_error& error) {
    return syntax_error(content, path, error);
  }
}

}  // namespace starling::program
