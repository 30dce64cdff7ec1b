#include "starling/actor/flow/predictor.hpp"

#include <stdexcept>

#include "starling/base/text.hpp"
#include "starling/models/data/scaling.hpp"

namespace starling::flow {

Predictor::Predictor(Function function, const models::Table& shape)
    : state_(std::make_shared<const State>(
          State{std::move(function), shape.select({}), {.features = shape.features()}})) {}

std::vector<float> Predictor::predict(DenseRows rows) const {
  if (state_->shape.is_sparse())
    throw std::invalid_argument{"the model was trained on sparse samples; valid: SparseSample"};
  return predict_rows(models::Table::Dense{std::move(rows.values)}, rows.labels.size());
}

std::vector<float> Predictor::predict(SparseRows rows) const {
  if (!state_->shape.is_sparse())
    throw std::invalid_argument{"the model was trained on dense samples; valid: Sample"};
  models::Table::Sparse x{{0}, std::move(rows.columns), std::move(rows.values)};
  x.starts.insert(x.starts.end(), rows.ends.begin(), rows.ends.end());
  return predict_rows(std::move(x), rows.labels.size());
}

template <class X>
std::vector<float> Predictor::predict_rows(X x, std::size_t size) const {
  const models::Table& shape = state_->shape;
  models::Table table{shape.features(), shape.classes(), std::move(x), std::vector<float>(size)};
  table.has_labels = false;
  const models::Labelling& labels = shape.labelling;
  const bool is_scaled = !shape.scaling.shift.empty() || labels.shift != 0 || labels.divisor != 1;
  if (is_scaled) table = models::scaled(table, shape.scaling, labels);
  table.labelling = labels;
  std::vector<float> predicted = state_->function(std::move(table));
  if (predicted.size() != size)
    throw std::runtime_error{"the model returned " + print_count(predicted.size(), "prediction") +
                             " for " + print_count(size, "sample")};
  for (float& label : predicted) label = labels.original(label);
  return predicted;
}

}  // namespace starling::flow
