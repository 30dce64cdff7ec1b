/// Trains on one thread without an engine: does the work of a worker's step and of the parameters'
/// owners, one after the other. Row-sparse parameters are handled as if they were dense. One thread
/// at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/random.hpp"
#include "starling/models/kernels/arena.hpp"
#include "starling/models/model.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "starling/models/order.hpp"
#include "starling/models/parameter.hpp"

namespace starling::models {

struct LoopOptions {
  Optimizer optimizer = Sgd{};
  /// Samples of a step; all of the data where it has fewer.
  std::size_t batch = 64;
  /// Decides the initial parameters, the order of the samples and the model's random draws.
  std::uint64_t seed = 1;
};

/// The parameters of a model and the state of its optimiser. After the first steps a step allocates
/// only what the model allocates.
template <class M, class D>
requires Model<M, D>
class TrainingLoop {
 public:
  using T = typename M::Scalar;

  /// `data` must outlive the loop. Requires: data with samples that the model accepts, a batch
  /// above 0.
  TrainingLoop(M model, const D& data, const LoopOptions& options)
      : model_(std::move(model)),
        data_(data),
        options_(options),
        order_(data.size(), 1, options.batch, options.seed),
        w_(total_size(model_.parameters())),
        g_(w_.size()),
        state_(slots(options.optimizer) * w_.size()) {
    Random random = Random::stream(options.seed, initial_stream);
    model_.initialise(std::span<T>{w_}, random);
    for (const Parameter& parameter : model_.parameters()) add(parameter);
  }

  /// Draws a batch, computes its gradient and applies it. Returns the batch's mean loss before the
  /// update. Where the model throws, the step has no effect.
  double step() {
    Random random = Random::stream(options_.seed, 0, steps_);
    order_.batch(0, steps_, batch_);
    arena_.reset();
    Pass pass{.random = random, .arena = arena_};
    if (std::exchange(is_dirty_, true)) std::ranges::fill(g_, T{0});
    const double loss = model_.gradient(std::span<const T>{w_}, data_, batch_, g_, pass);
    is_dirty_ = false;
    ++steps_;
    for (const Stretch& stretch : stretches_) update(stretch);
    return loss;
  }

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::span<const T> parameters() const { return w_; }

 private:
  /// Keeps the initial draw apart from the streams of steps.
  static constexpr std::uint64_t initial_stream = 0x1217;
  /// Elements of w, g and each slot that are updated at once: they fit into the first-level cache,
  /// so that clearing g costs no second pass over memory.
  static constexpr std::size_t block = 2048;

  /// Adjacent parameters that are either all trained or all not trained.
  struct Stretch {
    std::size_t from = 0;
    std::size_t to = 0;
    bool trained = true;
  };

  void add(const Parameter& parameter) {
    const std::size_t from = stretches_.empty() ? 0 : stretches_.back().to;
    const std::size_t to = from + parameter.size();
    if (!stretches_.empty() && stretches_.back().trained == parameter.trained)
      stretches_.back().to = to;
    else
      stretches_.push_back({from, to, parameter.trained});
  }

  void update(const Stretch& stretch) {
    const ApplyOptions now{.t = steps_};
    for (std::size_t at = stretch.from; at < stretch.to; at += block) {
      const std::size_t count = std::min(block, stretch.to - at);
      const std::span<T> w = std::span{w_}.subspan(at, count);
      const std::span<T> g = std::span{g_}.subspan(at, count);
      if (stretch.trained) {
        const auto state = state_.empty() ? std::span<T>{} : std::span{state_}.subspan(at);
        apply<T>(options_.optimizer, w, g, state, w_.size(), now);
      } else {
        for (std::size_t i = 0; i < count; ++i) w[i] += g[i];
      }
      std::ranges::fill(g, T{0});
    }
  }

  M model_;
  const D& data_;
  LoopOptions options_;
  SampleOrder order_;
  std::vector<T> w_;
  std::vector<T> g_;
  std::vector<T> state_;
  std::vector<Stretch> stretches_;
  std::vector<std::uint32_t> batch_;
  Arena arena_;
  std::uint64_t steps_ = 0;
  /// True while a gradient was begun and not applied.
  bool is_dirty_ = false;
};

}  // namespace starling::models
