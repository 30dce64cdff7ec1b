#include "starling/tools/train/encoding_text.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "starling/base/json_text.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json_text(json); }

enum class Order { any, ascending };

/// Reads an array of distinct strings.
Result<std::vector<std::string>> names_in(const Json& json, Order order) {
  std::vector<std::string> names;
  if (!json.is_array()) return Error{"is no array of texts"};
  for (const Json& name : json) {
    if (!name.is_string()) return Error{"is no array of texts"};
    names.push_back(name.get<std::string>());
  }
  if (order == Order::ascending && !std::ranges::is_sorted(names))
    return Error{"holds texts that do not ascend"};
  if (std::set<std::string>{names.begin(), names.end()}.size() < names.size())
    return Error{"holds a text twice"};
  return names;
}

Result<std::string> text_in(const Json& json, const char* key) {
  if (!json.contains(key)) return std::string{};
  if (!json[key].is_string()) return Error{std::string{key} + " is no text"};
  return json[key].get<std::string>();
}

Result<models::Column> column_in(const Json& json) {
  if (!json.is_object()) return Error{"holds a column that is no object"};
  models::Column column;
  auto name = text_in(json, "name");
  if (!name) return std::move(name).error();
  column.name = *std::move(name);
  if (json.contains("categories")) {
    auto categories = names_in(json["categories"], Order::ascending);
    if (!categories) return std::move(categories).error().within("categories");
    if (categories->empty()) return Error{"holds a column without a category"};
    column.categories = *std::move(categories);
  }
  if (!json.contains("mean")) return column;
  if (!json["mean"].is_number()) return Error{"holds a mean that is no number"};
  column.fill = json["mean"].get<float>();
  if (!std::isfinite(column.fill)) return Error{"holds a mean that is not finite"};
  return column;
}

}  // namespace

std::string print_names(const std::vector<std::string>& names) { return text_of(names); }

Result<std::vector<std::string>> parse_names(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Result<std::vector<std::string>>{Error{"is no JSON"}}
                             : names_in(json, Order::any);
}

std::string print_encoding(const models::Encoding& encoding) {
  Json json = Json::object();
  if (!encoding.label.empty()) json["label"] = encoding.label;
  if (encoding.fills) json["missing"] = "mean";
  json["columns"] = Json::array();
  for (const models::Column& column : encoding.columns) {
    Json column_json = Json::object();
    if (!column.name.empty()) column_json["name"] = column.name;
    if (column.is_category())
      column_json["categories"] = column.categories;
    else if (encoding.fills)
      column_json["mean"] = column.fill;
    json["columns"].push_back(std::move(column_json));
  }
  return text_of(json);
}

Result<models::Encoding> parse_encoding(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return Error{"is no JSON object"};
  if (!json.contains("columns") || !json["columns"].is_array()) return Error{"has no columns"};
  models::Encoding encoding;
  auto label = text_in(json, "label");
  if (!label) return std::move(label).error();
  encoding.label = *std::move(label);
  encoding.fills = json.contains("missing");
  for (const Json& column_json : json["columns"]) {
    auto column = column_in(column_json);
    if (!column) return std::move(column).error();
    encoding.columns.push_back(*std::move(column));
  }
  return encoding;
}

}  // namespace starling::program
