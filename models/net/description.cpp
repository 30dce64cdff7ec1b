#include "starling/models/net/description.hpp"

#include <utility>

#include "starling/base/text.hpp"

namespace starling::models {
namespace {

constexpr std::size_t layers_max = 1000;
constexpr std::size_t depth_max = 8;

/// Parses the text once, from left to right.
class LayersParser {
 public:
  explicit LayersParser(std::string_view text) : rest_(text) {}

  Result<std::vector<ParsedLayer>> parse() {
    auto layers = read_layers(0);
    if (layers && !rest_.empty())
      return Error{"layer " + std::to_string(count_) +
                   (next() == ')' ? ": ')' closes nothing" : ": '|' is outside of parentheses")};
    return layers;
  }

 private:
  /// Reads layers up to the end of the text or the next `|` or `)`, which remains unread.
  Result<std::vector<ParsedLayer>> read_layers(std::size_t depth) {
    std::vector<ParsedLayer> layers;
    while (true) {
      const std::string_view text = read_until(";|()");
      const bool has_branches = next() == '(';
      if (!trim(text).empty() || has_branches) {
        auto layer = read_layer(text, depth);
        if (!layer) return std::move(layer).error();
        layers.push_back(*std::move(layer));
      } else if (next() == ';' || !layers.empty()) {  // a net or branch without layers is valid
        return Error{"layer " + std::to_string(count_ + 1) +
                     ": is empty; valid: a layer between two ';', no ';' after the last"};
      }
      if (next() != ';') return layers;
      rest_.remove_prefix(1);
    }
  }

  /// Reads a layer whose name and options are `text`, and its branches.
  Result<ParsedLayer> read_layer(std::string_view text, std::size_t depth) {
    const std::string location = "layer " + std::to_string(++count_);
    if (count_ > layers_max) return Error{location + ": a net has at most 1000 layers"};
    auto spec = parse_spaced(text);
    if (!spec) return std::move(spec).error().within(location);
    ParsedLayer layer{*std::move(spec)};
    if (next() == '(') {
      if (depth == depth_max) return Error{location + ": is nested more than 8 parentheses deep"};
      if (auto done = read_branches(layer, depth); !done) return std::move(done).error();
      if (!trim(read_until(";|()")).empty() || next() == '(')
        return Error{location + ": something follows its ')'; valid: ';' and the next layer"};
    }
    return layer;
  }

  /// Reads the branches of `layer`, from the `(` to the `)`.
  Result<void> read_branches(ParsedLayer& layer, std::size_t depth) {
    const std::string location = "layer " + std::to_string(count_);
    do {
      rest_.remove_prefix(1);
      auto branch = read_layers(depth + 1);
      if (!branch) return std::move(branch).error();
      layer.branches.push_back(*std::move(branch));
    } while (next() == '|');
    if (next() != ')') return Error{location + ": its '(' is not closed"};
    rest_.remove_prefix(1);
    return {};
  }

  /// Consumes and returns the text before the next of `separators`.
  std::string_view read_until(std::string_view separators) {
    const std::string_view text = rest_.substr(0, rest_.find_first_of(separators));
    rest_.remove_prefix(text.size());
    return text;
  }

  /// Returns the next character without consuming it; 0 at the end of the text.
  [[nodiscard]] char next() const { return rest_.empty() ? '\0' : rest_.front(); }

  std::string_view rest_;
  /// The number of layers read so far.
  std::size_t count_ = 0;
};

}  // namespace

Result<Spec> parse_spaced(std::string_view text) {
  const std::string valid = "valid: a name and its options between spaces, like conv2d 16 kernel=3";
  if (text.find_first_of(",:") != std::string_view::npos)
    return Error{quote(trim(text)) + " holds a ',' or ':'; " + valid};
  if (trim(text).empty()) return Error{"has no name; " + valid};
  std::string spec;
  std::size_t words = 0;
  std::size_t start = 0;
  while ((start = text.find_first_not_of(" \t\r\n", start)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", start), text.size());
    if (words > 0) spec += words == 1 ? ':' : ',';
    spec += text.substr(start, end - start);
    start = end;
    ++words;
  }
  return Spec::parse(spec);
}

std::string print_spaced(const Spec& spec) {
  std::string text = spec.name;
  for (const auto& [key, value] : spec.options)
    text.append(" ").append(key).append(key.empty() ? "" : "=").append(value);
  return text;
}

Result<std::vector<ParsedLayer>> parse_layers(std::string_view text) {
  return LayersParser{text}.parse();
}

std::string print_layers(const std::vector<ParsedLayer>& layers) {
  std::string text;
  for (const ParsedLayer& layer : layers) {
    text += (text.empty() ? "" : "; ") + print_spaced(layer.spec);
    for (std::size_t b = 0; b < layer.branches.size(); ++b)
      text += (b == 0 ? "(" : " | ") + print_layers(layer.branches[b]);
    if (!layer.branches.empty()) text += ")";
  }
  return text;
}

std::string print(const NetDescription& description) {
  std::string text = "net:";
  if (!description.input.empty()) text += "input=" + print_shape(description.input) + ",";
  if (!description.loss.empty()) text += "loss=" + description.loss + ",";
  return text + "layers=" + print_layers(description.layers);
}

}  // namespace starling::models
