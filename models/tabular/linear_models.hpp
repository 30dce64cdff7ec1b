/// Defines the models that consist of one affine layer and a loss.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"
#include "starling/models/loss.hpp"
#include "starling/models/tabular/affine_model.hpp"
#include "starling/models/tabular/batches.hpp"

namespace starling::models {

/// Linear regression by least squares. Without bias the model has d parameters for d features, as
/// in the data source `linear:d=...` and in the experiments of the PSP paper.
struct LinearKind {
  using Loss = SquaredLoss;
  static constexpr std::string_view name = "linear";
  static constexpr std::string_view summary = "linear regression, squared error: linear[:bias=1]";
  static constexpr bool has_bias = true;
  static Result<void> check_classes(std::size_t classes) {
    if (classes == 0) return {};
    return Error{"linear needs real targets, but the data has " + describe_labels(classes)};
  }
  static std::size_t outputs(std::size_t) { return 1; }
};

/// Logistic regression for two classes.
struct LogisticKind {
  using Loss = LogLoss;
  static constexpr std::string_view name = "logistic";
  static constexpr std::string_view summary =
      "logistic regression for 2 classes, log loss: logistic[:bias=1]";
  static constexpr bool has_bias = true;
  static Result<void> check_classes(std::size_t classes) {
    if (classes == 2) return {};
    return Error{"logistic needs 2 classes, but the data has " + describe_labels(classes)};
  }
  static std::size_t outputs(std::size_t) { return 1; }
};

/// Multinomial logistic regression for any number of classes.
struct SoftmaxKind {
  using Loss = SoftmaxLoss;
  static constexpr std::string_view name = "softmax";
  static constexpr std::string_view summary =
      "softmax regression for k classes, cross-entropy: softmax[:bias=1]";
  static constexpr bool has_bias = true;
  static Result<void> check_classes(std::size_t classes) {
    if (classes >= 2) return {};
    return Error{"softmax needs 2 or more classes, but the data has " + describe_labels(classes)};
  }
  static std::size_t outputs(std::size_t classes) { return classes; }
};

/// Linear support vector machine; for more than two classes, one machine for each class against the
/// rest.
struct SvmKind {
  using Loss = HingeLoss;
  static constexpr std::string_view name = "svm";
  static constexpr std::string_view summary =
      "linear support vector machine, hinge loss: svm[:bias=1]";
  static constexpr bool has_bias = true;
  static Result<void> check_classes(std::size_t classes) {
    if (classes >= 2) return {};
    return Error{"svm needs 2 or more classes, but the data has " + describe_labels(classes)};
  }
  static std::size_t outputs(std::size_t classes) { return classes == 2 ? 1 : classes; }
};

template <class T>
using Linear = AffineModel<T, LinearKind>;
template <class T>
using Logistic = AffineModel<T, LogisticKind>;
template <class T>
using Softmax = AffineModel<T, SoftmaxKind>;
template <class T>
using Svm = AffineModel<T, SvmKind>;

}  // namespace starling::models
