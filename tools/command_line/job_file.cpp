#include "starling/tools/command_line/job_file.hpp"

#include <algorithm>

#include "starling/base/text.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/files/toml_file.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/sim/sim_keys.hpp"

namespace starling::program {
namespace {

const std::string valid_file = "a job file of `key = value` lines";

/// Returns the part of an error that describes the valid values of a type.
std::string valid_values(ValueType type) {
  switch (type) {
    case ValueType::text:
      return "a string, in quotes";
    case ValueType::count:
      return "a whole number";
    case ValueType::number:
      return "a number";
    case ValueType::duration:
      return "a number of seconds, or a duration in quotes like \"200ms\"";
    case ValueType::flag:
      return "true or false";
    case ValueType::texts:
      return "a string or a list of strings";
    case ValueType::count_or_text:
      return "a whole number, or a string, in quotes";
  }
  return {};
}

/// Returns a value as the texts that flags of the command line would have; one text for each
/// element of a list. Returns no text if the value is not of type `type`.
std::vector<std::string> texts_of(const toml::node& value, ValueType type) {
  const auto string_in = [](const toml::node& node) { return node.as_string()->get(); };
  if (type == ValueType::flag) {
    const auto* flag = value.as_boolean();
    return flag ? std::vector<std::string>{flag->get() ? "true" : "false"}
                : std::vector<std::string>{};
  }
  const bool may_be_number = type == ValueType::number || type == ValueType::duration;
  const bool may_be_string = type == ValueType::text || type == ValueType::texts ||
                             type == ValueType::duration || type == ValueType::count_or_text;
  if (value.is_integer() &&
      (type == ValueType::count || type == ValueType::count_or_text || may_be_number))
    return {std::to_string(value.as_integer()->get())};
  if (value.is_floating_point() && may_be_number)
    return {print_number(value.as_floating_point()->get())};
  if (value.is_string() && may_be_string) return {string_in(value)};
  std::vector<std::string> texts;
  if (value.is_array() && type == ValueType::texts)
    for (const toml::node& element : *value.as_array()) {
      if (!element.is_string()) return {};
      texts.push_back(string_in(element));
    }
  return texts;
}

/// Reads the settings of one TOML table, in the order of the lines.
struct TableReader {
  const std::string& path;
  const std::vector<const KeyDescription*> keys;
  /// The name of a table inside this one that is not read; empty to read all tables.
  const std::string skipped_table;
  Settings settings{};

  Result<void> read_value(const std::string& name, const toml::node& value) {
    if (!skipped_table.empty() && name == skipped_table && value.is_table()) return {};
    const std::size_t line = line_of(value);
    const std::string location = path + ":" + std::to_string(line) + ": ";
    const auto key = std::ranges::find(keys, name, &KeyDescription::name);
    if (key == keys.end()) return Error{location + unknown_key_text(name)};
    const ValueType type = (*key)->type;
    const bool is_empty = value.is_array() && value.as_array()->empty();
    if (is_empty && name == "barrier") return Error{location + name + ": is an empty list"};
    if (is_empty && type == ValueType::texts) return {};
    const auto texts = texts_of(value, type);
    if (texts.empty()) return Error{location + name + ": must be " + valid_values(type)};
    for (const std::string& text : texts) settings.push_back({name, text, location + name});
    return {};
  }

  [[nodiscard]] std::string unknown_key_text(const std::string& name) const {
    std::vector<std::string> names;
    for (const KeyDescription* key : keys) names.push_back(key->name);
    return "unknown key '" + name + "'; " + suggest(name, names);
  }

  Result<Settings> read(const toml::table& table) && {
    std::vector<std::pair<std::size_t, std::string>> names_by_line;
    for (const auto& [name, value] : table) names_by_line.emplace_back(line_of(value), name.str());
    std::ranges::sort(names_by_line);
    for (const auto& [line, name] : names_by_line)
      if (auto done = read_value(name, *table.get(name)); !done) return std::move(done).error();
    return std::move(settings);
  }
};

/// Returns a pointer to the description of each key. Keys are of a type derived from
/// KeyDescription.
template <class Keys>
std::vector<const KeyDescription*> descriptions_of(const Keys& keys) {
  std::vector<const KeyDescription*> descriptions;
  descriptions.reserve(keys.size());
  for (const auto& key : keys) descriptions.push_back(&key);
  return descriptions;
}

/// A job file's own settings, and those below `[sim]`.
struct JobFile {
  Settings job;
  Settings sim;
};

/// Reads the settings of a parsed job file.
Result<JobFile> read_tables(const std::string& path, const toml::table& file) {
  const std::string sim = "sim";
  auto job = TableReader{path, descriptions_of(job_keys()), sim}.read(file);
  if (!job) return std::move(job).error();
  const toml::table* table = file[sim].as_table();
  if (table == nullptr) return JobFile{*std::move(job), {}};
  auto sim_settings = TableReader{path, descriptions_of(sim_keys()), {}}.read(*table);
  if (!sim_settings) return std::move(sim_settings).error();
  return JobFile{*std::move(job), *std::move(sim_settings)};
}

Result<JobFile> parse(std::string_view content, const std::string& path) {
  const auto file = parse_toml(content, path, valid_file);
  if (!file) return file.error();
  return read_tables(path, *file);
}

Result<std::string> read_job_text(const std::string& path) {
  return read_small_file(path, valid_file);
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
  return override_settings(std::move(file->job), file->sim);
}

Result<Settings> read_job_file(const std::string& path) {
  const auto content = read_job_text(path);
  return content ? parse_job_file(*content, path) : content.error();
}

Result<Settings> read_sim_file(const std::string& path) {
  const auto content = read_job_text(path);
  return content ? parse_sim_file(*content, path) : content.error();
}

}  // namespace starling::program
