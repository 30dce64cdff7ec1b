/// Trains a net on one CUDA device. The parameters, the gradient and the optimiser's state stay on
/// the device. The repeated work of a step is recorded as a CUDA graph (graphs.hpp), and the next
/// batch is copied while the current step runs. A Trainer works alone: it belongs to no job, and
/// does not call Net::gradient(), with which the workers of a job compute. This header includes no
/// CUDA header. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "starling/base/result.hpp"
#include "starling/models/cuda/device.hpp"
#include "starling/models/net/net.hpp"
#include "starling/models/optimizer/clip.hpp"
#include "starling/models/optimizer/optimizer.hpp"

namespace starling::models::cuda {

struct TrainerOptions {
  Optimizer optimizer = Sgd{};
  /// The factor of the weight decay, which adds l2 * w to the gradient.
  double l2 = 0;
  Clip clip = {};
  Precision precision = Precision::float32;
};

class Trainer {
 public:
  /// Makes a trainer on device `index`: allocates memory for batches of `rows` rows, and copies the
  /// initial parameters `w` to the device. Returns an Error for the same reasons as make_engine()
  /// (device.hpp), and if `rows` is 0 or larger than a micro-batch of the net may be, because a
  /// Trainer does not divide batches. Requires: `w` has one value for each parameter of the net.
  static Result<Trainer> make(const Net<float>& net, std::size_t index, std::size_t rows,
                              std::span<const float> w, const TrainerOptions& options);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// Starts one step over a batch and returns, usually before the step is done. First waits until
  /// the step before the last step() is done, so that at most two calls of step() are in flight.
  /// `seed` determines the net's random numbers; `rate_scale` multiplies the learning rate. If the
  /// device fails, this call or a later one returns an Error. Requires: the net accepts `data`; the
  /// batch has 1 to `rows` rows, where `rows` was given to make().
  [[nodiscard]] Result<void> step(const Table& data, Batch batch, std::uint64_t seed,
                                  double rate_scale = 1);
  /// Starts another step with the batch, random numbers, learning rate and step number of the last
  /// step(), on the present parameters. Copies nothing to the device. (Adam's bias corrections
  /// depend on the step number.) Returns an Error if the last step() failed or step() was never
  /// called. For benchmarks.
  [[nodiscard]] Result<void> repeat();
  /// Waits for all steps in flight. Returns the sums of Accumulator::loss and metric_value over the
  /// rows of all steps since the last finish(), or since make(); for real targets, those of the
  /// targets as they are in the Table, scaled or not. More steps may follow.
  [[nodiscard]] Result<Accumulator> finish();
  /// Waits for all steps in flight, and copies the parameters to `w`. Requires: `w` has one element
  /// for each parameter.
  [[nodiscard]] Result<void> read(std::span<float> w) const;

  /// Returns the number of recorded graphs; for tests.
  [[nodiscard]] std::size_t recorded() const;

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace starling::models::cuda
