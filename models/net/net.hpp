/// A net of layers as a model. An immutable value; any thread may call it.
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
#include "starling/models/model_name.hpp"
#include "starling/models/net/description.hpp"
#include "starling/models/net/net_engine.hpp"
#include "starling/models/net/plan.hpp"
#include "starling/models/optimizer/recipe.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Layers one behind the other, with branches that are added (description.hpp, layers.hpp), and a
/// loss over the last one's outputs:
/// - softmax: cross-entropy over as many outputs as the data has classes;
/// - squared: half the squared error of the one output, for real targets;
/// - contrastive: every row of the data holds two inputs one behind the other, which go through the
///   same net; ContrastiveLoss compares the two outputs, for classes 0 (alike) and 1.
///
/// Parameters are those of the layers in order, named "layerN.KIND.weights" and so on. Dense rows
/// only. Batches of more than 256 rows are handled in pieces, so that memory stays bounded; batch
/// normalisation takes the statistics of each piece alone.
template <class T>
class Net {
 public:
  using Scalar = T;
  enum class Loss { softmax, squared, contrastive };

  /// "net" and the names of named_nets().
  static std::vector<ModelName> names();

  /// Reads `net:layers=LAYERS[,input=HxWxC][,loss=LOSS]`, or a name of named_nets() with
  /// `[:input=HxWxC]`. Without `input` a row of the data is an image where the layers read images
  /// and guess_image() finds one, else a row.
  static Result<Net> parse(const Spec& spec, const Table& data);
  /// Makes the net of a description. Errors: no layers, or layers that do not fit each other or the
  /// data, with the layer and both shapes.
  static Result<Net> make(const NetDescription& description, const Table& data);
  /// Returns text that parse() reads back to the same net.
  [[nodiscard]] std::string print() const;

  [[nodiscard]] std::vector<Parameter> parameters() const { return plan_->parameters(); }
  void initialise(std::span<T> w, Random& random) const;
  /// Refuses data with another number of features, labels of another kind, more classes, or ids
  /// that the embedding lacks.
  [[nodiscard]] Result<void> accepts(const Table& data) const;
  /// Refuses batches of too few samples.
  [[nodiscard]] Result<void> accepts_batch(std::size_t samples) const;

  double gradient(std::span<const T> w, const Table& data, Batch batch, std::span<T> g,
                  Pass& pass) const;
  /// "loss", and "accuracy" or "mse".
  [[nodiscard]] Metrics evaluate(std::span<const T> w, const Table& data, Batch batch,
                                 Pass& pass) const;
  [[nodiscard]] std::vector<TouchedRows> touched(const Table& data, Batch batch) const;

  /// Writes the last layer's outputs of each row to `out` [batch.size() x outputs()].
  void scores(std::span<const T> w, const Table& data, Batch batch, Pass& pass,
              std::span<T> out) const;
  /// Writes the predicted class or value of each row to `out`.
  void predict(std::span<const T> w, const Table& data, Batch batch, Pass& pass,
               std::span<float> out) const;

  /// The recipe does not scale features that are ids of an embedding or pairs that are compared.
  [[nodiscard]] Recipe recipe() const;

  /// Outputs for one row: twice those of the last layer where the loss is contrastive.
  [[nodiscard]] std::size_t outputs() const { return inputs_in_row_ * volume(plan_->output()); }
  [[nodiscard]] Link link() const {
    return loss_ == Loss::softmax ? SoftmaxLoss::link : models::Link::none;
  }
  [[nodiscard]] const NetDescription& description() const { return description_; }
  [[nodiscard]] const Plan<T>& plan() const { return *plan_; }
  [[nodiscard]] Loss loss() const { return loss_; }
  /// The margin of the contrastive loss.
  [[nodiscard]] T margin() const { return margin_; }
  /// 2 where a row holds a pair of inputs, else 1.
  [[nodiscard]] std::size_t inputs_in_row() const { return inputs_in_row_; }
  /// Features of one row.
  [[nodiscard]] std::size_t features() const { return features_; }

  /// Returns the same net, computed by `engine`, which was made for it; with null, by the net's own
  /// kernels.
  [[nodiscard]] Net on(std::shared_ptr<const NetEngine<T>> engine) const;

 private:
  struct Run;

  Net() = default;
  Result<void> read_loss(const Table& data);
  [[nodiscard]] Result<void> fits(const Table& data) const;
  [[nodiscard]] Run forward(std::span<const T> w, std::size_t rows, std::span<const T> x,
                            Pass& pass) const;
  /// Takes memory for derivatives and puts the scores where the loss will turn them into
  /// derivatives.
  void take_slopes(Run& run, Arena& arena) const;
  /// Returns the memory of the derivative by a value.
  [[nodiscard]] std::span<T> slope(const Run& run, std::size_t value) const;
  /// Adds to g, which is zero before the first run. `share` is the share of the run's rows in the
  /// batch.
  void backward(std::span<const T> w, const Run& run, T share, bool is_first, std::span<T> g,
                Pass& pass) const;
  void spread(const Run& run, const PlanStep<T>& sum) const;
  /// The loss's sums over a batch.
  [[nodiscard]] Accumulator accumulate(std::span<const T> w, const Table& data, Batch batch,
                                       Pass& pass) const;
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
