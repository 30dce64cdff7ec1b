/// Internal: how a Net computes: the forward and backward passes of one piece of a batch, and the
/// loss between them. Only net.cpp includes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "starling/models/kernels/kernels.hpp"
#include "starling/models/net/net.hpp"

namespace starling::models {

/// The values that the forward pass of one piece of a batch leaves behind. Value 0 is the input, to
/// which no step writes.
template <class T>
struct Net<T>::Run {
  std::size_t n = 0;
  std::span<const T> input;
  std::span<std::span<T>> values;
  std::span<Kept<T>> kept;
  /// For derivatives; see Plan::Value::slot.
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
          .kept = arena.take<Kept<T>>(plan_->steps().size())};
  std::construct_at(&run.values[0]);
  for (std::size_t s = 0; s < plan_->steps().size(); ++s) {
    const PlanStep<T>& step = plan_->steps()[s];
    std::span<T>& y = run.values[step.to];
    const std::size_t size = run.n * volume(plan_->values()[step.to].shape);
    std::construct_at(&y, step.in_place ? run.values[step.from[0]] : arena.take<T>(size));
    std::construct_at(&run.kept[s]);
    if (step.layer != nullptr) {
      run.kept[s] = step.layer->forward(
          {run.n, w.subspan(step.start, step.size), run.value(step.from[0]), y, pass});
      continue;
    }
    if (!step.in_place) std::ranges::copy(run.value(step.from[0]), y.begin());
    for (std::size_t i = 1; i < step.from.size(); ++i) axpy<T, T>(1, run.value(step.from[i]), y);
  }
  return run;
}

template <class T>
void Net<T>::take_slopes(Run& run, Arena& arena) const {
  run.slots = arena.take<std::span<T>>(plan_->slots().size());
  for (std::size_t i = 0; i < run.slots.size(); ++i)
    std::construct_at(&run.slots[i], arena.take<T>(run.n * plan_->slots()[i]));
  // A copy, because the last layer may read its outputs again.
  std::ranges::copy(run.scores(), slope(run, plan_->values().size() - 1).begin());
}

template <class T>
std::span<T> Net<T>::slope(const Run& run, std::size_t value) const {
  const auto& [shape, slot] = plan_->values()[value];
  return run.slots[slot].first(run.n * volume(shape));
}

template <class T>
void Net<T>::backward(std::span<const T> w, const Run& run, T share, bool is_first, std::span<T> g,
                      Pass& pass) const {
  for (std::size_t s = plan_->steps().size(); s-- > 0;) {
    const PlanStep<T>& step = plan_->steps()[s];
    if (step.layer == nullptr) {
      spread(run, step);
      continue;
    }
    const std::size_t from = step.from[0];
    const bool adds = step.adds[0] && from != 0;
    std::span<T> dx = from == 0 ? std::span<T>{} : slope(run, from);
    if (adds) dx = run.slots[step.spare_slot].first(dx.size());
    step.layer->backward({run.n, w.subspan(step.start, step.size), run.value(from),
                          run.values[step.to], run.kept[s], share, is_first, slope(run, step.to),
                          dx, g.subspan(step.start, step.size), pass});
    if (adds) axpy<T, T>(1, dx, slope(run, from));
  }
}

/// Passes the derivative by a sum on to each of its terms, unchanged.
template <class T>
void Net<T>::spread(const Run& run, const PlanStep<T>& sum) const {
  const std::span<T> dy = slope(run, sum.to);
  for (std::size_t i = 0; i < sum.from.size(); ++i) {
    const std::span<T> dx = slope(run, sum.from[i]);
    if (sum.adds[i]) {
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
