/// Training that stays on the device: parameters, gradient and optimiser state live there, a step
/// is one recorded graph, and the next batch is copied while this one is computed. For one machine;
/// the framework's workers call Net::gradient instead. No CUDA header is needed to include it. One
/// thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "starling/base/result.hpp"
#include "starling/models/clip.hpp"
#include "starling/models/cuda/device.hpp"
#include "starling/models/net/net.hpp"
#include "starling/models/optimizer.hpp"

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
  /// Starts from the parameters `w`, with room for batches of `rows` rows. Errors as make_engine's.
  static Result<Trainer> make(const Net<float>& net, std::size_t index, std::size_t rows,
                              std::span<const float> w, const TrainerOptions& options);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// Starts one step over a batch and returns, as a rule before it is done; waits while two are
  /// under way. `seed` decides what is drawn, `rate_scale` multiplies the learning rate. What fails
  /// is an Error of this call or of a later one. Requires: at most as many rows as make() was told.
  [[nodiscard]] Result<void> step(const Table& data, Batch batch, std::uint64_t seed,
                                  double rate_scale = 1);
  /// One more step over the batch that the last one copied, which draws what that one drew and
  /// updates with its rates: Adam's corrections are those of the same count of steps. An Error
  /// where the last step failed or there was none.
  [[nodiscard]] Result<void> repeat();
  /// Waits for all steps; the sums of loss and merit over their rows since the last call.
  [[nodiscard]] Result<Accumulator> finish();
  /// Waits for all steps and copies the parameters. Requires: w as long as they are.
  [[nodiscard]] Result<void> read(std::span<float> w) const;

  /// Batch sizes whose step is a graph by now.
  [[nodiscard]] std::size_t recorded() const;

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace starling::models::cuda
