/// The interface through which another device computes a net. Results equal those of the net's own
/// kernels except for rounding and random draws. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "starling/models/loss.hpp"
#include "starling/models/model.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

template <class T>
class NetEngine {
 public:
  virtual ~NetEngine() = default;

  /// Adds the gradient to g, which is zero on entry, and returns the mean loss. If the data has
  /// real targets, the loss is that of the scaled targets (Labelling). `seed` determines the random
  /// draws. Throws if the device fails.
  virtual double gradient(std::span<const T> w, const Table& data, Batch batch, std::span<T> g,
                          std::uint64_t seed) const = 0;
  /// Returns the sums of loss and metric over the batch; for real targets, those of the scaled
  /// targets. Writes the scores [batch.size() x Net::outputs()] to `out` unless `out` is empty.
  /// Throws if the device fails.
  virtual Accumulator evaluate(std::span<const T> w, const Table& data, Batch batch,
                               std::span<T> out) const = 0;
};

}  // namespace starling::models
