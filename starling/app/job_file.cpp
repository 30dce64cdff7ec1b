#include "starling/app/job_file.hpp"

#include <algorithm>
#include <sstream>
#include <toml.hpp>

#include "starling/app/file_use.hpp"
#include "starling/app/keys.hpp"
#include "starling/app/sim/sim_keys.hpp"
#include "starling/base/text.hpp"

namespace starling::app {
namespace {

std::string valid_for(KeyKind kind) {
  switch (kind) {
    case KeyKind::text:
      return "a string, in quotes";
    case KeyKind::count:
      return "a whole number";
    case KeyKind::number:
      return "a number";
    case KeyKind::duration:
      return "a number of seconds, or a duration in quotes like \"200ms\"";
    case KeyKind::flag:
      return "true or false";
    case KeyKind::texts:
      return "a string or a list of strings";
  }
  return {};
}

/// The value as a flag would be given it; nothing where it is of the wrong type.
std::vector<std::string> texts_of(const toml::value& value, KeyKind kind) {
  const auto text = [](const toml::value& v) { return std::string{v.as_string().str}; };
  if (kind == KeyKind::flag)
    return value.is_boolean() ? std::vector<std::string>{value.as_boolean() ? "true" : "false"}
                              : std::vector<std::string>{};
  const bool is_number = kind == KeyKind::number || kind == KeyKind::duration;
  const bool is_text = kind == KeyKind::text || kind == KeyKind::texts || kind == KeyKind::duration;
  if (value.is_integer() && (kind == KeyKind::count || is_number))
    return {std::to_string(value.as_integer())};
  if (value.is_floating() && is_number) return {print_number(value.as_floating())};
  if (value.is_string() && is_text) return {text(value)};
  std::vector<std::string> all;
  if (value.is_array() && kind == KeyKind::texts)
    for (const toml::value& element : value.as_array()) {
      if (!element.is_string()) return {};
      all.push_back(text(element));
    }
  return all;
}

/// The settings of one table by line, then by column.
struct Reader {
  const std::string& path;
  const std::vector<const KeyForm*> keys;
  /// Of a table that stands among the keys.
  const std::string skipped;
  std::vector<std::pair<std::size_t, Setting>> found{};

  Result<void> take(const std::string& name, const toml::value& value) {
    if (!skipped.empty() && name == skipped && value.is_table()) return {};
    const std::size_t line = value.location().line();
    const std::string place = path + ":" + std::to_string(line) + ": ";
    const auto key = std::ranges::find(keys, name, &KeyForm::name);
    if (key == keys.end()) return Error{place + unknown(name)};
    const KeyKind kind = (*key)->kind;
    const bool is_empty = value.is_array() && value.as_array().empty();
    if (is_empty && name == "barrier") return Error{place + name + ": is an empty list"};
    if (is_empty && kind == KeyKind::texts) return {};
    const auto texts = texts_of(value, kind);
    if (texts.empty()) return Error{place + name + ": must be " + valid_for(kind)};
    for (const std::string& text : texts) found.push_back({line, {name, text, place + name}});
    return {};
  }

  [[nodiscard]] std::string unknown(const std::string& name) const {
    std::vector<std::string> names;
    for (const KeyForm* key : keys) names.push_back(key->name);
    return "unknown key '" + name + "'; " + suggest(name, names);
  }

  Result<Settings> read(const toml::table& table) && {
    std::vector<std::pair<std::size_t, std::string>> order;
    for (const auto& [name, value] : table) order.emplace_back(value.location().line(), name);
    std::ranges::sort(order);
    for (const auto& [line, name] : order)
      if (auto taken = take(name, table.at(name)); !taken) return std::move(taken).error();
    Settings settings;
    for (auto& [line, setting] : found) settings.push_back(std::move(setting));
    return settings;
  }
};

/// What the program has as `keys`, whatever else it knows of them.
template <class Keys>
std::vector<const KeyForm*> forms_of(const Keys& keys) {
  std::vector<const KeyForm*> forms;
  forms.reserve(keys.size());
  for (const auto& key : keys) forms.push_back(&key);
  return forms;
}

/// A job file in its two parts.
struct JobFile {
  Settings job;
  Settings sim;
};

Result<JobFile> parts_of(const std::string& path, const toml::value& file) {
  const std::string sim = "sim";
  auto job = Reader{path, forms_of(job_keys()), sim}.read(file.as_table());
  if (!job) return std::move(job).error();
  const auto at = file.as_table().find(sim);
  if (at == file.as_table().end()) return JobFile{*std::move(job), {}};
  auto own = Reader{path, forms_of(sim_keys()), {}}.read(at->second.as_table());
  if (!own) return std::move(own).error();
  return JobFile{*std::move(job), *std::move(own)};
}

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
Result<void> check_bearable(std::string_view content, const std::string& path) {
  constexpr std::ptrdiff_t brackets_max = 256;
  if (const std::size_t size = utf8_size(content); size < content.size())
    return Error{path + ":" +
                 std::to_string(1 + std::ranges::count(content.substr(0, size), '\n')) +
                 ": is no TOML: holds a byte that is no UTF-8"};
  if (std::ranges::count_if(content, [](char c) { return c == '[' || c == '{'; }) > brackets_max)
    return Error{path + ": holds more than " + std::to_string(brackets_max) +
                 " brackets; valid: a job file of `key = value` lines"};
  return {};
}

Result<JobFile> parse(std::string_view content, const std::string& path) {
  if (auto bearable = check_bearable(content, path); !bearable) return std::move(bearable).error();
  try {
    std::istringstream stream{std::string{content}};
    return parts_of(path, toml::parse(stream, path));
  } catch (const toml::syntax_error& fault) {
    return syntax_error(path, fault);
  } catch (const std::exception& fault) {
    return Error{path + ": is no TOML: " + fault.what()};
  }
}

Result<std::string> content_of(const std::string& path) {
  return small_file(path, "a job file of `key = value` lines");
}

}  // namespace

Result<Settings> parse_job_file(std::string_view content, const std::string& path) {
  auto file = parse(content, path);
  if (!file) return std::move(file).error();
  return std::move(file->job);
}

Result<Settings> parse_sim_file(std::string_view content, const std::string& path) {
  auto file = parse(content, path);
  if (!file) return std::move(file).error();
  return overridden(std::move(file->job), file->sim);
}

Result<Settings> read_job_file(const std::string& path) {
  const auto content = content_of(path);
  return content ? parse_job_file(*content, path) : content.error();
}

Result<Settings> read_sim_file(const std::string& path) {
  const auto content = content_of(path);
  return content ? parse_sim_file(*content, path) : content.error();
}

}  // namespace starling::app
