#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

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

/// Returns "Berlin: 20, Paris: 10" for the first few counts.
std::string counts_text(const std::vector<std::pair<std::string, std::size_t>>& counts,
                        const char* noun) {
  constexpr std::size_t shown = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(counts.size(), shown); ++i)
    text +=
        fmt::format("{}{}: {}", i == 0 ? "" : ", ", printable(counts[i].first), counts[i].second);
  return text + (counts.size() > shown ? fmt::format(", ... {} {}", counts.size(), noun) : "");
}

/// Returns the number of rows of each class, with the class's label as the data writes it.
std::vector<std::pair<std::string, std::size_t>> classes_of(const models::Table& table,
                                                            const models::Description& d) {
  std::vector<std::pair<std::string, std::size_t>> classes;
  for (const std::size_t count : d.class_counts)
    classes.emplace_back(table.labelling.text(static_cast<float>(classes.size())), count);
  return classes;
}

/// Returns a line for each column; none if the columns have no names and are many.
std::string columns_text(const models::Table& table) {
  constexpr std::size_t shown_unnamed = 32;
  if (table.is_sparse() || (!table.encoding && table.features() > shown_unnamed)) return {};
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
    Json one;
    if (!column.name.empty()) one["name"] = column.name;
    one["type"] = column.categories.empty() ? "number" : "category";
    if (column.categories.empty())
      one.update({{"min", column.min}, {"mean", column.mean}, {"max", column.max}});
    else
      one["categories"] = counts_json(column.categories);
    one["missing"] = column.missing;
    json["columns"].push_back(std::move(one));
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
  json["checked"] = file.is_checked;
  for (const auto& [key, value] : file.metadata) json["metadata"][key] = value;
  return json;
}

std::string fact_line(const std::string& key, const std::string& what, const Json& facts) {
  Json json;
  json[key] = what;
  json.update(facts);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<int> inspect_model(const std::string& path, bool as_json) {
  const auto file = safetensors::read(path);
  if (!file && !path.ends_with(extension) && !safetensors::has_safetensors_header(path))
    return Error{path + ": is no model that train --save wrote; data is named with its format: " +
                 suggest_sources(path)};
  if (!file) return file.error();
  if (as_json) return write_stdout(fact_line("file", path, json_of(*file)), done);
  std::string text = path + "\n";
  std::size_t bytes = 0;
  for (const auto& tensor : file->tensors) {
    text += fmt::format("  {:<24} {}\n", printable(tensor.name), tensor.describe());
    bytes += tensor.bytes.size();
  }
  text += fmt::format("  {} tensors, {}, {}\n", file->tensors.size(), bytes_text(bytes),
                      file->is_checked ? "checksum right" : "no checksum");
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
  const auto data = load_whole(registry, what, options.seed);
  if (!data) return data.error();
  const models::Table* table = data->table();
  if (options.json)
    return write_stdout(
        fact_line("data", what,
                  table == nullptr ? Json{{"samples", data->size()}} : json_of(*table)),
        done);
  std::string text = what + " (" + describe(*data) + ")\n";
  if (table != nullptr) text += text_of(*table);
  if (const std::string other = label_reading_hint(what, *data); !other.empty())
    text += row("note", other);
  return write_stdout(text, done);
}

}  // namespace starling::program
