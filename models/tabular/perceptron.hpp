/// The multilayer perceptron, a model of fully connected layers. Immutable; thread-safe.
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

/// The function that is applied to the outputs of every layer but the last.
enum class Activation { relu, tanh };

/// Computes h_l = f(h_(l-1) W_l + b_l) for each layer l; h_0 are the features, and the last layer
/// has no activation f. The loss is the softmax cross-entropy if the data has classes, and half the
/// squared error if it has real targets.
///
/// Parameters: "layerN.weights" [inputs x outputs] (the first row-sparse over sparse tables) and
/// "layerN.bias" [outputs], without weight decay; N counts from 1. Weights of a layer before relu
/// are initialised normal with variance 2 / inputs (He et al., ICCV 2015, eq. 10), the others
/// uniform within +-sqrt(6 / (inputs + outputs)) (Glorot, Bengio, AISTATS 2010, eq. 16), biases
/// with zero.
template <class T>
class Perceptron {
 public:
  using Scalar = T;
  static constexpr std::string_view name = "mlp";
  static constexpr std::string_view summary =
      "multilayer perceptron: mlp:784-128-10[,activation=relu|tanh]";

  /// Reads `mlp:WIDTH-...-WIDTH[,activation=relu|tanh]`. The first width must be the data's
  /// features, the last its classes, or 1 for real targets.
  static Result<Perceptron> parse(const Spec& spec, const Table& data);
  [[nodiscard]] std::string print() const;

  [[nodiscard]] std::vector<Parameter> parameters() const;
  void initialise(std::span<T> w, Random& random) const;
  /// Refuses data with another number of features (a sparse table may have fewer), labels of
  /// another kind, or more classes.
  [[nodiscard]] Result<void> accepts(const Table& data) const;

  double gradient(std::span<const T> w, const Table& data, Batch batch, std::span<T> g,
                  ComputeContext& context) const;
  /// Returns "loss", and "accuracy" or "mse".
  [[nodiscard]] Metrics evaluate(std::span<const T> w, const Table& data, Batch batch,
                                 ComputeContext& context) const;
  [[nodiscard]] std::vector<TouchedRows> touched(const Table& data, Batch batch) const;

  /// Writes the last layer's outputs of each row to `out` [batch.size() x outputs()].
  void scores(std::span<const T> w, const Table& data, Batch batch, ComputeContext& context,
              std::span<T> out) const;
  /// Writes the predicted class or value of each row to `out`.
  void predict(std::span<const T> w, const Table& data, Batch batch, ComputeContext& context,
               std::span<float> out) const;

  [[nodiscard]] Recipe recipe() const { return {.standardises = true}; }

  /// Returns the number of features, then the number of outputs of each layer.
  [[nodiscard]] const std::vector<std::size_t>& widths() const { return widths_; }
  [[nodiscard]] std::size_t outputs() const { return widths_.back(); }
  [[nodiscard]] Link link() const { return classes_ > 0 ? SoftmaxLoss::link : SquaredLoss::link; }
  [[nodiscard]] Activation activation() const { return activation_; }

 private:
  struct Workspace;

  Perceptron() = default;
  [[nodiscard]] std::size_t layers() const { return widths_.size() - 1; }
  [[nodiscard]] Workspace make_workspace(const Table& data, std::size_t batch_size,
                                         Arena& arena) const;
  /// Returns layer l, which counts from 0, of the parameter vector or of its gradient.
  template <class U>
  [[nodiscard]] Affine<U> layer(std::span<U> w, std::size_t l) const;
  /// Fills work.hidden and writes the last layer's outputs to `last_outputs`.
  void forward(std::span<const T> w, const Rows<T>& x, Workspace& work,
               std::span<T> last_outputs) const;
  /// Adds the gradient to g. `derivatives` are the derivatives of the loss with respect to the last
  /// layer's outputs.
  void backward(std::span<const T> w, const Rows<T>& x, Workspace& work,
                std::span<const T> derivatives, std::span<T> g) const;
  /// Replaces the scores by the derivatives of the weighted loss, and returns the sums of loss and
  /// metric.
  [[nodiscard]] Accumulator apply_loss(std::span<T> scores, std::span<const float> labels,
                                       T weight) const;

  std::vector<std::size_t> widths_;
  /// The index in the parameter vector at which each layer starts.
  std::vector<std::size_t> starts_;
  std::size_t classes_ = 0;
  bool is_sparse_ = false;
  Activation activation_ = Activation::relu;
};

}  // namespace starling::models
