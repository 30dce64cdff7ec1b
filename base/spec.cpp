#include "starling/base/spec.hpp"

#include <algorithm>

#include "starling/base/text.hpp"

namespace starling {

Result<Spec> Spec::parse(std::string_view text) {
  const auto colon = text.find(':');
  Spec spec{.name = std::string{trim(text.substr(0, colon))}, .options = {}};
  if (spec.name.empty()) return Error{quote(text) + " has no name"};
  if (colon == std::string_view::npos) return spec;
  const auto options = text.substr(colon + 1);
  if (trim(options).empty()) return Error{quote(text) + " has nothing after its colon"};
  for (const std::string_view part : split(options, ',')) {
    const auto equals = part.find('=');
    const bool has_key = equals != std::string_view::npos;
    std::string key{has_key ? trim(part.substr(0, equals)) : std::string_view{}};
    std::string value{trim(has_key ? part.substr(equals + 1) : part)};
    if (value.empty() || (has_key && key.empty()))
      return Error{quote(text) + " has an empty option"};
    const auto is_repeated = [&](const auto& option) { return has_key && option.first == key; };
    if (std::ranges::any_of(spec.options, is_repeated))
      return Error{quote(text) + " gives '" + key + "' twice"};
    spec.options.emplace_back(std::move(key), std::move(value));
  }
  return spec;
}

const std::string* SpecReader::read_option(std::string_view key) {
  known_keys_.emplace_back(key);
  for (std::size_t i = 0; i < spec_.options.size(); ++i) {
    if (was_read_[i] || spec_.options[i].first != key) continue;
    was_read_[i] = true;
    return &spec_.options[i].second;
  }
  return nullptr;
}

std::uint64_t SpecReader::count(std::string_view key, std::uint64_t fallback, std::uint64_t least,
                                std::uint64_t most) {
  const std::string* value_text = read_option(key);
  if (value_text == nullptr) return fallback;
  const auto value = parse_count(*value_text);
  if (value && *value >= least && *value <= most) return *value;
  std::string valid = "a whole number >= " + std::to_string(least);
  if (most != UINT64_MAX) valid += " and <= " + std::to_string(most);
  refuse(std::string{key} + "=" + *value_text + " must be " + valid);
  return fallback;
}

std::uint64_t SpecReader::count_or_inf(std::string_view key, std::uint64_t fallback) {
  const auto is_infinite = [&](const auto& o) { return o.first == key && o.second == "inf"; };
  const auto found = std::ranges::find_if(spec_.options, is_infinite);
  if (found == spec_.options.end()) return count(key, fallback);
  (void)read_option(key);
  return UINT64_MAX;
}

double SpecReader::number(std::string_view key, double fallback, double least, double most) {
  const std::string* value_text = read_option(key);
  if (value_text == nullptr) return fallback;
  const auto value = parse_number(*value_text);
  if (value && *value >= least && *value <= most) return *value;
  refuse(std::string{key} + "=" + *value_text + " must be a number from " + print_number(least) +
         " to " + print_number(most));
  return fallback;
}

std::string SpecReader::text(std::string_view key, std::string_view fallback) {
  const std::string* value_text = read_option(key);
  return value_text ? *value_text : std::string{fallback};
}

std::vector<std::string> SpecReader::texts(std::string_view key) {
  std::vector<std::string> words;
  const std::string* value_text = read_option(key);
  if (value_text == nullptr) return words;
  words.push_back(*value_text);
  const auto is_key = [key](const auto& option) { return option.first == key; };
  const auto key_index = std::ranges::find_if(spec_.options, is_key) - spec_.options.begin();
  for (auto i = static_cast<std::size_t>(key_index) + 1;
       i < spec_.options.size() && spec_.options[i].first.empty(); ++i) {
    was_read_[i] = true;
    words.push_back(spec_.options[i].second);
  }
  return words;
}

std::chrono::nanoseconds SpecReader::duration(std::string_view key,
                                              std::chrono::nanoseconds fallback) {
  const std::string* value_text = read_option(key);
  if (value_text == nullptr) return fallback;
  const auto value = parse_duration(*value_text);
  if (value) return *value;
  refuse(std::string{key} + ": " + value.error().message);
  return fallback;
}

bool SpecReader::flag(std::string_view key) {
  if (const std::string* value_text = read_option(key))
    refuse(std::string{key} + "=" + *value_text +
           ": is a word without a value; valid: " + std::string{key});
  for (std::size_t i = 0; i < spec_.options.size(); ++i) {
    if (!spec_.options[i].first.empty() || spec_.options[i].second != key) continue;
    was_read_[i] = true;
    return true;
  }
  return false;
}

std::string SpecReader::positional() {
  const std::string* value_text = read_option("");
  known_keys_.pop_back();
  return value_text ? *value_text : std::string{};
}

bool SpecReader::has(std::string_view key) const {
  return std::ranges::any_of(spec_.options, [&](const auto& o) { return o.first == key; });
}

void SpecReader::refuse(std::string message) {
  if (error_.empty()) error_ = spec_.name + ": " + std::move(message);
}

Result<void> SpecReader::finish() {
  for (std::size_t i = 0; i < was_read_.size() && error_.empty(); ++i) {
    if (was_read_[i]) continue;
    const auto& [key, value] = spec_.options[i];
    const std::string& word = key.empty() ? value : key;
    refuse(known_keys_.empty() ? "takes no options, not '" + word + "'"
                               : "unknown option '" + word + "'; " + suggest(word, known_keys_));
  }
  if (error_.empty()) return {};
  return Error{error_};
}

}  // namespace starling
