/// Parses and prints the text of a net's layers. Layers are separated by `;`; each is a name and
/// options, separated by spaces. The branches of a layer are in parentheses, separated by `|`:
///
///     conv2d 16 kernel=3 padding=1; relu; residual(conv2d 16 kernel=3 padding=1 | ); flatten
///
/// The grammar of flags (base/spec.hpp) does not use these separators, so a whole net can be the
/// value of one option. layers.hpp defines the layers. Plain values; thread-safe to read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/layers/shape.hpp"

namespace starling::models {

/// One layer as its text was parsed, before its options are read.
struct ParsedLayer {
  /// The layer's name and options: in `conv2d 16 kernel=3`, 16 is a positional option.
  Spec spec;
  /// The branches in the layer's parentheses.
  std::vector<std::vector<ParsedLayer>> branches = {};

  bool operator==(const ParsedLayer&) const = default;
};

/// Reads layers, at most 1000, nested at most 8 deep. Errors name a layer by its number. Numbers
/// count from 1 in the order of the text; `residual` layers and the layers in their branches count
/// too.
[[nodiscard]] Result<std::vector<ParsedLayer>> parse_layers(std::string_view text);

/// Returns text that parse_layers reads back.
[[nodiscard]] std::string print_layers(const std::vector<ParsedLayer>& layers);

/// Reads a name and options separated by spaces.
[[nodiscard]] Result<Spec> parse_spaced(std::string_view text);
/// Returns text that parse_spaced reads back.
[[nodiscard]] std::string print_spaced(const Spec& spec);

/// All that defines a net, except for its parameters.
struct NetDescription {
  /// The shape of one sample; empty to derive it from the data.
  Shape input = {};
  /// `softmax`, `squared` or `contrastive margin=1`; empty for the default: softmax for classes,
  /// squared for real targets.
  std::string loss = {};
  std::vector<ParsedLayer> layers = {};

  bool operator==(const NetDescription&) const = default;
};

/// Returns `net:`, the shape and the loss if they are set, and the layers: a model's text from
/// which Net::parse() makes the net without a file.
[[nodiscard]] std::string print(const NetDescription& description);

}  // namespace starling::models
