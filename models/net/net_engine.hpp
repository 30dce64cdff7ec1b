/// Computes a net on another device: with the same parameters and rows, the same results as the
/// net's own kernels within rounding; random draws differ. Immutable; any thread may call it.
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

  /// As Net::gradient; `seed` decides the random draws. Throws where the device fails.
  virtual double gradient(std::span<const T> w, const Table& data, Batch batch, std::span<T> g,
                          std::uint64_t seed) const = 0;
  /// Returns sums over the batch, and writes the scores [batch.size() x Net::outputs()] to `out`
  /// unless it is empty. Throws where the device fails.
  virtual Accumulator evaluate(std::span<const T> w, const Table& data, Batch batch,
                               std::span<T> out) const = 0;
};

}  // namespace starling::models
