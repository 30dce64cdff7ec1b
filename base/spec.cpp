#include "starling/base/spec.hpp"

#include <algorithm>

#include "starling/base/text.hpp"

namespace starling {

Result<Spec> Spec::parse(std::string_view text) {
  const auto colon = text.find(':');
  Spec spec{.name = std::string{trimmed(text.substr(0, colon))}, .options = {}};
  if (spec.name.empty()) return Error{shown(text) + " has no name"};
  if (colon == std::string_view::npos) return spec;
  const auto options = text.substr(colon + 1);
  if (trimmed(options).empty()) return Error{shown(text) + " has nothing behind its colon"};
  for (const std::string_view part : split(options, ',')) {
    const auto equals = part.find('=');
    const bool keyed = equals != std::string_view::npos;
    std::string key{keyed ? trimmed(part.substr(0, equals)) : std::string_view{}};
    std::string value{trimmed(keyed ? part.substr(equals + 1) : part)};
    if (value.empty() || (keyed && key.empty())) return Error{shown(text) + " has an empty option"};
    const auto same = [&](const auto& option) { return keyed && option.first == key; };
    if (std::ranges::any_of(spec.options, same))
      return Error{shown(text) + " gives '" + key + "' twice"};
    spec.options.emplace_back(std::move(key), std::move(value));
  }
  return spec;
}

const std::string* SpecReader::take(std::string_view key) {
  known_.emplace_back(key);
  for (std::size_t i = 0; i < spec_.options.size(); ++i) {
    if (taken_[i] || spec_.options[i].first != key) continue;
    taken_[i] = true;
    return &spec_.options[i].second;
  }
  return nullptr;
}

std::uint64_t SpecReader::count(std::string_view key, std::uint64_t otherwise, std::uint64_t least,
                                std::uint64_t most) {
  const std::string* written = take(key);
  if (written == nullptr) return otherwise;
  const auto value = parse_count(*written);
  if (value && *value >= least && *value <= most) return *value;
  std::string valid = "a whole number >= " + std::to_string(least);
  if (most != UINT64_MAX) valid += " and <= " + std::to_string(most);
  refuse(std::string{key} + "=" + *written + " must be " + valid);
  return otherwise;
}

std::uint64_t SpecReader::count_or_inf(std::string_view key, std::uint64_t otherwise) {
  const auto infinite = [&](const auto& o) { return o.first == key && o.second == "inf"; };
  const auto at = std::ranges::find_if(spec_.options, infinite);
  if (at == spec_.options.end()) return count(key, otherwise);
  (void)take(key);
  return UINT64_MAX;
}

double SpecReader::number(std::string_view key, double otherwise, double least, double most) {
  const std::string* written = take(key);
  if (written == nullptr) return otherwise;
  const auto value = parse_number(*written);
  if (value && *value >= least && *value <= most) return *value;
  refuse(std::string{key} + "=" + *written + " must be a number from " + print_number(least) +
         " to " + print_number(most));
  return otherwise;
}

std::string SpecReader::text(std::string_view key, std::string_view otherwise) {
  const std::string* written = take(key);
  return written ? *written : std::string{otherwise};
}

std::vector<std::string> SpecReader::texts(std::string_view key) {
  std::vector<std::string> all;
  const std::string* written = take(key);
  if (written == nullptr) return all;
  all.push_back(*written);
  const auto is_key = [key](const auto& option) { return option.first == key; };
  const auto at = std::ranges::find_if(spec_.options, is_key) - spec_.options.begin();
  for (auto i = static_cast<std::size_t>(at) + 1;
       i < spec_.options.size() && spec_.options[i].first.empty(); ++i) {
    taken_[i] = true;
    all.push_back(spec_.options[i].second);
  }
  return all;
}

std::chrono::nanoseconds SpecReader::duration(std::string_view key,
                                              std::chrono::nanoseconds otherwise) {
  const std::string* written = take(key);
  if (written == nullptr) return otherwise;
  const auto value = parse_duration(*written);
  if (value) return *value;
  refuse(std::string{key} + ": " + value.error().message);
  return otherwise;
}

bool SpecReader::flag(std::string_view key) {
  if (const std::string* written = take(key))
    refuse(std::string{key} + "=" + *written +
           ": is a word without a value; valid: " + std::string{key});
  for (std::size_t i = 0; i < spec_.options.size(); ++i) {
    if (!spec_.options[i].first.empty() || spec_.options[i].second != key) continue;
    taken_[i] = true;
    return true;
  }
  return false;
}

std::string SpecReader::positional() {
  const std::string* written = take("");
  known_.pop_back();
  return written ? *written : std::string{};
}

bool SpecReader::has(std::string_view key) const {
  return std::ranges::any_of(spec_.options, [&](const auto& o) { return o.first == key; });
}

void SpecReader::refuse(std::string message) {
  if (error_.empty()) error_ = spec_.name + ": " + std::move(message);
}

Result<void> SpecReader::finish() {
  for (std::size_t i = 0; i < taken_.size() && error_.empty(); ++i) {
    if (taken_[i]) continue;
    const auto& [key, value] = spec_.options[i];
    const std::string& word = key.empty() ? value : key;
    refuse(known_.empty() ? "takes no options, not '" + word + "'"
                          : "unknown option '" + word + "'; " + suggest(word, known_));
  }
  if (error_.empty()) return {};
  return Error{error_};
}

}  // namespace starling
