#pragma once

#include <memory>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/exchange/collective/packing.hpp"

namespace starling::collective {

/// Spanning trees that are packed into a topology of links, each with the share of the vector that
/// its lanes allow; sums go up each tree and come down on it. Pipelined, the root of a broadcast
/// sends as fast as the topology allows.
/// Source: Wang et al. 2020, "Blink: Fast and Generic Collectives for Distributed ML" (arXiv
/// 1910.04940).
struct PackedTrees {
  static constexpr std::string_view name = "trees";
  static constexpr std::string_view form = "trees:FILE";
  static constexpr std::string_view summary =
      "spanning trees packed into the links that FILE lists, lines A B [LANES]";

  /// A file, or links that Topology::parse_links() reads.
  std::string file{};
  /// The links. The caller of the parser reads them if they are in a file.
  std::shared_ptr<const Topology> topology = nullptr;

  static PackedTrees parse(SpecReader& reader) {
    PackedTrees trees{.file = reader.positional()};
    if (trees.file.empty()) reader.refuse("the topology's file is missing; valid: trees:FILE");
    if (!is_links(trees.file)) return trees;
    auto links = Topology::parse_links(trees.file);
    if (links)
      trees.topology = std::make_shared<const Topology>(*std::move(links));
    else
      reader.refuse(links.error().message);
    return trees;
  }
  [[nodiscard]] std::string options() const { return file; }

  [[nodiscard]] Result<void> check(std::size_t members) const {
    if (topology == nullptr)
      return Error{file + " is a file, which was not read; valid: links such as 0-1+0-3x2"};
    if (topology->members == members) return {};
    return Error{file + " has " + print_count(topology->members, "member") + ", and " +
                 std::to_string(members) +
                 " are asked for; valid: " + std::to_string(topology->members)};
  }

  [[nodiscard]] Schedule reduce(std::size_t, Rank root) const {
    return reduce_over(pack_trees(*topology, root).trees);
  }

  bool operator==(const PackedTrees& other) const { return file == other.file; }
};

}  // namespace starling::collective
