/// What a net is made of, as people write it: layers one behind the other, separated by `;`, each a
/// name and its options separated by spaces, and branches in parentheses, separated by `|`:
///
///     conv2d 16 kernel=3 padding=1; relu; residual(conv2d 16 kernel=3 padding=1 | ); flatten
///
/// These signs are those that the grammar of flags leaves free (base/spec.hpp), so that a whole net
/// is one option's value. Plain values, any thread; what layers mean is layers.hpp's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/net/shape.hpp"

namespace starling::models {

/// One layer as written.
struct LayerText {
  /// Its name and options; `conv2d 16 kernel=3` has the positional option 16.
  Spec spec;
  /// What stands in its parentheses.
  std::vector<std::vector<LayerText>> branches = {};

  bool operator==(const LayerText&) const = default;
};

/// Reads layers. Errors name the layer by its number, counted from 1 as written, the residual ones
/// and what they hold included. At most 1000 layers, nested at most 8 deep.
[[nodiscard]] Result<std::vector<LayerText>> parse_layers(std::string_view text);

/// What parse_layers reads back.
[[nodiscard]] std::string print_layers(const std::vector<LayerText>& layers);

/// One name and its options, separated by spaces.
[[nodiscard]] Result<Spec> parse_spaced(std::string_view text);
[[nodiscard]] std::string print_spaced(const Spec& spec);

/// A whole net.
struct NetDescription {
  /// Of one sample; empty where it follows from the data.
  Shape input = {};
  /// `softmax`, `squared` or `contrastive margin=1`; empty for what suits the labels.
  std::string loss = {};
  std::vector<LayerText> layers = {};

  bool operator==(const NetDescription&) const = default;
};

}  // namespace starling::models
