/// Nets that are known by name. Any thread.
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
  /// All layers but the last, which is dense.
  std::string_view layers;
};

[[nodiscard]] const std::vector<NamedNet>& named_nets();

/// Returns the net called `name` with `outputs` outputs, or nullopt where the name is unknown.
[[nodiscard]] std::optional<NetDescription> named_net(std::string_view name, std::size_t outputs);

}  // namespace starling::models
