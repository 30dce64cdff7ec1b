/// Internal: computes a Net's forward pass, loss and backward pass for one micro-batch. Only
/// net.cpp includes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "starling/models/kernels/kernels.hpp"
#include "starling/models/net/net.hpp"

namespace starling::models {

/// The state of the forward and backward pass over one micro-batch, in memory of the arena.
/// Value 0 is the input, to which no operation writes.
template <class T>
struct Net<T>::MicroBatchState {
  /// The number of samples: inputs_in_row() times the number of rows of the micro-batch.
  std::size_t n = 0;
  std::span<const T> input;
  /// The values of the plan, by number; values[0] is empty.
  std::span<std::span<T>> values;
  /// The data that each operation's layer has saved for its backward pass.
  std::span<Saved<T>> saved;
  /// The memory blocks for the derivatives. Plan::Value::block is the index of the block that holds
  /// the derivative with respect to the value. Empty until allocate_derivatives() is called.
  std::span<std::span<T>> blocks = {};

  [[nodiscard]] std::span<const T> value(std::size_t i) const {
    return i == 0 ? input : std::span<const T>{values[i]};
  }
  /// The outputs of the plan's last operation, which may be a sum: the net's scores.
  [[nodiscard]] std::span<T> scores() const { return values.back(); }
};

template <class T>
typename Net<T>::MicroBatchState Net<T>::forward(std::span<const T> w, std::size_t rows,
                                                 std::span<const T> x,
                                                 ComputeContext& context) const {
  Arena& arena = context.arena;
  MicroBatchState state{.n = rows * inputs_in_row_,
                        .input = x,
                        .values = arena.allocate<std::span<T>>(plan_->values().size()),
                        .saved = arena.allocate<Saved<T>>(plan_->operations().size())};
  std::construct_at(&state.values[0]);
  for (std::size_t k = 0; k < plan_->operations().size(); ++k) {
    const Operation<T>& operation = plan_->operations()[k];
    std::span<T>& y = state.values[operation.output];
    const std::size_t size = state.n * volume(plan_->values()[operation.output].shape);
    std::construct_at(
        &y, operation.in_place ? state.values[operation.inputs[0]] : arena.allocate<T>(size));
    std::construct_at(&state.saved[k]);
    if (operation.layer != nullptr) {
      state.saved[k] = operation.layer->forward(
          {state.n, w.subspan(operation.parameters_start, operation.parameters_size),
           state.value(operation.inputs[0]), y, context});
      continue;
    }
    if (!operation.in_place) std::ranges::copy(state.value(operation.inputs[0]), y.begin());
    for (std::size_t i = 1; i < operation.inputs.size(); ++i)
      axpy<T, T>(1, state.value(operation.inputs[i]), y);
  }
  return state;
}

template <class T>
void Net<T>::allocate_derivatives(MicroBatchState& state, Arena& arena) const {
  state.blocks = arena.allocate<std::span<T>>(plan_->block_sizes().size());
  for (std::size_t i = 0; i < state.blocks.size(); ++i)
    std::construct_at(&state.blocks[i], arena.allocate<T>(state.n * plan_->block_sizes()[i]));
  // Copies the scores to the memory in which apply_loss() replaces them by their derivatives. The
  // scores themselves must stay, because the last layer's backward pass may read them.
  std::ranges::copy(state.scores(), derivative(state, plan_->values().size() - 1).begin());
}

template <class T>
std::span<T> Net<T>::derivative(const MicroBatchState& state, std::size_t value) const {
  const auto& [shape, block] = plan_->values()[value];
  return state.blocks[block].first(state.n * volume(shape));
}

template <class T>
void Net<T>::backward(std::span<const T> w, const MicroBatchState& state, T share,
                      MicroBatchPlace place, std::span<T> g, ComputeContext& context) const {
  for (std::size_t k = plan_->operations().size(); k-- > 0;) {
    const Operation<T>& operation = plan_->operations()[k];
    if (operation.layer == nullptr) {
      backward_sum(state, operation);
      continue;
    }
    const std::size_t input = operation.inputs[0];
    const bool is_added = operation.adds_derivative[0] && input != 0;
    std::span<T> dx = input == 0 ? std::span<T>{} : derivative(state, input);
    if (is_added) dx = state.blocks[operation.spare_block].first(dx.size());
    operation.layer->backward(
        {state.n, w.subspan(operation.parameters_start, operation.parameters_size),
         state.value(input), state.values[operation.output], state.saved[k], share, place.is_first,
         derivative(state, operation.output), dx,
         g.subspan(operation.parameters_start, operation.parameters_size), context});
    if (is_added) axpy<T, T>(1, dx, derivative(state, input));
    if (place.is_last && context.on_final != nullptr && operation.parameters_size > 0)
      (*context.on_final)(operation.parameters_start);
  }
}

/// The derivative with respect to each term of a sum equals the derivative with respect to the sum.
/// Adds it to the term's derivative if an operation that ran before has written one; else copies
/// it, unless term and sum share memory.
template <class T>
void Net<T>::backward_sum(const MicroBatchState& state, const Operation<T>& sum) const {
  const std::span<T> dy = derivative(state, sum.output);
  for (std::size_t i = 0; i < sum.inputs.size(); ++i) {
    const std::span<T> dx = derivative(state, sum.inputs[i]);
    if (sum.adds_derivative[i]) {
      axpy<T, T>(1, dy, dx);
    } else if (dx.data() != dy.data()) {
      std::ranges::copy(dy, dx.begin());
    }
  }
}

template <class T>
Accumulator Net<T>::apply_loss(std::span<T> scores, std::span<const float> labels, T weight) const {
  switch (loss_) {
    case Loss::softmax:
      return SoftmaxLoss::apply(scores, labels, weight);
    case Loss::squared:
      return SquaredLoss::apply(scores, labels, weight);
    case Loss::contrastive:
      return ContrastiveLoss::apply(scores, labels, weight, margin_);
  }
  return {};
}

}  // namespace starling::models
