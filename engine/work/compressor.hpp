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

/// Holds one worker's residual: the part of its gradients that the worker has not sent yet. One
/// call at a time.
class UpdateCompressor {
 public:
  /// Requires: check_compression() accepts the rule for this layout.
  UpdateCompressor(const models::Compression& rule, std::shared_ptr<const Layout> layout);

  /// Replaces the values of `update` by those that are sent now. A gradient is a mean over samples.
  /// If the last gradient had m samples and this one has n, the residual is first multiplied by
  /// m / n, so that both are sums over samples, divided by n. Requires: `update` has all ranges as
  /// one vector of floats, as Gradients::compute() returns them.
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
  /// The elements that the rule compresses: all, unless the rule sends few elements. Such a rule
  /// skips parameters that are not trained, such as running means, which are sent whole: their
  /// changes could otherwise wait in the residual for long.
  std::vector<Run> runs_;
  /// The residual of the elements in runs_, one run after the other.
  std::vector<float> residual_;
  /// The number of samples of the latest gradient; 0 before the first.
  std::uint32_t samples_ = 0;
};

}  // namespace starling::core
