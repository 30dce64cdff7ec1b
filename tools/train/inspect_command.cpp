#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "starling/base/json_text.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/describe.hpp"
#include "starling/tools/files/safetensors.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/data_hints.hpp"
#include "starling/tools/train/advice.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view extension = ".safetensors";

std::string row(const char* name, const std::string& value) {
  return fmt::format("  {:<10}{}\n", name, value);
}

std::string bytes_text(std::size_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// Returns "Berlin: 20, Paris: 10" for the first 20 counts, and, if there are more, the number of
/// all `noun`.
std::string counts_text(const std::vector<std::pair<std::string, std::size_t>>& counts,
                        const char* noun) {
  constexpr std::size_t counts_shown_max = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(counts.size(), counts_shown_max); ++i)
    text +=
        fmt::format("{}{}: {}", i == 0 ? "" : ", ", printable(counts[i].first), counts[i].second);
  return text +
         (counts.size() > counts_shown_max ? fmt::format(", ... {} {}", counts.size(), noun) : "");
}

/// Returns the number of rows of each class, with the class's label as the data writes it.
std::vector<std::pair<std::string, std::size_t>> classes_of(const models::Table& table,
                                                            const models::Description& d) {
  std::vector<std::pair<std::string, std::size_t>> classes;
  for (const std::size_t count : d.class_counts)
    classes.emplace_back(table.labelling.text(static_cast<float>(classes.size())), count);
  return classes;
}

/// Returns a line for each column; empty if the table is sparse, or has more than 32 columns
/// without names.
std::string columns_text(const models::Table& table) {
  constexpr std::size_t unnamed_columns_max = 32;
  if (table.is_sparse() || (!table.encoding && table.features() > unnamed_columns_max)) return {};
  std::string text = "  columns\n";
  std::size_t number = 0;
  for (const models::ColumnDescription& column : models::describe_columns(table)) {
    ++number;
    text += fmt::format(
        "    {:<20} {}{}\n", column.name.empty() ? std::to_string(number) : printable(column.name),
        column.categories.empty() ? fmt::format("number    min {:.4g}, mean {:.4g}, max {:.4g}",
                                                column.min, column.mean, column.max)
                                  : "category  " + counts_text(column.categories, "categories"),
        column.missing > 0 ? fmt::format(", missing: {}", column.missing) : "");
  }
  return text;
}

std::string text_of(const models::Table& table) {
  const auto d = models::describe(table);
  std::string text;
  text +=
      row("values", fmt::format("{} held, {:.1f} % of all are not 0", d.entries, 100 * d.density));
  text += row("", fmt::format("min {:.4g}, mean {:.4g}, max {:.4g}", d.value_min, d.value_mean,
                              d.value_max));
  if (table.has_labels)
    text += d.class_counts.empty()
                ? row("labels", fmt::format("min {:.4g}, mean {:.4g}, max {:.4g}", d.label_min,
                                            d.label_mean, d.label_max))
                : row("classes", counts_text(classes_of(table, d), "classes"));
  return text + row("memory", bytes_text(d.bytes)) + columns_text(table);
}

Json counts_json(const std::vector<std::pair<std::string, std::size_t>>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

Json json_of(const models::Table& table) {
  const auto d = models::describe(table);
  Json json;
  json["rows"] = d.rows;
  json["features"] = d.features;
  json["sparse"] = d.sparse;
  json["values"] = {{"held", d.entries},
                    {"density", d.density},
                    {"min", d.value_min},
                    {"mean", d.value_mean},
                    {"max", d.value_max}};
  if (table.has_labels && table.classes() > 0)
    json["classes"] = counts_json(classes_of(table, d));
  else if (table.has_labels)
    json["labels"] = {{"min", d.label_min}, {"mean", d.label_mean}, {"max", d.label_max}};
  json["bytes"] = d.bytes;
  if (table.is_sparse()) return json;
  json["columns"] = Json::array();
  for (const models::ColumnDescription& column : models::describe_columns(table)) {
    Json column_json;
    if (!column.name.empty()) column_json["name"] = column.name;
    column_json["type"] = column.categories.empty() ? "number" : "category";
    if (column.categories.empty())
      column_json.update({{"min", column.min}, {"mean", column.mean}, {"max", column.max}});
    else
      column_json["categories"] = counts_json(column.categories);
    column_json["missing"] = column.missing;
    json["columns"].push_back(std::move(column_json));
  }
  return json;
}

Json json_of(const safetensors::File& file) {
  Json json;
  json["tensors"] = Json::array();
  for (const auto& tensor : file.tensors)
    json["tensors"].push_back({{"name", tensor.name},
                               {"dtype", safetensors::print(tensor.dtype)},
                               {"shape", tensor.shape}});
  json["checked"] = file.has_checksum;
  for (const auto& [key, value] : file.metadata) json["metadata"][key] = value;
  return json;
}

/// Returns one JSON object on one line: `key` with the file or data source, and the facts about it.
std::string facts_line(const std::string& key, const std::string& source, const Json& facts) {
  Json json;
  json[key] = source;
  json.update(facts);
  return json_text(json) + "\n";
}

Result<int> inspect_model(const std::string& path, bool as_json) {
  const auto file = safetensors::read(path);
  if (!file && !path.ends_with(extension) && !safetensors::has_safetensors_header(path))
    return Error{path + ": is no model that train --save wrote; data is named with its format: " +
                 suggest_sources(path)};
  if (!file) return file.error();
  if (as_json) return write_stdout(facts_line("file", path, json_of(*file)), done);
  std::string text = path + "\n";
  std::size_t bytes = 0;
  for (const auto& tensor : file->tensors) {
    text += fmt::format("  {:<24} {}\n", printable(tensor.name), tensor.describe());
    bytes += tensor.bytes.size();
  }
  text += fmt::format("  {} tensors, {}, {}\n", file->tensors.size(), bytes_text(bytes),
                      file->has_checksum ? "checksum right" : "no checksum");
  for (const auto& [key, value] : file->metadata)
    text += fmt::format("  {} = {}\n", printable(key), printable(value));
  return write_stdout(text, done);
}

}  // namespace

Result<int> inspect_command(const Registry& registry, const InspectOptions& options) {
  const std::string& what = options.what;
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(what, ignored);
  if (is_file || (what.ends_with(extension) && !check_data(registry, what)))
    return inspect_model(what, options.json);
  const auto data = load_source(registry, what, options.seed);
  if (!data) return data.error();
  const models::Table* table = data->table();
  if (options.json)
    return write_stdout(
        facts_line("data", what,
                   table == nullptr ? Json{{"samples", data->size()}} : json_of(*table)),
        done);
  std::string text = what + " (" + describe(*data) + ")\n";
  if (table != nullptr) text += text_of(*table);
  if (const std::string hint = label_reading_hint(what, *data); !hint.empty())
    text += row("note", hint);
  return write_stdout(text, done);
}

}  // namespace starling::program
