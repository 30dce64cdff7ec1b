/// The settings that a user wrote in flags or in a job file: keys, values as text, and locations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

struct Setting {
  std::string key;
  std::string text;
  /// Where the user wrote it, for messages: `--workers`, or `job.toml:3: workers`.
  std::string location;
};

/// In the order in which they were written. A repeatable key may occur several times.
using Settings = std::vector<Setting>;

/// Returns the location of a key's first setting; empty if the key was not set.
[[nodiscard]] std::string location_of(const Settings& settings, std::string_view key);

/// Returns the value of a key's first setting as text; empty if the key was not set.
[[nodiscard]] std::string text_of(const Settings& settings, std::string_view key);

/// Reads the value of a key as a whole number from `least` to `most` into `into`, which stays as it
/// is if the key was not set.
[[nodiscard]] Result<void> put_count(std::uint64_t& into, const Settings& settings,
                                     const std::string& key, std::uint64_t least,
                                     std::uint64_t most);

/// Returns the settings of `file`, of which `flags` replace those with the same key. The keys that
/// choose test data (test, split, holdout) count as the same key.
[[nodiscard]] Settings override_settings(Settings file, const Settings& flags);

}  // namespace starling::program
