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

/// Returns the texts that a flag would be given for the value; none where it is of the wrong type.
std::vector<std::string> texts_of(const toml::node& value, KeyKind kind) {
  const auto text = [](const toml::node& v) { return v.as_string()->get(); };
  if (kind == KeyKind::flag) {
    const auto* flag = value.as_boolean();
    return flag ? std::vector<std::string>{flag->get() ? "true" : "false"}
                : std::vector<std::string>{};
  }
  const bool is_number = kind == KeyKind::number || kind == KeyKind::duration;
  const bool is_text = kind == KeyKind::text || kind == KeyKind::texts || kind == KeyKind::duration;
  if (value.is_integer() && (kind == KeyKind::count || is_number))
    return {std::to_string(value.as_integer()->get())};
  if (value.is_floating_point() && is_number)
    return {print_number(value.as_floating_point()->get())};
  if (value.is_string() && is_text) return {text(value)};
  std::vector<std::string> all;
  if (value.is_array() && kind == KeyKind::texts)
    for (const toml::node& element : *value.as_array()) {
      if (!element.is_string()) return {};
      all.push_back(text(element));
    }
  return all;
}

/// The settings of one table by line, then by column.
struct Reader {
  const std::string& path;
  const std::vector<const KeyForm*> keys;
  /// The name of a table among the keys that is left out; empty for none.
  const std::string skipped;
  std::vector<std::pair<std::size_t, Setting>> found{};

  Result<void> take(const std::string& name, const toml::node& value) {
    if (!skipped.empty() && name == skipped && value.is_table()) return {};
    const std::size_t line = line_of(value);
    const std::string place = path + ":" + std::to_string(line) + ": ";
    const auto key = std::ranges::find(keys, name, &KeyForm::name);
    if (key == keys.end()) return Error{place + unknown(name)};
    const KeyKind kind = (*key)->kind;
    const bool is_empty = value.is_array() && value.as_array()->empty();
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
    for (const auto& [name, value] : table) order.emplace_back(line_of(value), name.str());
    std::ranges::sort(order);
    for (const auto& [line, name] : order)
      if (auto taken = take(name, *table.get(name)); !taken) return std::move(taken).error();
    Settings settings;
    for (auto& [line, setting] : found) settings.push_back(std::move(setting));
    return settings;
  }
};

/// Returns the forms of `keys`, without the rest of each key.
template <class Keys>
std::vector<const KeyForm*> forms_of(const Keys& keys) {
  std::vector<const KeyForm*> forms;
  forms.reserve(keys.size());
  for (const auto& key : keys) forms.push_back(&key);
  return forms;
}

/// The two parts of a job file.
struct JobFile {
  Settings job;
  Settings sim;
};

Result<JobFile> parts_of(const std::string& path, const toml::table& file) {
  const std::string sim = "sim";
  auto job = Reader{path, forms_of(job_keys()), sim}.read(file);
  if (!job) return std::move(job).error();
  const toml::table* table = file[sim].as_table();
  if (table == nullptr) return JobFile{*std::move(job), {}};
  auto own = Reader{path, forms_of(sim_keys()), {}}.read(*table);
  if (!own) return std::move(own).error();
  return JobFile{*std::move(job), *std::move(own)};
}

Result<JobFile> parse(std::string_view content, const std::string& path) {
  const auto file = parse_toml(content, path, valid_file);
  if (!file) return file.error();
  return parts_of(path, *file);
}

Result<std::string> content_of(const std::string& path) { return small_file(path, valid_file); }

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

}  // namespace starling::program
