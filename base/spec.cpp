#include "starling/base/spec.hpp"

#include <algorithm>

#include "starling/base/text.hpp"

namespace starling {

Result<Spec> Spec::parse(std::string_view text) {
  const auto colon = text.find(':');
  Spec spec{.name = std::string{trim(text.substr(0, colon))}, .options = {}};
  if (spec.name.empty()) return Error{quote(text) + " has no name; valid: NAME or NAME:OPTIONS"};
  if (colon == std::string_view::npos) return spec;
  const auto options = text.substr(colon + 1);
  if (trim(options).empty())
    return Error{quote(text) + " has no options after ':'; valid: " + spec.name + ":OPTIONS"};
  for (const std::string_view part : split(options, ',')) {
    const auto equals = part.find('=');
    const bool has_key = equals != std::string_view::npos;
    std::string key{has_key ? trim(part.substr(0, equals)) : std::string_view{}};
    std::string value{trim(has_key ? part.substr(equals + 1) : part)};
    if (has_key && key.empty())
      return Error{spec.name + ": " + quote(trim(part)) + " has no key; valid: KEY=VALUE"};
    if (has_key && value.empty())
      return Error{spec.name + ": " + quote(trim(part)) + " has no value; valid: KEY=VALUE"};
    if (value.empty())
      return Error{quote(text) + " has an empty option; valid: one ',' between two options"};
    const auto is_repeated = [&](const auto& option) { return has_key && option.first == key; };
    if (std::ranges::any_of(spec.options, is_repeated))
      return Error{spec.name + ": " + quote(key) + " is given twice; valid: once"};
    spec.options.emplace_back(std::move(key), std::move(value));
  }
  return spec;
}

const std::string* SpecReader::read_option(std::string_view key) {
  known_keys_.emplace_back(key);
  return read_next(key);
}

const std::string* SpecReader::read_next(std::string_view key) {
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
  const std::string* value_text = read_option(key);
  if (value_text == nullptr) return fallback;
  if (*value_text == "inf") return UINT64_MAX;
  if (const auto value = parse_count(*value_text)) return *value;
  refuse(std::string{key} + "=" + *value_text + " must be a whole number >= 0, or inf");
  return fallback;
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
    refuse(std::string{key} + "=" + *value_text + " must be " + quote(key) +
           " without a value, or be left out");
  std::size_t times = 0;
  for (std::size_t i = 0; i < spec_.options.size(); ++i) {
    if (!spec_.options[i].first.empty() || spec_.options[i].second != key) continue;
    was_read_[i] = true;
    ++times;
  }
  if (times > 1) refuse(quote(key) + " is given twice; valid: once");
  return times > 0;
}

std::string SpecReader::positional() {
  ++positional_reads_;
  const std::string* value_text = read_next("");
  return value_text ? *value_text : std::string{};
}

bool SpecReader::has(std::string_view key) const {
  return std::ranges::any_of(spec_.options, [&](const auto& o) { return o.first == key; });
}

void SpecReader::refuse(std::string message) {
  if (error_.empty()) error_ = spec_.name + ": " + std::move(message);
}

Result<void> SpecReader::finish() {
  for (std::size_t i = 0; i < was_read_.size(); ++i)
    if (!was_read_[i]) refuse(explain_unread(spec_.options[i].first, spec_.options[i].second));
  if (error_.empty()) return {};
  return Error{error_};
}

std::string SpecReader::explain_unread(const std::string& key, const std::string& value) const {
  if (known_keys_.empty() && positional_reads_ == 0)
    return "takes no options, but '" + (key.empty() ? "" : key + "=") + value +
           "' is given; valid: " + spec_.name;
  if (!key.empty())
    return "unknown option '" + key + "'; " +
           (known_keys_.empty() ? "valid: values without a key" : suggest(key, known_keys_));
  if (std::ranges::find(known_keys_, value) != known_keys_.end())
    return "option '" + value + "' has no value; valid: " + value + "=VALUE";
  if (positional_reads_ == 0 || !nearest(value, known_keys_).empty())
    return "unknown option '" + value + "'; " + suggest(value, known_keys_);
  std::string keys;
  for (const std::string& known_key : known_keys_) keys += (keys.empty() ? "" : ", ") + known_key;
  return "'" + value + "' is one value too many; valid: at most " +
         print_count(positional_reads_, "value") + " without a key" +
         (keys.empty() ? "" : ", and options: " + keys);
}

}  // namespace starling
