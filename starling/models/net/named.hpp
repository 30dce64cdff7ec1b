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
  /// All but the last layer, which is dense.
  std::string_view layers;
};

[[nodiscard]] const std::vector<NamedNet>& named_nets();

/// The net of that name with so many outputs; nothing where there is none.
[[nodiscard]] std::optional<NetDescription> named_net(std::string_view name, std::size_t outputs);

}  // namespace starling::models
