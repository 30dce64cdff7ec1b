/// Models that are one affine layer and a loss: linear, logistic and softmax regression, and linear
/// support vector machines (linear_models.hpp names them). Immutable; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/loss.hpp"
#include "starling/models/model.hpp"
#include "starling/models/optimizer/recipe.hpp"
#include "starling/models/table.hpp"
#include "starling/models/tabular/affine.hpp"

namespace starling::models {

/// Minimises the mean over samples of Kind::Loss(x W + b, y).
///
/// Parameters: "weights" [features] for one output, else [features x outputs], row-sparse over
/// sparse tables; then "bias" [outputs], without weight decay, unless `bias=0`. All start at zero,
/// because the problems are convex.
///
/// A Kind defines: name; summary; Loss; has_bias, the default of the option `bias`;
/// check_classes(classes), which refuses training data with this number of classes; and
/// outputs(classes).
template <class T, class Kind>
class AffineModel {
 public:
  using Scalar = T;
  using Loss = typename Kind::Loss;
  static constexpr std::string_view name = Kind::name;
  static constexpr std::string_view summary = Kind::summary;

  /// Reads `name[:bias=0|1]`. The shapes of the parameters follow from `data`, the training data.
  static Result<AffineModel> parse(const Spec& spec, const Table& data);
  [[nodiscard]] std::string print() const;

  [[nodiscard]] std::vector<Parameter> parameters() const;
  void initialise(std::span<T> w, Random& random) const;
  /// Refuses data with another number of features (a sparse table may have fewer), labels of
  /// another kind, or more classes.
  [[nodiscard]] Result<void> accepts(const Table& data) const;

  double gradient(std::span<const T> w, const Table& data, Batch batch, std::span<T> g,
                  ComputeContext& context) const;
  /// Returns "loss", and "mse" or "accuracy".
  [[nodiscard]] Metrics evaluate(std::span<const T> w, const Table& data, Batch batch,
                                 ComputeContext& context) const;
  [[nodiscard]] std::vector<TouchedRows> touched(const Table& data, Batch batch) const;

  /// Writes x W + b of each row to `out` [batch.size() x outputs()].
  void scores(std::span<const T> w, const Table& data, Batch batch, ComputeContext& context,
              std::span<T> out) const;
  /// Writes the predicted class or value of each row to `out`.
  void predict(std::span<const T> w, const Table& data, Batch batch, ComputeContext& context,
               std::span<float> out) const;

  /// These options were the best in measurements over a dozen tables: see
  /// docs/concepts/defaults.md.
  [[nodiscard]] Recipe recipe() const {
    return {.optimizer = Adam{.lr = 0.02},
            .decays_rate = true,
            .decays_weights = classes_ > 0,
            .standardises = true,
            .steps = 1500};
  }

  [[nodiscard]] std::size_t features() const { return features_; }
  [[nodiscard]] std::size_t outputs() const { return outputs_; }
  [[nodiscard]] static Link link() { return Loss::link; }
  /// Returns the part of the parameter vector that holds the weights, to compare it with
  /// Table::true_weights.
  [[nodiscard]] std::span<const T> weights(std::span<const T> w) const {
    return w.first(features_ * outputs_);
  }

 private:
  AffineModel() = default;
  [[nodiscard]] Affine<const T> layer(std::span<const T> w) const {
    return Affine<const T>::from(w, features_, outputs_, has_bias_);
  }

  std::size_t features_ = 0;
  std::size_t classes_ = 0;
  std::size_t outputs_ = 1;
  bool has_bias_ = true;
  bool is_sparse_ = false;
};

}  // namespace starling::models
