#include "starling/tools/cluster/job_naming.hpp"

#include <algorithm>
#include <string_view>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// Letters of the model's part of a name, and of the data's.
constexpr std::size_t word_max = 24;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The first letters of `text` that may stand in a name, from one that is no '_'.
std::string word(std::string_view text, const std::string& otherwise) {
  std::string letters;
  for (const char c : text.substr(0, word_max)) {
    if (is_plain(c) && (c != '_' || !letters.empty()))
      letters += c;
    else if (!letters.empty())
      break;
  }
  return letters.empty() ? otherwise : letters;
}

/// The name of a generator, or of the first file without its folder and its ending.
std::string_view data_word(std::string_view data) {
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
  const std::string model = actor::text_of(settings, "model");
  const std::string data = actor::text_of(settings, "data");
  return word(model, "model") + "-" + word(data_word(data), "data");
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
