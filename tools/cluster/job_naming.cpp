#include "starling/tools/cluster/job_naming.hpp"

#include <algorithm>
#include <string_view>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// The most characters of the model's text, and of the data's text, that become part of a job's
/// name.
constexpr std::size_t part_length_max = 24;

bool may_stand_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Returns the first run of letters, digits and '_' in the first part_length_max characters of
/// `text`, without a '_' at its beginning; `fallback` if there is none.
std::string name_part(std::string_view text, const std::string& fallback) {
  std::string part;
  for (const char c : text.substr(0, part_length_max)) {
    if (may_stand_in_name(c) && (c != '_' || !part.empty()))
      part += c;
    else if (!part.empty())
      break;
  }
  return part.empty() ? fallback : part;
}

/// Returns a name for a data source: the name of its first file without the folder, or the source's
/// kind, such as `digits`, if it names no file.
std::string_view data_name(std::string_view data) {
  const auto colon = data.find(':');
  const std::string_view kind = data.substr(0, colon);
  if (colon == std::string_view::npos) return kind;
  const std::string_view first = data.substr(colon + 1, data.find(',') - colon - 1);
  if (first.find('=') != std::string_view::npos) return kind;
  const auto slash = first.rfind('/');
  return slash == std::string_view::npos ? first : first.substr(slash + 1);
}

}  // namespace

std::string name_stem(const wire::JobSettings& settings) {
  if (const std::string flow = actor::setting_of(settings, "flow"); !flow.empty()) {
    const std::string file = actor::setting_of(settings, "input");
    return name_part(flow, "flow") + "-" + name_part(file.substr(file.rfind('/') + 1), "files");
  }
  const std::string model = actor::setting_of(settings, "model");
  const std::string data = actor::setting_of(settings, "data");
  const std::string name = name_part(data_name(data), "data");
  return model.empty() ? name : name_part(model, "model") + "-" + name;
}

std::string next_name(const std::string& stem, const std::set<std::string>& taken) {
  std::uint64_t highest = 0;
  for (const std::string& name : taken) {
    if (!name.starts_with(stem + "-")) continue;
    const auto number = parse_count(std::string_view{name}.substr(stem.size() + 1));
    if (number && *number < 1'000'000'000) highest = std::max(highest, *number);
  }
  std::string name;
  do name = stem + "-" + std::to_string(++highest);
  while (taken.contains(name));
  return name;
}

}  // namespace starling::program
