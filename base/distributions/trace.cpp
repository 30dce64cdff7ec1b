#include "starling/base/distributions/trace.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/input.hpp"

namespace starling::laws {
namespace {

/// Parses a line from which the comment was removed; a plain number is a number of seconds.
Result<Duration> parse_line(std::string_view line) {
  if (const auto seconds = parse_number(line); seconds && *seconds >= 0)
    return parse_duration(std::string{line} + "s");
  auto duration = parse_duration(line);
  if (!duration)
    return Error{quote(line) + " is neither a duration like 20ms nor seconds like 0.02"};
  return duration;
}

}  // namespace

Result<Trace> Trace::read(const std::string& file) {
  constexpr std::size_t bytes_max = std::size_t{1} << 26U;
  const auto text = read_text(file, bytes_max);
  if (!text) return text.error();
  std::vector<Duration> durations;
  std::size_t line_number = 0;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++line_number;
    const auto content = trim(line.substr(0, line.find('#')));
    if (content.empty()) continue;
    auto duration = parse_line(content);
    if (!duration)
      return std::move(duration).error().within(file + ":" + std::to_string(line_number));
    durations.push_back(*duration);
  }
  if (durations.empty()) return Error{file + ": holds no duration"};
  return Trace{file, std::make_shared<const std::vector<Duration>>(std::move(durations))};
}

double Trace::mean_ns() const {
  double sum = 0;
  for (const Duration duration : *durations) sum += in_ns(duration);
  return sum / static_cast<double>(durations->size());
}

}  // namespace starling::laws
