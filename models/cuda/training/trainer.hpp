/// Trains a net on one device. Parameters, gradient and optimiser state stay on the device, a step
/// is one recorded graph, and the next batch is copied while the current step runs. A Trainer uses
/// none of the framework's workers, whose gradients are computed by Net::gradient. This header
/// includes no CUDA header. Not thread-safe.
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
  /// The weight decay.
  double l2 = 0;
  Clip clip = {};
  Precision precision = Precision::float32;
};

class Trainer {
 public:
  /// Copies the initial parameters `w` to device `index`, and allocates memory for batches of
  /// `rows` rows. Returns the errors of make_engine(), and an Error if `rows` is 0 or too large for
  /// the net.
  static Result<Trainer> make(const Net<float>& net, std::size_t index, std::size_t rows,
                              std::span<const float> w, const TrainerOptions& options);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// Starts one step over a batch and returns, usually before the step is done. If two steps are in
  /// flight, first waits for the earlier one. `seed` determines the net's random numbers;
  /// `rate_scale` multiplies the learning rate. If the device fails, this call or a later one
  /// returns an Error. Requires: the batch has 1 to `rows` rows, where `rows` was given to make().
  [[nodiscard]] Result<void> step(const Table& data, Batch batch, std::uint64_t seed,
                                  double rate_scale = 1);
  /// Starts a step that computes what the last step() did, without another copy: with the same
  /// batch, random numbers, learning rate and step number (on which Adam's bias corrections
  /// depend). Returns an Error if the last step() failed or there was none. For benchmarks.
  [[nodiscard]] Result<void> repeat();
  /// Waits for all steps. Returns the sums of loss and metric_value over all rows of the steps
  /// since the last finish().
  [[nodiscard]] Result<Accumulator> finish();
  /// Waits for all steps and copies the parameters to w. Requires: w has their size.
  [[nodiscard]] Result<void> read(std::span<float> w) const;

  /// Returns the number of recorded graphs; for tests.
  [[nodiscard]] std::size_t recorded() const;

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace starling::models::cuda
