/// Prints JSON as the program writes it. Pure function.
#pragma once

#include <string>

namespace starling {

/// Returns the text of `json`, an object of nlohmann's library: on one line if `indent` is
/// negative, else with lines that are indented by multiples of `indent` spaces. Replaces bytes that
/// are not UTF-8, because names of files may hold such bytes.
template <class Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace starling
