/// The settings that a person wrote, in flags or in a job file: keys, values as text, and where
/// they stand.
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
  /// For messages: `--workers`, or `job.toml:3: workers`.
  std::string place;
};

/// In the order written; a repeatable key may stand several times.
using Settings = std::vector<Setting>;

/// The place of a key, empty where it was not set.
[[nodiscard]] std::string place_of(const Settings& settings, std::string_view key);

/// The first text of a key, empty where it was not set.
[[nodiscard]] std::string text_of(const Settings& settings, std::string_view key);

/// Reads a key's count, `least` to `most`; `into` stays as it is where the key was not set.
[[nodiscard]] Result<void> put_count(std::uint64_t& into, const Settings& settings,
                                     const std::string& key, std::uint64_t least,
                                     std::uint64_t most);

/// Returns `file` overridden by `flags`, key by key. The keys that choose test data (test, split,
/// holdout) count as one.
[[nodiscard]] Settings overridden(Settings file, const Settings& flags);

}  // namespace starling::program
