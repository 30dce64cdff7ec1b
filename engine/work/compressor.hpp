/// Compresses the updates of a worker. Live and simulated jobs use the same code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "starling/engine/core/update.hpp"
#include "starling/engine/exchange/layout.hpp"
#include "starling/models/optimizer/compression.hpp"

namespace starling::core {

/// Holds one worker's residual: the gradients that the worker has not sent yet, in the unit of its
/// latest gradient. One call at a time.
class UpdateCompressor {
 public:
  /// Requires: check_compression() accepts the rule for this layout.
  UpdateCompressor(const models::Compression& rule, std::shared_ptr<const Layout> layout);

  /// Replaces the values of `update` by those that are sent now. A gradient is a mean over its
  /// samples, so if their number changes, the residual is scaled by the inverse: what is added up
  /// is the sum over samples. Requires: `update` has all ranges as one vector of floats, as
  /// Gradients::compute() returns them.
  void compress(Update& update);

  [[nodiscard]] const std::vector<float>& residual() const noexcept { return residual_; }

 private:
  /// A run of elements that the rule compresses.
  struct Run {
    std::size_t offset;
    std::size_t count;
  };

  models::Compression rule_;
  std::shared_ptr<const Layout> layout_;
  /// All elements, except those of parameters that are not trained if the rule sends few elements:
  /// a running mean must not wait until it is among the largest, and is sent whole.
  std::vector<Run> runs_;
  /// The residual of the elements in runs_, one run after the other.
  std::vector<float> residual_;
  /// The number of samples of the latest gradient; 0 before the first.
  std::uint32_t samples_ = 0;
};

}  // namespace starling::core
