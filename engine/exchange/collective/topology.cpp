#include "starling/engine/exchange/collective/topology.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "starling/base/text.hpp"

namespace starling::collective {
namespace {

constexpr std::string_view line_form =
    "; valid: A B [LANES], two members and how many lanes are between them, such as 0 3 2";

/// Reads one line. Returns nullopt if the line is empty or has only a comment.
Result<std::optional<Link>> parse_line(std::string_view line) {
  const std::string_view content = trim(line.substr(0, line.find('#')));
  if (content.empty()) return std::optional<Link>{};
  std::array<std::uint64_t, 3> numbers{0, 0, 1};
  std::size_t count = 0;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find_first_of(" \t", at), content.size());
    if (end > at) {
      const std::string_view word = content.substr(at, end - at);
      if (count == numbers.size()) return Error{"more than three numbers" + std::string{line_form}};
      const bool is_member = count < 2;
      const auto number = parse_count(word, is_member ? 0 : 1,
                                      is_member ? topology_members_max - 1 : topology_lanes_max);
      if (!number) return Error{(is_member ? "member " : "lanes ") + number.error().message};
      numbers[count++] = *number;
    }
    at = end + 1;
  }
  if (count < 2) return Error{quote(content) + std::string{line_form}};
  if (numbers[0] == numbers[1])
    return Error{"a link from member " + std::to_string(numbers[0]) +
                 " to itself; valid: two different members"};
  return std::optional{Link{static_cast<Rank>(numbers[0]), static_cast<Rank>(numbers[1]),
                            static_cast<std::uint32_t>(numbers[2])}};
}

/// Returns the first member that member 0 cannot reach.
std::optional<Rank> unreachable(const Topology& topology) {
  std::vector<bool> is_reached(topology.members, false);
  is_reached[0] = true;
  for (std::size_t hops = 1; hops < topology.members; ++hops)
    for (const Link& link : topology.links)
      if (is_reached[link.from]) is_reached[link.to] = true;
  const auto found = std::ranges::find(is_reached, false);
  if (found == is_reached.end()) return std::nullopt;
  return static_cast<Rank>(found - is_reached.begin());
}

}  // namespace

Result<Topology> Topology::parse(std::string_view text, const std::string& path) {
  Topology topology;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    const std::string at = path + ":" + std::to_string(++number);
    const auto parsed = parse_line(line);
    if (!parsed) return Error{at + ": " + parsed.error().message};
    if (!*parsed) continue;
    const Link link = **parsed;
    if (topology.lanes(link.from, link.to) > 0)
      return Error{at + ": members " + std::to_string(link.from) + " and " +
                   std::to_string(link.to) + " have a link already; valid: each pair once"};
    topology.links.push_back(link);
    topology.links.push_back({link.to, link.from, link.lanes});
    topology.members = std::max<std::size_t>(topology.members, std::max(link.from, link.to) + 1);
  }
  if (topology.links.empty()) return Error{path + ": no links" + std::string{line_form}};
  if (const auto lost = unreachable(topology))
    return Error{path + ": no links lead from member 0 to member " + std::to_string(*lost) +
                 "; valid: a connected topology of members numbered from 0"};
  std::ranges::sort(topology.links, [](const Link& a, const Link& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
  return topology;
}

std::uint32_t Topology::lanes(Rank from, Rank to) const {
  for (const Link& link : links)
    if (link.from == from && link.to == to) return link.lanes;
  return 0;
}

bool is_links(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-x+") == std::string_view::npos;
}

Result<Topology> Topology::parse_links(std::string_view text) {
  std::string lines;
  for (const std::string_view link : split(text, '+')) {
    if (std::ranges::count(link, '-') != 1 || std::ranges::count(link, 'x') > 1 ||
        link.find('x') < link.find('-') || link.ends_with('x'))
      return Error{"link " + quote(link) + "; valid: A-B or A-BxLANES, such as 0-3x2"};
    lines += std::string{link} + "\n";
  }
  std::ranges::replace(lines, '-', ' ');
  std::ranges::replace(lines, 'x', ' ');
  return parse(lines, "links");
}

std::string print(const Topology& topology) {
  std::string text;
  for (const Link& link : topology.links) {
    if (link.from > link.to) continue;
    if (!text.empty()) text += '+';
    text += std::to_string(link.from) + "-" + std::to_string(link.to);
    if (link.lanes != 1) text += "x" + std::to_string(link.lanes);
  }
  return text;
}

Topology part_of(const Topology& whole, std::span<const Rank> members) {
  Topology part{.members = members.size()};
  for (Rank a = 0; a < members.size(); ++a)
    for (Rank b = 0; b < members.size(); ++b)
      if (const auto lanes = whole.lanes(members[a], members[b]); lanes > 0)
        part.links.push_back({a, b, lanes});
  return part;
}

}  // namespace starling::collective
