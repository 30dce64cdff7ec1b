#include "starling/models/loss.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/check.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::models {
namespace {

template <class T>
std::size_t index_of_largest(std::span<const T> scores) {
  return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
}

template <class T>
T distance(std::span<const T> a, std::span<const T> b) {
  T sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return std::sqrt(sum);
}

/// Returns the class index that a label holds. Checks it, because a label outside of [0, classes)
/// would read beyond the scores.
std::size_t class_of(float label, std::size_t classes) {
  STARLING_CHECK(label >= 0 && label < static_cast<float>(classes));
  return static_cast<std::size_t>(label);
}

/// `row` holds e_j = e^(z_j - max). Replaces each e_j by scale (softmax_j - [j is the label]) and
/// returns log(sum_j e_j).
template <class T>
double differentiate_softmax(std::span<T> row, std::size_t label, T scale) {
  T sum = 0;
  for (const T e : row) sum += e;
  const T factor = scale / sum;
  for (T& e : row) e *= factor;
  row[label] -= scale;
  return std::log(static_cast<double>(sum));
}

}  // namespace

template <class T>
Accumulator SquaredLoss::apply(std::span<T> scores, std::span<const float> labels, T scale) {
  STARLING_CHECK(scores.size() == labels.size());
  double squares = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const T error = scores[i] - static_cast<T>(labels[i]);
    squares += static_cast<double>(error) * static_cast<double>(error);
    scores[i] = scale * error;
  }
  return {0.5 * squares, squares};
}

template <class T>
float SquaredLoss::decide(std::span<const T> scores) {
  return static_cast<float>(scores[0]);
}

template <class T>
Accumulator LogLoss::apply(std::span<T> scores, std::span<const float> labels, T scale) {
  STARLING_CHECK(scores.size() == labels.size());
  Accumulator sums;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const T z = scores[i];
    const bool is_class_1 = class_of(labels[i], 2) == 1;
    // The exponent is never positive, so that the exponential cannot overflow.
    const T e = std::exp(-std::abs(z));
    const T sigmoid = (z >= 0 ? T{1} : e) / (1 + e);
    sums.loss += static_cast<double>(std::max(z, T{0}) - (is_class_1 ? z : T{0}) + std::log1p(e));
    sums.metric_value += (z > 0) == is_class_1 ? 1 : 0;
    scores[i] = scale * (sigmoid - (is_class_1 ? T{1} : T{0}));
  }
  return sums;
}

template <class T>
float LogLoss::decide(std::span<const T> scores) {
  return scores[0] > 0 ? 1.0F : 0.0F;
}

template <class T>
Accumulator SoftmaxLoss::apply(std::span<T> scores, std::span<const float> labels, T scale) {
  if (labels.empty()) return {};
  STARLING_CHECK(scores.size() % labels.size() == 0);
  const std::size_t classes = scores.size() / labels.size();
  Accumulator sums;
  // Two loops visit the rows, so that a single call between them computes all exponentials.
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<T> row = scores.subspan(i * classes, classes);
    const std::size_t label = class_of(labels[i], classes);
    const std::size_t best = index_of_largest<T>(row);
    const T max = row[best];
    sums.loss -= static_cast<double>(row[label] - max);
    sums.metric_value += best == label ? 1 : 0;
    for (T& z : row) z -= max;
  }
  exp<T>(scores);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<T> row = scores.subspan(i * classes, classes);
    sums.loss += differentiate_softmax<T>(row, class_of(labels[i], classes), scale);
  }
  return sums;
}

template <class T>
float SoftmaxLoss::decide(std::span<const T> scores) {
  return static_cast<float>(index_of_largest(scores));
}

template <class T>
Accumulator HingeLoss::apply(std::span<T> scores, std::span<const float> labels, T scale) {
  if (labels.empty()) return {};
  STARLING_CHECK(scores.size() % labels.size() == 0);
  const std::size_t outputs = scores.size() / labels.size();
  Accumulator sums;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<T> row = scores.subspan(i * outputs, outputs);
    const std::size_t label = class_of(labels[i], std::max<std::size_t>(outputs, 2));
    sums.metric_value += decide<T>(row) == labels[i] ? 1 : 0;
    for (std::size_t j = 0; j < outputs; ++j) {
      const T sign = label == (outputs == 1 ? 1 : j) ? T{1} : T{-1};
      const T slack = 1 - sign * row[j];
      // A slack that is NaN counts, so that the loss of a model that has diverged is NaN.
      const bool has_slack = !(slack <= 0);
      if (has_slack) sums.loss += static_cast<double>(slack);
      row[j] = has_slack ? -scale * sign : T{0};
    }
  }
  return sums;
}

template <class T>
float HingeLoss::decide(std::span<const T> scores) {
  return scores.size() == 1 ? LogLoss::decide(scores) : SoftmaxLoss::decide(scores);
}

template <class T>
Accumulator ContrastiveLoss::apply(std::span<T> scores, std::span<const float> labels, T scale,
                                   T margin) {
  if (labels.empty()) return {};
  STARLING_CHECK(scores.size() % (2 * labels.size()) == 0);
  const std::size_t width = scores.size() / labels.size() / 2;
  Accumulator sums;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<T> a = scores.subspan(2 * i * width, width);
    const std::span<T> b = scores.subspan((2 * i + 1) * width, width);
    const bool alike = class_of(labels[i], 2) == 0;
    const T d = distance<T>(a, b);
    sums.metric_value += (d < margin / 2) == alike ? 1 : 0;
    const T error = alike ? d : std::max(margin - d, T{0});  // keeps NaN
    sums.loss += 0.5 * static_cast<double>(error) * static_cast<double>(error);
    const T factor = alike ? scale : d > 0 ? -scale * error / d : T{0};
    for (std::size_t j = 0; j < width; ++j) {
      a[j] = factor * (a[j] - b[j]);
      b[j] = -a[j];
    }
  }
  return sums;
}

template <class T>
float ContrastiveLoss::decide(std::span<const T> scores, T margin) {
  const std::size_t width = scores.size() / 2;
  return distance<T>(scores.first(width), scores.subspan(width)) < margin / 2 ? 0.0F : 1.0F;
}

template Accumulator ContrastiveLoss::apply(std::span<float>, std::span<const float>, float, float);
template Accumulator ContrastiveLoss::apply(std::span<double>, std::span<const float>, double,
                                            double);
template float ContrastiveLoss::decide(std::span<const float>, float);
template float ContrastiveLoss::decide(std::span<const double>, double);

#define STARLING_INSTANTIATE(Loss, T)                                              \
  template Accumulator Loss::apply(std::span<T>, std::span<const float>, T scale); \
  template float Loss::decide(std::span<const T>);

STARLING_INSTANTIATE(SquaredLoss, float)
STARLING_INSTANTIATE(SquaredLoss, double)
STARLING_INSTANTIATE(LogLoss, float)
STARLING_INSTANTIATE(LogLoss, double)
STARLING_INSTANTIATE(SoftmaxLoss, float)
STARLING_INSTANTIATE(SoftmaxLoss, double)
STARLING_INSTANTIATE(HingeLoss, float)
STARLING_INSTANTIATE(HingeLoss, double)
#undef STARLING_INSTANTIATE

}  // namespace starling::models
