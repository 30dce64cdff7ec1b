#include "starling/tools/registry/net_file.hpp"

#include <algorithm>
#include <array>

#include "starling/base/text.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/files/toml_file.hpp"

namespace starling::program {
namespace {

const std::string valid_file = "a net's file with the keys input, loss and layers";

/// Returns a string, or the elements of a list of strings joined by ';'; nothing if the value is
/// neither.
std::optional<std::string> text_of(const toml::node& value) {
  if (value.is_string()) return value.as_string()->get();
  if (!value.is_array()) return std::nullopt;
  std::string joined;
  for (const toml::node& element : *value.as_array()) {
    if (!element.is_string()) return std::nullopt;
    joined += (joined.empty() ? "" : "; ") + element.as_string()->get();
  }
  return joined;
}

Result<void> read_value(const std::string& key, const toml::node& value,
                        models::NetDescription& description) {
  static const std::array<std::string, 3> keys{"input", "loss", "layers"};
  if (std::ranges::find(keys, key) == keys.end())
    return Error{"unknown key '" + key + "'; " + suggest(key, keys)};
  const auto text = text_of(value);
  if (!text || (key != "layers" && !value.is_string()))
    return Error{key + ": must be a string" + (key == "layers" ? " or a list of strings" : "")};
  if (key == "loss") {
    description.loss = *text;
  } else if (key == "input") {
    auto shape = models::parse_shape(*text);
    if (!shape) return std::move(shape).error().within(key);
    description.input = *std::move(shape);
  } else {
    auto layers = models::parse_layers(*text);
    if (!layers) return std::move(layers).error().within(key);
    description.layers = *std::move(layers);
  }
  return {};
}

}  // namespace

std::string net_file_in(const Spec& spec) {
  const bool is_file =
      spec.name == "net" && spec.options.size() == 1 && spec.options[0].first.empty();
  return is_file ? spec.options[0].second : "";
}

Result<models::NetDescription> parse_net_file(std::string_view content, const std::string& path) {
  const auto file = parse_toml(content, path, valid_file);
  if (!file) return file.error();
  models::NetDescription description;
  for (const auto& [key, value] : *file)
    if (auto done = read_value(std::string{key.str()}, value, description); !done)
      return std::move(done).error().within(path + ":" + std::to_string(line_of(value)));
  return description;
}

Result<models::NetDescription> read_net_file(const std::string& path) {
  const auto content = read_small_file(path, valid_file);
  if (!content) return content.error();
  return parse_net_file(*content, path);
}

}  // namespace starling::program
