/// Applies a trained model to the samples of a data set.
///
///     const auto w = starling::actor::parameters_of(model, options, outcome);
///     const starling::flow::Predictor predictor{model, w, train};
///     auto predicted = starling::flow::predict(samples, predictor);  // pairs (sample, label)
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "starling/actor/flow/sample_rows.hpp"
#include "starling/actor/flow/samples.hpp"
#include "starling/engine/flow/chain/narrow.hpp"
#include "starling/engine/flow/set.hpp"
#include "starling/models/evaluate.hpp"
#include "starling/models/model.hpp"
#include "starling/models/table.hpp"

namespace starling::flow {

/// A trained model, with the shape and scaling of its training data. Immutable; copies share the
/// model. Thread-safe.
class Predictor {
 public:
  /// Returns a prediction for each row of a table that is scaled like the training data: the index
  /// of a class, or a scaled target. Many threads call it at once.
  using Function = std::function<std::vector<float>(models::Table)>;

  /// `shape` is the training data; its rows are not kept.
  Predictor(Function function, const models::Table& shape);
  /// `w` are the parameters of the trained model.
  template <class M>
  requires models::PredictingModel<M, models::Table> Predictor(M model,
                                                               std::vector<typename M::Scalar> w,
                                                               const models::Table& train)
      : Predictor(
            [model = std::move(model), w = std::move(w)](const models::Table& data) {
              models::Arena arena;
              return models::predict_all(model, std::span{w}, data, arena);
            },
            train) {}

  /// Returns the label of each row, written as in the training data: the index of the class if
  /// classes have names. Throws std::invalid_argument for sparse rows if the model was trained on
  /// dense ones, and the reverse. Requires: the rows were added with options().
  [[nodiscard]] std::vector<float> predict(DenseRows rows) const;
  [[nodiscard]] std::vector<float> predict(SparseRows rows) const;
  /// Returns the label of one sample; predict() is faster for many. Throws std::invalid_argument
  /// for a sample that the model cannot read: see DenseRows::add().
  template <SampleRecord S>
  [[nodiscard]] float operator()(const S& sample) const {
    Rows<S> rows;
    rows.add(sample, options());
    return predict(std::move(rows)).front();
  }

  /// The requirements on samples, whose labels may be any finite numbers.
  [[nodiscard]] const TableOptions& options() const { return state_->options; }
  [[nodiscard]] const models::Labelling& labelling() const { return state_->shape.labelling; }

 private:
  struct State {
    Function function;
    models::Table shape;
    TableOptions options;
  };

  /// Predicts `size` rows, whose features are `x`.
  template <class X>
  [[nodiscard]] std::vector<float> predict_rows(X x, std::size_t size) const;

  std::shared_ptr<const State> state_;
};

/// Pairs each record with the prediction for `sample_of(record)`. Predicts in batches. The number
/// of threads does not change which records form a batch.
template <Chain C, class F>
class PredictChain : public NarrowChain<C> {
 public:
  using Value = std::pair<typename C::Value, float>;

  PredictChain(C input, Predictor predictor, F sample_of)
      : NarrowChain<C>(std::move(input), "predict"),
        predictor_(std::move(predictor)),
        sample_of_(std::move(sample_of)) {}

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    constexpr std::size_t batch_records = 256;
    Batch batch;
    std::uint64_t record = 0;
    bool goes_on = true;
    const auto flush = [&] {
      run_located([&] { goes_on = give(std::exchange(batch, {}), record, sink); },
                  [&] { return location_in_part("predict", part, record); });
      return goes_on;
    };
    this->input().run(task, part, [&]<class R>(R&& value) {
      batch.rows.add(std::invoke(sample_of_, std::as_const(value)), predictor_.options());
      batch.records.push_back(std::forward<R>(value));
      return batch.records.size() < batch_records || flush();
    });
    if (goes_on && !batch.records.empty()) flush();
  }

 private:
  using S = std::remove_cvref_t<std::invoke_result_t<const F&, const typename C::Value&>>;
  struct Batch {
    Rows<S> rows;
    std::vector<typename C::Value> records;
  };

  /// Passes the records of the batch, with their predictions, to `sink`. Adds 1 to `record` for
  /// each record after which the sink wants more. Returns false if the sink wants no more.
  template <class Sink>
  bool give(Batch batch, std::uint64_t& record, const Sink& sink) const {
    const std::vector<float> labels = predictor_.predict(std::move(batch.rows));
    for (std::size_t i = 0; i < labels.size(); ++i, ++record)
      if (!sink(Value{std::move(batch.records[i]), labels[i]})) return false;
    return true;
  }

  Predictor predictor_;
  F sample_of_;
};

/// Pairs each record with the label that the model predicts for its sample. `sample_of` returns the
/// Sample or SparseSample of a record; by default records are samples. A sample that the model
/// cannot read ends the action with an error that names the record.
template <class T, class C, class F = std::identity>
[[nodiscard]] auto predict(const Set<T, C>& set, const Predictor& predictor, F sample_of = {}) {
  using S = std::remove_cvref_t<std::invoke_result_t<const F&, const T&>>;
  static_assert(SampleRecord<S>,
                "predict() takes a set of samples, or a function that returns the Sample or the "
                "SparseSample of a record: `const Sample& f(const T& record)`");
  using Predictions = PredictChain<C, F>;
  return Set<typename Predictions::Value, Predictions>{
      set.runner(), Predictions{set.chain(), predictor, std::move(sample_of)}};
}

}  // namespace starling::flow
