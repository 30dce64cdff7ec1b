#pragma once

#include "starling/base/spec.hpp"
#include "starling/engine/exchange/collective/tree.hpp"

namespace starling::collective {

/// Two balanced binary trees, each for half of the vector. The inner members of one tree are leaves
/// of the other (one member may be inner in both), so that all ports work when the chunks are
/// pipelined: full bandwidth in a logarithmic number of rounds.
/// Source: Sanders, Speck and Träff 2009, "Two-tree algorithms for full bandwidth broadcast,
/// reduction and scan"; the trees are those of NCCL 2.4.
struct DoubleTree {
  static constexpr std::string_view name = "double-tree";
  static constexpr std::string_view form = "double-tree";
  static constexpr std::string_view summary = "two binary trees, each for half of the vector";

  static DoubleTree parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }
  [[nodiscard]] Result<void> check(std::size_t) const { return {}; }

  [[nodiscard]] Schedule reduce(std::size_t n, Rank root) const {
    std::vector<Tree> trees(2, Tree{std::vector<Rank>(n), 0.5});
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t up = parent(i, n);
      trees[0].parents[(i + root) % n] = static_cast<Rank>((up + root) % n);
      trees[1].parents[(member_in_second_tree(i, n) + root) % n] =
          static_cast<Rank>((member_in_second_tree(up, n) + root) % n);
    }
    return reduce_over(trees);
  }

  /// Returns the parent of position i in the first tree. Its root is 0 and odd positions are
  /// leaves; the subtree of an inner position covers neighbours on both sides.
  static std::size_t parent(std::size_t i, std::size_t n) {
    if (i == 0) return 0;
    const std::size_t bit = i & (~i + 1);
    const std::size_t right = (i ^ bit) | (bit << 1U);
    return right < n ? right : i ^ bit;
  }
  /// Returns the member that has position i in the second tree: the mirror image of i if n is even,
  /// else the one after i, so that leaves of the first tree become inner.
  static std::size_t member_in_second_tree(std::size_t i, std::size_t n) {
    return n % 2 == 0 ? n - 1 - i : (i + 1) % n;
  }

  bool operator==(const DoubleTree&) const = default;
};

}  // namespace starling::collective
