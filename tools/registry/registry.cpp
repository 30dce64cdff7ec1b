#include "starling/tools/registry/registry.hpp"

namespace starling::program {

std::string print(const Spec& spec) {
  std::string text = spec.name;
  for (const auto& [key, value] : spec.options) {
    text += text.size() == spec.name.size() ? ':' : ',';
    if (!key.empty()) text.append(key).append("=");
    text += value;
  }
  return text;
}

}  // namespace starling::program
