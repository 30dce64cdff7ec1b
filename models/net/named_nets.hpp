/// The built-in nets, which users choose by name. Thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "starling/models/net/description.hpp"

namespace starling::models {

struct NamedNet {
  std::string_view name;
  std::string_view summary;
  /// The shape of a sample of the data for which the net was made: "28x28x1".
  std::string_view input;
  /// The text of all layers but the last, which is dense.
  std::string_view layers;
};

/// Returns all built-in nets.
[[nodiscard]] const std::vector<NamedNet>& named_nets();

/// Returns the net called `name` with `outputs` outputs, or nullopt if the name is unknown.
[[nodiscard]] std::optional<NetDescription> named_net(std::string_view name, std::size_t outputs);

}  // namespace starling::models
