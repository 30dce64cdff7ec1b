/// Trains a model on one thread, without workers and owners: each step computes a gradient and
/// applies it. Row-sparse parameters are handled like dense ones. Not thread-safe.
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
#include "starling/models/parameter.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::models {

struct LoopOptions {
  Optimizer optimizer = Sgd{};
  /// The number of samples of a step; all samples if the data has fewer.
  std::size_t batch = 64;
  /// Decides the initial parameters, the order of the samples and the model's random draws.
  std::uint64_t seed = 1;
};

/// The parameters of a model and the state of its optimiser. After the first steps, only the model
/// allocates memory.
template <class M, class D>
requires Model<M, D>
class TrainingLoop {
 public:
  using T = typename M::Scalar;

  /// `data` must outlive the loop. Requires: the data has samples, the model accepts it, and
  /// options.batch > 0.
  TrainingLoop(M model, const D& data, const LoopOptions& options)
      : model_(std::move(model)),
        data_(data),
        options_(options),
        order_(data.size(), 1, options.batch, options.seed),
        w_(total_size(model_.parameters())),
        g_(w_.size()),
        state_(slot_count(options.optimizer) * w_.size()) {
    Random random = Random::stream(options.seed, initial_stream);
    model_.initialise(std::span<T>{w_}, random);
    for (const Parameter& parameter : model_.parameters()) add_to_groups(parameter);
  }

  /// Draws a batch, computes its gradient and applies it. Returns the batch's mean loss before the
  /// update. If the model throws, the step has no effect.
  double step() {
    Random random = Random::stream(options_.seed, 0, steps_);
    order_.batch(0, steps_, batch_);
    arena_.reset();
    ComputeContext context{.random = random, .arena = arena_};
    if (std::exchange(is_gradient_dirty_, true)) std::ranges::fill(g_, T{0});
    const double loss = model_.gradient(std::span<const T>{w_}, data_, batch_, g_, context);
    is_gradient_dirty_ = false;
    ++steps_;
    for (const ParameterGroup& group : groups_) update(group);
    return loss;
  }

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::span<const T> parameters() const { return w_; }

 private:
  /// A key that makes the random numbers of the initial parameters independent of those of the
  /// steps.
  static constexpr std::uint64_t initial_stream = 0x1217;
  /// The number of elements of w, g and each slot that are updated at once. They fit into the
  /// first-level cache, so that clearing g costs no second pass over memory.
  static constexpr std::size_t block_size = 2048;

  /// Adjacent parameters that are either all trained or all not trained.
  struct ParameterGroup {
    /// The indices in w_ of the group's first element and of the element after its last.
    std::size_t from = 0;
    std::size_t to = 0;
    bool trained = true;
  };

  void add_to_groups(const Parameter& parameter) {
    const std::size_t from = groups_.empty() ? 0 : groups_.back().to;
    const std::size_t to = from + parameter.size();
    if (!groups_.empty() && groups_.back().trained == parameter.trained)
      groups_.back().to = to;
    else
      groups_.push_back({from, to, parameter.trained});
  }

  /// Applies the gradient to the group's elements and sets the gradient to zero.
  void update(const ParameterGroup& group) {
    const ApplyOptions options{.t = steps_};
    for (std::size_t first = group.from; first < group.to; first += block_size) {
      const std::size_t count = std::min(block_size, group.to - first);
      const std::span<T> w = std::span{w_}.subspan(first, count);
      const std::span<T> g = std::span{g_}.subspan(first, count);
      if (group.trained) {
        const auto state = state_.empty() ? std::span<T>{} : std::span{state_}.subspan(first);
        apply<T>(options_.optimizer, w, g, state, w_.size(), options);
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
  /// The parameters, their gradient, and the slots of the optimiser one after the other.
  std::vector<T> w_;
  std::vector<T> g_;
  std::vector<T> state_;
  std::vector<ParameterGroup> groups_;
  std::vector<std::uint32_t> batch_;
  Arena arena_;
  std::uint64_t steps_ = 0;
  /// True if g_ may hold parts of a gradient that was not applied, because the model threw.
  bool is_gradient_dirty_ = false;
};

}  // namespace starling::models
