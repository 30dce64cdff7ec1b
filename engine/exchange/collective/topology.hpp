/// The links between the members of a collective, for algorithms and costs that depend on them.
/// Plain values; thread-safe to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// A directed link, which has `lanes` parallel lanes.
struct Link {
  Rank from;
  Rank to;
  std::uint32_t lanes;

  bool operator==(const Link&) const = default;
};

struct Topology {
  std::size_t members = 1;
  /// In ascending order of (from, to), with at most one link for each such pair. For each link from
  /// one member to another, there is one in the other direction with as many lanes.
  std::vector<Link> links{};

  /// Reads lines `A B [LANES]`: members A and B have LANES full-duplex lanes between them, by
  /// default 1. Members are numbered from 0. `#` begins a comment. Refuses topologies in which some
  /// member is not reachable. Errors begin with `path`, and name the line.
  static Result<Topology> parse(std::string_view text, const std::string& path);

  /// Reads links on one line, as print() writes them: `0-1+0-3x2` is one lane between members 0 and
  /// 1, and two between 0 and 3. Refuses what parse() refuses; errors name the number of the link.
  static Result<Topology> parse_links(std::string_view text);

  /// Returns the number of lanes from one member to another; 0 if there is no link.
  [[nodiscard]] std::uint32_t lanes(Rank from, Rank to) const;

  bool operator==(const Topology&) const = default;
};

/// Returns true if `text` has only characters that links on one line have, so that parse_links() is
/// to read it; a text for which it returns false may be the name of a file.
[[nodiscard]] bool is_links(std::string_view text);
/// Returns the links on one line, which Topology::parse_links() reads.
[[nodiscard]] std::string print(const Topology& topology);

/// Returns the links of `whole` between `members`. In the result, members[i] has the number i.
[[nodiscard]] Topology part_of(const Topology& whole, std::span<const Rank> members);

/// The NVLink lanes between the eight devices of a DGX-1V, as `nvidia-smi topo -m` lists them: six
/// lanes a device. Topology::parse() reads them.
inline constexpr std::string_view dgx_1v =
    "0 1 1\n0 2 1\n0 3 2\n0 4 2\n1 2 2\n1 3 1\n1 5 2\n2 3 2\n2 6 1\n3 7 1\n"
    "4 5 1\n4 6 1\n4 7 2\n5 6 2\n5 7 1\n6 7 2\n";

/// The most members of a topology, and the most lanes of a link.
inline constexpr std::size_t topology_members_max = 64;
inline constexpr std::size_t topology_lanes_max = 1024;

}  // namespace starling::collective
