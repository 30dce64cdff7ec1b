#include "starling/actor/cluster/job_name.hpp"

#include <algorithm>
#include <utility>

#include "starling/actor/job/job.hpp"
#include "starling/base/text.hpp"

namespace starling::actor {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Returns the name of the first file that a flow reads, and how many more it reads.
std::string summary_of_inputs(const wire::JobSettings& settings) {
  const std::string first = setting_of(settings, "input");
  const auto inputs =
      std::ranges::count(settings, "input", &std::pair<std::string, std::string>::first);
  std::string text = first.substr(first.rfind('/') + 1);
  if (inputs > 1) text += " and " + std::to_string(inputs - 1) + " more";
  return text;
}

}  // namespace

Result<void> check_job_name(std::string_view name) {
  const bool fits = !name.empty() && name.size() <= job_name_max;
  const bool is_plain = std::ranges::all_of(
      name, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
  if (fits && is_plain && is_letter_or_digit(name.front())) return {};
  return Error{"'" + printable(std::string{name.substr(0, 2 * job_name_max)}) +
               "' is not a valid job name; valid: letters, digits, '-', '_' and '.', a letter or a "
               "digit first, up to " +
               std::to_string(job_name_max) + " characters"};
}

std::string setting_of(const wire::JobSettings& settings, std::string_view key) {
  const auto setting =
      std::ranges::find(settings, key, &std::pair<std::string, std::string>::first);
  return setting == settings.end() ? std::string{} : setting->second;
}

std::string name_of(const wire::JobSettings& settings, wire::JobId job) {
  std::string name = setting_of(settings, "name");
  return check_job_name(name) ? name : std::to_string(job);
}

std::string summary_of(const wire::JobSettings& settings) {
  if (const std::string flow = setting_of(settings, "flow"); !flow.empty())
    return "flow " + flow + " on " + summary_of_inputs(settings);
  std::string text;
  for (const auto& [key, separator] :
       {std::pair{"model", ""}, {"data", " on "}, {"mode", ", "}, {"barrier", ", "}})
    if (const std::string value = setting_of(settings, key); !value.empty())
      text += (text.empty() ? "" : separator) + value;
  const std::string exchange = setting_of(settings, "exchange");
  return exchange.empty() || exchange == JobOptions{}.exchange ? text : text + ", " + exchange;
}

}  // namespace starling::actor
