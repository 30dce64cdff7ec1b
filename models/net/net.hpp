/// A neural net as a model. Immutable; thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/loss.hpp"
#include "starling/models/model.hpp"
#include "starling/models/model_entry.hpp"
#include "starling/models/net/description.hpp"
#include "starling/models/net/net_engine.hpp"
#include "starling/models/net/plan.hpp"
#include "starling/models/optimizer/recipe.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// A sequence of layers (layers.hpp), in which the outputs of branches are added (description.hpp),
/// and a loss of the last layer's outputs, the scores:
/// - softmax: cross-entropy over as many outputs as the data has classes;
/// - squared: half the squared error of the one output, for real targets;
/// - contrastive: every row of the data holds two inputs, one after the other. The same layers
///   compute the output of each; ContrastiveLoss compares the two outputs. Class 0 means alike.
///
/// The parameters are those of the layers, in order, named "layerN.KIND.weights" and so on. The
/// data must have dense rows. A batch of more than rows_at_once (256) rows is computed in
/// micro-batches, so that memory stays bounded; batch normalisation then uses the statistics of
/// each micro-batch alone.
template <class T>
class Net {
 public:
  using Scalar = T;
  /// A net says which elements of its gradient are final while it still computes the others
  /// (EarlyPartsModel). Its own kernels do; a NetEngine computes the whole gradient at once, and
  /// does not call ComputeContext::on_final.
  static constexpr bool has_early_parts = true;
  enum class Loss { softmax, squared, contrastive };

  /// Returns "net" and the names of named_nets().
  static std::vector<ModelEntry> names();

  /// Reads `net:layers=LAYERS[,input=HxWxC][,loss=LOSS]`, or a name of named_nets() with
  /// `[:input=HxWxC]`. Without `input` the shape is a row of all features, unless the layers need
  /// an image; then it is Table::image if that fits the features, else that of guess_image().
  static Result<Net> parse(const Spec& spec, const Table& data);
  /// Makes the net of a description. Refuses a description without layers, and layers that do not
  /// fit each other or the data; the error names the layer and both shapes.
  static Result<Net> make(const NetDescription& description, const Table& data);
  /// Returns text that parse() reads back to the same net.
  [[nodiscard]] std::string print() const;

  [[nodiscard]] std::vector<Parameter> parameters() const { return plan_->parameters(); }
  void initialise(std::span<T> w, Random& random) const;
  /// Refuses data with another number of features, another kind of label, more classes, or ids that
  /// the embedding lacks.
  [[nodiscard]] Result<void> accepts(const Table& data) const;
  /// Refuses a number of samples that leaves only one to the last micro-batch, if a layer of batch
  /// normalisation has one number for each channel and sample: one number has no variance.
  [[nodiscard]] Result<void> accepts_batch(std::size_t samples) const;

  /// Adds the gradient to g and returns the mean loss; see model.hpp.
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

  /// Returns the default training options. The features are scaled unless they are ids of an
  /// embedding or pairs of inputs.
  [[nodiscard]] Recipe recipe() const;

  /// The number of outputs for one row: twice those of the last layer if the loss is contrastive.
  [[nodiscard]] std::size_t outputs() const { return inputs_in_row_ * volume(plan_->output()); }
  [[nodiscard]] Link link() const {
    return loss_ == Loss::softmax ? SoftmaxLoss::link : models::Link::none;
  }
  [[nodiscard]] const NetDescription& description() const { return description_; }
  [[nodiscard]] const Plan<T>& plan() const { return *plan_; }
  [[nodiscard]] Loss loss() const { return loss_; }
  /// The margin of the contrastive loss.
  [[nodiscard]] T margin() const { return margin_; }
  /// 2 if a row holds a pair of inputs, else 1.
  [[nodiscard]] std::size_t inputs_in_row() const { return inputs_in_row_; }
  /// The number of features of one row.
  [[nodiscard]] std::size_t features() const { return features_; }

  /// Returns the same net, computed by `engine`, which must have been made for this net, or by the
  /// net's own kernels if `engine` is null.
  [[nodiscard]] Net with_engine(std::shared_ptr<const NetEngine<T>> engine) const;

 private:
  struct MicroBatchState;

  Net() = default;
  /// Sets the loss that the description names, or the default for the data's labels.
  Result<void> set_loss(const Table& data);
  /// Checks that the first and the last layer fit the data.
  [[nodiscard]] Result<void> check_shapes(const Table& data) const;
  /// Runs the forward pass over `rows` rows of the data, whose features are `x`.
  [[nodiscard]] MicroBatchState forward(std::span<const T> w, std::size_t rows,
                                        std::span<const T> x, ComputeContext& context) const;
  /// Allocates memory for derivatives, and copies the scores to that of the last value's
  /// derivative, where apply_loss() replaces them.
  void allocate_derivatives(MicroBatchState& state, Arena& arena) const;
  /// Returns the memory that holds the derivative of the loss with respect to value number `value`
  /// of the plan.
  [[nodiscard]] std::span<T> derivative(const MicroBatchState& state, std::size_t value) const;
  /// The place of a micro-batch in its batch. The gradient is zero before the first micro-batch,
  /// and final after the last one.
  struct MicroBatchPlace {
    bool is_first;
    bool is_last;
  };
  /// Adds the gradient to g. `share` is the micro-batch's fraction of the batch.
  void backward(std::span<const T> w, const MicroBatchState& state, T share, MicroBatchPlace place,
                std::span<T> g, ComputeContext& context) const;
  /// The backward pass of an operation that adds its inputs.
  void backward_sum(const MicroBatchState& state, const Operation<T>& sum) const;
  /// Returns the sums of loss and metric over a batch.
  [[nodiscard]] Accumulator accumulate(std::span<const T> w, const Table& data, Batch batch,
                                       ComputeContext& context) const;
  /// Replaces the scores by the derivatives of the weighted loss, and returns the sums of loss and
  /// metric.
  [[nodiscard]] Accumulator apply_loss(std::span<T> scores, std::span<const float> labels,
                                       T weight) const;

  std::string name_ = "net";
  NetDescription description_;
  std::shared_ptr<const Plan<T>> plan_;
  std::shared_ptr<const NetEngine<T>> engine_;
  Loss loss_ = Loss::softmax;
  T margin_ = 1;
  std::size_t inputs_in_row_ = 1;
  std::size_t features_ = 0;
  std::size_t classes_ = 0;
};

}  // namespace starling::models
