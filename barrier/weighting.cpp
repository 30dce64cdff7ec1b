#include "starling/barrier/weighting.hpp"

#include <algorithm>
#include <vector>

#include "starling/base/text.hpp"

namespace starling::barrier {
namespace {

/// In the order of Weighting's enumerators.
const std::vector<std::string> weighting_names{"uniform", "availability", "speed"};

}  // namespace

Result<Weighting> parse_weighting(std::string_view text) {
  const auto found = std::ranges::find(weighting_names, text);
  if (found == weighting_names.end())
    return Error{"draw=" + std::string{text} + ": is unknown; " + suggest(text, weighting_names)};
  return static_cast<Weighting>(found - weighting_names.begin());
}

std::string print(Weighting weighting) {
  return weighting_names[static_cast<std::size_t>(weighting)];
}

}  // namespace starling::barrier
