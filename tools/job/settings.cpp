#include "starling/tools/job/settings.hpp"

#include <algorithm>
#include <array>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

bool chooses_test_data(std::string_view key) {
  constexpr std::array<std::string_view, 3> keys{"test", "split", "holdout"};
  return std::ranges::find(keys, key) != keys.end();
}

/// Returns true if `old` is a key that only simulations have, and `flag` is the key of training
/// jobs for the same value.
bool sets_same(std::string_view flag, std::string_view old) {
  return (flag == "delay" && old == "step-time") || (flag == "seconds" && old == "horizon");
}

}  // namespace

Settings settings_of_flags(const std::vector<std::pair<std::string, std::string>>& flags) {
  Settings settings;
  for (const auto& [key, text] : flags) settings.push_back({key, text, "--" + key});
  return settings;
}

std::string location_of(const Settings& settings, std::string_view key) {
  const auto at = std::ranges::find(settings, key, &Setting::key);
  return at == settings.end() ? std::string{} : at->location;
}

std::string text_of(const Settings& settings, std::string_view key) {
  const auto at = std::ranges::find(settings, key, &Setting::key);
  return at == settings.end() ? std::string{} : at->text;
}

Result<void> put_count(std::uint64_t& into, const Settings& settings, const std::string& key,
                       std::uint64_t least, std::uint64_t most) {
  const std::string text = text_of(settings, key);
  if (text.empty()) return {};
  auto count = parse_count(text, least, most);
  if (!count) return std::move(count).error().within(location_of(settings, key));
  into = *count;
  return {};
}

Settings override_settings(Settings file, const Settings& flags) {
  const auto replaces = [](const Setting& flag, const Setting& old) {
    return flag.key == old.key || sets_same(flag.key, old.key) ||
           (chooses_test_data(flag.key) && chooses_test_data(old.key));
  };
  std::erase_if(file, [&](const Setting& old) {
    return std::ranges::any_of(flags, [&](const Setting& flag) { return replaces(flag, old); });
  });
  file.insert(file.end(), flags.begin(), flags.end());
  return file;
}

}  // namespace starling::program
