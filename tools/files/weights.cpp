#include "starling/tools/files/weights.hpp"

#include "starling/base/text.hpp"

namespace starling::program {

Result<ElementType> parse_element_type(std::string_view text) {
  static const std::vector<std::string> names{"float32", "float64"};
  if (text == names[0]) return ElementType::float32;
  if (text == names[1]) return ElementType::float64;
  return Error{"'" + std::string{text} + "' is no element type; " + suggest(text, names)};
}

std::string print(ElementType type) { return type == ElementType::float32 ? "float32" : "float64"; }

}  // namespace starling::program
