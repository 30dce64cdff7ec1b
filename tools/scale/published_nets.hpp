/// Nets of publications, which are too large to be built-in models. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/net/description.hpp"

namespace starling::program {

struct PublishedNet {
  std::string_view name;
  std::string_view summary;
  /// The shape of a sample, as text for models::parse_shape().
  std::string_view input;
  /// The layers, as text for models::parse_layers().
  std::string_view layers;
};

/// Returns the nets in the order of the help.
[[nodiscard]] const std::vector<PublishedNet>& published_nets();

/// Returns a published net, a built-in one with ten outputs, or that of a file, `net:FILE`. `input`
/// is the shape of a sample; if it is empty, the net must have a shape of its own. Blocking. Errors
/// name what is valid.
[[nodiscard]] Result<models::NetDescription> find_net(const std::string& name,
                                                      const std::string& input);

}  // namespace starling::program
