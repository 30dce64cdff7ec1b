/// One entry in the list of built-in models. Plain values; thread-safe to read.
#pragma once

#include <string_view>

namespace starling::models {

/// The name of a model, and one line about it, which shows after a colon how to write the model and
/// its options in `--model`: "linear regression, squared error: linear[:bias=1]".
struct ModelEntry {
  std::string_view name;
  std::string_view summary;
};

}  // namespace starling::models
