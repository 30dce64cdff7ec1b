#include "starling/tools/registry/registry.hpp"

#include <algorithm>

#include "starling/base/text.hpp"

namespace starling {

Result<void> Registry::check() const {
  for (const auto& entry : barriers_)
    if (auto valid = barrier::check(entry.rule); !valid) return valid;
  const auto is_separator = [](unsigned char c) { return c <= ' ' || c > '~' || c == ','; };
  for (const auto& entry : actors_) {
    const auto refuse = [&](const std::string& why) {
      return Error{"the name '" + printable(entry.name) + "' of your own actors " + why};
    };
    if (entry.name.empty() || std::ranges::any_of(entry.name, is_separator))
      return refuse("cannot be written in a job; valid: one word of ASCII characters without ','");
    if (std::ranges::count(actors_, entry.name, &program::ActorsEntry::name) > 1)
      return refuse("is given twice; valid: each name once");
    if (!entry.spawn) return refuse("has no function; valid: a function that spawns them");
  }
  return {};
}

}  // namespace starling

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
