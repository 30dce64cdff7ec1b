/// How the built-in models are listed. Plain values; any thread.
#pragma once

#include <string_view>

namespace starling::models {

/// A model's name and one line about it, with its grammar.
struct ModelName {
  std::string_view name;
  std::string_view summary;
};

}  // namespace starling::models
