/// The layers of a net, as people write them: layers one behind the other, separated by `;`, each a
/// name and its options separated by spaces, and branches in parentheses, separated by `|`:
///
///     conv2d 16 kernel=3 padding=1; relu; residual(conv2d 16 kernel=3 padding=1 | ); flatten
///
/// The grammar of flags leaves these separators free (base/spec.hpp), so that a whole net is one
/// option's value. Plain values, any thread; layers.hpp defines what layers mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/layers/shape.hpp"

namespace starling::models {

/// One layer as written.
struct LayerText {
  /// Its name and options; `conv2d 16 kernel=3` has the positional option 16.
  Spec spec;
  /// The branches in the layer's parentheses.
  std::vector<std::vector<LayerText>> branches = {};

  bool operator==(const LayerText&) const = default;
};

/// Reads layers. Errors name a layer by its number: layers count from 1 as written, and `residual`
/// layers and the layers in them count too. At most 1000 layers, nested at most 8 deep.
[[nodiscard]] Result<std::vector<LayerText>> parse_layers(std::string_view text);

/// Returns text that parse_layers reads back.
[[nodiscard]] std::string print_layers(const std::vector<LayerText>& layers);

/// Reads one name and its options, separated by spaces.
[[nodiscard]] Result<Spec> parse_spaced(std::string_view text);
[[nodiscard]] std::string print_spaced(const Spec& spec);

/// A whole net.
struct NetDescription {
  /// The shape of one sample; empty where it follows from the data.
  Shape input = {};
  /// `softmax`, `squared` or `contrastive margin=1`; empty for the loss that suits the labels.
  std::string loss = {};
  std::vector<LayerText> layers = {};

  bool operator==(const NetDescription&) const = default;
};

}  // namespace starling::models
