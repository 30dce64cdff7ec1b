/// The options of commands that describe a network. Any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/collective/cost.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// A unit of an amount, and its size.
using Unit = std::pair<std::string_view, double>;

/// Reads a number above 0 with one of the units; the first unit with which the text ends counts.
/// The error ends with `valid`.
[[nodiscard]] Result<double> parse_amount(const std::string& text, std::span<const Unit> units,
                                          const std::string& valid);

/// Stores what `parse` makes of a key's text, if the user gave the key.
template <class Value, class Parse>
[[nodiscard]] Result<void> put(Value& into, const Settings& settings, const std::string& key,
                               Parse parse) {
  const std::string text = text_of(settings, key);
  if (text.empty()) return {};
  auto value = parse(text);
  if (!value) return std::move(value).error().within(location_of(settings, key));
  into = *std::move(value);
  return {};
}

/// Reads the keys `latency`, a duration, and `bandwidth`, in bits or bytes a second.
[[nodiscard]] Result<void> put_network(collective::Network& network, const Settings& settings);

}  // namespace starling::program
