/// Losses over the scores of a batch. Pure functions; thread-safe.
///
/// The scores are a model's outputs, a matrix [n x k] row by row, for n labels. A loss has
/// - apply: returns the sums of loss and metric over the rows, and replaces every score by `scale`
///   times the derivative of its row's loss with respect to that score;
/// - decide: returns the prediction from the scores of one row, a class index or a value;
/// - metric: the name of the quantity that Accumulator::metric_value sums;
/// - link: the function that turns scores into probabilities; ContrastiveLoss has no link.
#pragma once

#include <span>
#include <string_view>

namespace starling::models {

/// The function that turns a model's scores z into probabilities of its classes. none: there is no
/// such function; logistic: 1 / (1 + e^-z) is the probability of class 1; softmax: e^(z_j) /
/// sum_i e^(z_i) is the probability of class j.
enum class Link { none, logistic, softmax };

/// Sums over the rows of a batch.
struct Accumulator {
  double loss = 0;
  /// The sum of the loss's metric: for "accuracy" the number of rows predicted correctly, for "mse"
  /// the sum of squared errors.
  double metric_value = 0;

  Accumulator& operator+=(const Accumulator& other) {
    loss += other.loss;
    metric_value += other.metric_value;
    return *this;
  }
};

/// The squared error (z - y)^2 / 2 for one score z and a real label y.
struct SquaredLoss {
  static constexpr Link link = Link::none;
  static constexpr std::string_view metric = "mse";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale);
  template <class T>
  static float decide(std::span<const T> scores);
};

/// The cross-entropy of two classes: log(1 + e^z) - y z for one score z and the class y in {0, 1};
/// sigmoid(z) is the probability of class 1. Finite for every finite z.
struct LogLoss {
  static constexpr Link link = Link::logistic;
  static constexpr std::string_view metric = "accuracy";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale);
  template <class T>
  static float decide(std::span<const T> scores);
};

/// The cross-entropy of k classes: log(sum_j e^(z_j)) - z_y for k scores z_j and the class y;
/// softmax(z) are the probabilities. Finite for all finite scores.
struct SoftmaxLoss {
  static constexpr Link link = Link::softmax;
  static constexpr std::string_view metric = "accuracy";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale);
  template <class T>
  static float decide(std::span<const T> scores);
};

/// The hinge loss of support vector machines: sum_j max(0, 1 - t_j z_j). One score separates two
/// classes: t = 1 for class 1, else -1. With k > 1 scores, machine j separates class j from the
/// rest: t_j = 1 if j is the label, else -1 (Rifkin, Klautau, JMLR 2004). The derivative at
/// t_j z_j = 1 is 0.
struct HingeLoss {
  static constexpr Link link = Link::none;
  static constexpr std::string_view metric = "accuracy";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale);
  template <class T>
  static float decide(std::span<const T> scores);
};

/// The contrastive loss of pairs of vectors. A row of scores holds a vector a, then a vector b of
/// the same size; label 0 says that the pair is alike, label 1 that it is different. With D =
/// |a - b| the loss is D^2 / 2 for label 0 and max(0, margin - D)^2 / 2 for label 1 (Hadsell,
/// Chopra, LeCun, CVPR 2006, eq. 4). If D is 0, the loss for label 1 has no derivative, and 0
/// is used. A pair is predicted to be alike if D is below half the margin.
struct ContrastiveLoss {
  static constexpr std::string_view metric = "accuracy";
  template <class T>
  static Accumulator apply(std::span<T> scores, std::span<const float> labels, T scale, T margin);
  template <class T>
  static float decide(std::span<const T> scores, T margin);
};

}  // namespace starling::models
