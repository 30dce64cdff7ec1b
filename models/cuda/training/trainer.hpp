/// Training that stays on the device: parameters, gradient and optimiser state live there, a step
/// is one recorded graph, and the next batch is copied while the current one is computed. For one
/// machine; the framework's workers call Net::gradient instead. Including it needs no CUDA header.
/// One thread at a time.
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
  /// Weight decay of parameters that decay.
  double l2 = 0;
  Clip clip = {};
  Precision precision = Precision::float32;
};

class Trainer {
 public:
  /// Starts from the parameters `w` and takes memory for batches of `rows` rows. Errors: as
  /// make_engine's, and a `rows` that is 0 or too large for the net.
  static Result<Trainer> make(const Net<float>& net, std::size_t index, std::size_t rows,
                              std::span<const float> w, const TrainerOptions& options);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// Starts one step over a batch and returns, usually before the step is done; waits while two
  /// steps are in flight. `seed` decides the random draws, `rate_scale` multiplies the learning
  /// rate. A failure is an Error of this call or of a later one. Requires: at most as many rows as
  /// were given to make().
  [[nodiscard]] Result<void> step(const Table& data, Batch batch, std::uint64_t seed,
                                  double rate_scale = 1);
  /// Runs one more step over the batch that the last step copied, with the same draws and rates:
  /// Adam's corrections are those of the same count of steps. An Error where the last step failed
  /// or there was none.
  [[nodiscard]] Result<void> repeat();
  /// Waits for all steps and returns the sums of loss and merit over their rows since the last
  /// call.
  [[nodiscard]] Result<Accumulator> finish();
  /// Waits for all steps and copies the parameters. Requires: w as long as they are.
  [[nodiscard]] Result<void> read(std::span<float> w) const;

  /// Number of batch sizes whose step is recorded as a graph.
  [[nodiscard]] std::size_t recorded() const;

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace starling::models::cuda
