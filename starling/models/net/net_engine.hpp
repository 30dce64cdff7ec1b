/// Another way to compute a net, on a device of its own: the same parameters, rows and results as
/// the net's own, within rounding; draws are others. Immutable; any thread may call it.
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

  /// As Net::gradient; `seed` decides what is drawn. Throws where the device fails.
  virtual double gradient(std::span<const T> w, const Table& data, Batch batch, std::span<T> g,
                          std::uint64_t seed) const = 0;
  /// Sums over the batch. `out` takes the scores [batch.size() x Net::outputs()] unless it is
  /// empty. Throws where the device fails.
  virtual Accumulator evaluate(std::span<const T> w, const Table& data, Batch batch,
                               std::span<T> out) const = 0;
};

}  // namespace starling::models
