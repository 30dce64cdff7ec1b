/// The settings that a user wrote in flags or in a job file: keys, values as text, and locations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

struct Setting {
  std::string key;
  std::string text;
  /// Where the user wrote it, for messages: `--workers`, or `job.toml:3: workers`.
  std::string location;
};

/// Settings in the order in which the user wrote them. A repeatable key may occur several times.
using Settings = std::vector<Setting>;

/// Returns settings as if a user had given them as flags: pairs of a key and its text.
[[nodiscard]] Settings settings_of_flags(
    const std::vector<std::pair<std::string, std::string>>& flags);

/// Returns the location of a key's first setting; empty if the key was not set.
[[nodiscard]] std::string location_of(const Settings& settings, std::string_view key);

/// Returns the value of a key's first setting as text; empty if the key was not set.
[[nodiscard]] std::string text_of(const Settings& settings, std::string_view key);

/// Stores parse(text) in `into`, where `text` is that of the key's first setting. Leaves `into`
/// unchanged if the key was not set, or if its text is empty. An error of `parse` begins with the
/// location.
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

/// Stores the value of a key in `into`. Refuses a value that is not a whole number from `least` to
/// `most`. Leaves `into` unchanged if the key was not set.
[[nodiscard]] Result<void> put_count(std::uint64_t& into, const Settings& settings,
                                     const std::string& key, std::uint64_t least,
                                     std::uint64_t most);

/// Returns the settings of `flags`, and those of `file` whose key is not set in `flags`. The keys
/// that choose test data (test, split, holdout) count as one key. `delay` in `flags` also replaces
/// `step-time` in `file`, and `seconds` replaces `horizon`.
[[nodiscard]] Settings override_settings(Settings file, const Settings& flags);

}  // namespace starling::program
