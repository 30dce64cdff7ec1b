/// Internal: computes a Net's forward pass, loss and backward pass for one piece of a batch. Only
/// net.cpp includes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "starling/models/kernels/kernels.hpp"
#include "starling/models/net/net.hpp"

namespace starling::models {

/// The values and saved data that the forward pass of one piece of a batch has computed. Value 0 is
/// the input, to which no step writes.
template <class T>
struct Net<T>::Run {
  std::size_t n = 0;
  std::span<const T> input;
  std::span<std::span<T>> values;
  std::span<Saved<T>> saved;
  /// The memory of derivatives; see Plan::Value::slot.
  std::span<std::span<T>> slots = {};

  [[nodiscard]] std::span<const T> value(std::size_t i) const {
    return i == 0 ? input : std::span<const T>{values[i]};
  }
  [[nodiscard]] std::span<T> scores() const { return values.back(); }
};

template <class T>
typename Net<T>::Run Net<T>::forward(std::span<const T> w, std::size_t rows, std::span<const T> x,
                                     Pass& pass) const {
  Arena& arena = pass.arena;
  Run run{.n = rows * inputs_in_row_,
          .input = x,
          .values = arena.take<std::span<T>>(plan_->values().size()),
          .saved = arena.take<Saved<T>>(plan_->steps().size())};
  std::construct_at(&run.values[0]);
  for (std::size_t s = 0; s < plan_->steps().size(); ++s) {
    const PlanStep<T>& step = plan_->steps()[s];
    std::span<T>& y = run.values[step.output];
    const std::size_t size = run.n * volume(plan_->values()[step.output].shape);
    std::construct_at(&y, step.in_place ? run.values[step.inputs[0]] : arena.take<T>(size));
    std::construct_at(&run.saved[s]);
    if (step.layer != nullptr) {
      run.saved[s] =
          step.layer->forward({run.n, w.subspan(step.parameters_start, step.parameters_size),
                               run.value(step.inputs[0]), y, pass});
      continue;
    }
    if (!step.in_place) std::ranges::copy(run.value(step.inputs[0]), y.begin());
    for (std::size_t i = 1; i < step.inputs.size(); ++i)
      axpy<T, T>(1, run.value(step.inputs[i]), y);
  }
  return run;
}

template <class T>
void Net<T>::allocate_derivatives(Run& run, Arena& arena) const {
  run.slots = arena.take<std::span<T>>(plan_->slots().size());
  for (std::size_t i = 0; i < run.slots.size(); ++i)
    std::construct_at(&run.slots[i], arena.take<T>(run.n * plan_->slots()[i]));
  // Copies the scores, because the last layer's backward pass may read them.
  std::ranges::copy(run.scores(), derivative(run, plan_->values().size() - 1).begin());
}

template <class T>
std::span<T> Net<T>::derivative(const Run& run, std::size_t value) const {
  const auto& [shape, slot] = plan_->values()[value];
  return run.slots[slot].first(run.n * volume(shape));
}

template <class T>
void Net<T>::backward(std::span<const T> w, const Run& run, T share, bool is_first, std::span<T> g,
                      Pass& pass) const {
  for (std::size_t s = plan_->steps().size(); s-- > 0;) {
    const PlanStep<T>& step = plan_->steps()[s];
    if (step.layer == nullptr) {
      pass_to_terms(run, step);
      continue;
    }
    const std::size_t input = step.inputs[0];
    const bool is_added = step.adds_derivative[0] && input != 0;
    std::span<T> dx = input == 0 ? std::span<T>{} : derivative(run, input);
    if (is_added) dx = run.slots[step.spare_slot].first(dx.size());
    step.layer->backward({run.n, w.subspan(step.parameters_start, step.parameters_size),
                          run.value(input), run.values[step.output], run.saved[s], share, is_first,
                          derivative(run, step.output), dx,
                          g.subspan(step.parameters_start, step.parameters_size), pass});
    if (is_added) axpy<T, T>(1, dx, derivative(run, input));
  }
}

/// Passes the derivative by a sum, unchanged, to each of its terms.
template <class T>
void Net<T>::pass_to_terms(const Run& run, const PlanStep<T>& sum) const {
  const std::span<T> dy = derivative(run, sum.output);
  for (std::size_t i = 0; i < sum.inputs.size(); ++i) {
    const std::span<T> dx = derivative(run, sum.inputs[i]);
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
