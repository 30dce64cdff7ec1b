/// Losses over the scores of a batch. Plain functions of values: any thread may call them.
///
/// A loss offers, for scores [n x k] row by row and n labels,
/// - apply: returns sums over the rows, and replaces every score by `scale` times the derivative of
///   its row's loss by it;
/// - decide: returns the prediction from a row's scores, a class index or a value;
/// - metric: the name of the quantity that Accumulator::merit sums;
/// - link: the function that turns scores into probabilities.
#pragma once

#include <span>
#include <string_view>

namespace starling::models {

/// How a model's scores become probabilities of its classes. none: not at all; logistic: 1 / (1 +
/// e^-z) of the one score is the probability of class 1; softmax: e^(z_j) / sum_i e^(z_i) of score
/// j is the probability of class j.
enum class Link { none, logistic, softmax };

/// Sums over the rows of a batch.
struct Accumulator {
  double loss = 0;
  /// Rows predicted correctly, or the sum of squared errors: see the loss's metric.
  double merit = 0;

  Accumulator& operator+=(const Accumulator& other) {
    loss += other.loss;
    merit += other.merit;
    return *this;
  }
};

/// (z - y)^2 / 2 for one score z and a real label y; the merit is (z - y)^2.
struct SquaredLoss {
  static constexpr Link link = Link::none;
  static constexpr std::string_view metric = "mse";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale);
  template <class T>
  static float decide(std::span<const T> scores);
};

/// Two classes by one score z: log(1 + e^z) - y z with y in {0, 1}, so sigmoid(z) is the
/// probability of class 1. Finite for every finite z.
struct LogLoss {
  static constexpr Link link = Link::logistic;
  static constexpr std::string_view metric = "accuracy";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale);
  template <class T>
  static float decide(std::span<const T> scores);
};

/// k classes by k scores: log(sum_j e^(z_j)) - z_y, the cross-entropy of softmax(z). Finite for
/// all finite scores.
struct SoftmaxLoss {
  static constexpr Link link = Link::softmax;
  static constexpr std::string_view metric = "accuracy";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale);
  template <class T>
  static float decide(std::span<const T> scores);
};

/// Hinge: sum_j max(0, 1 - t_j z_j). One score tells two classes apart (t = 1 for class 1, else
/// -1); k scores are k machines, one against the rest (t_j = 1 where j is the label, else -1)
/// (Rifkin, Klautau, JMLR 2004). The derivative at the kink is 0.
struct HingeLoss {
  static constexpr Link link = Link::none;
  static constexpr std::string_view metric = "accuracy";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale);
  template <class T>
  static float decide(std::span<const T> scores);
};

/// Pairs of vectors a and b, one behind the other in a row of scores. With D = |a - b| the loss is
/// D^2 / 2 for label 0, alike, and max(0, margin - D)^2 / 2 for label 1 (Hadsell, Chopra, LeCun,
/// CVPR 2006, eq. 4). Where D is 0, b has no direction to be pushed in, and the derivative is 0. A
/// pair counts as alike where D is below half the margin.
struct ContrastiveLoss {
  static constexpr std::string_view metric = "accuracy";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale, T margin);
  template <class T>
  static float decide(std::span<const T> scores, T margin);
};

}  // namespace starling::models
