#pragma once

#include "starling/models/optimizer/compressions/compression_method.hpp"

namespace starling::models {

/// Sends the given share of the elements, at least one: those whose residuals have the largest
/// absolute values (Aji, Heafield, EMNLP 2017; Lin et al., arXiv 1712.01887, without its momentum
/// correction). Elements with equal absolute values are chosen in the order of their indices.
struct TopK {
  static constexpr std::string_view name = "topk";
  static constexpr std::string_view example = "topk:share=1%";
  static constexpr bool sends_sparse = true;

  /// In (0, 1].
  double share = 0.01;

  /// Reads `share=1%` or `share=0.01`, 1 % by default.
  static TopK parse(SpecReader& reader);
  [[nodiscard]] std::string options() const;

  void compress(std::span<const float> g, std::span<float> residual, std::span<float> sent) const;

  bool operator==(const TopK&) const = default;
};

}  // namespace starling::models
