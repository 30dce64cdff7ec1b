#include "starling/app/cluster/patience.hpp"

#include "starling/base/text.hpp"

namespace starling::app {

using namespace std::chrono_literals;

Result<std::chrono::nanoseconds> parse_patience(const std::string& text) {
  const auto time = parse_duration(parse_number(text) ? text + "s" : text);
  // It takes nodes some seconds to tell a death from a delay.
  if (!time || *time < 5s || *time > 24h * 365)
    return Error{"'" + text + "' must be seconds, or a time like 30s or 2min, from 5s to a year"};
  return *time;
}

}  // namespace starling::app
