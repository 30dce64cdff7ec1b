#include "starling/models/tabular/affine_model.hpp"

#include <algorithm>

#include "starling/base/check.hpp"
#include "starling/models/tabular/batches.hpp"
#include "starling/models/tabular/linear_models.hpp"

namespace starling::models {

template <class T, class Kind>
Result<AffineModel<T, Kind>> AffineModel<T, Kind>::parse(const Spec& spec, const Table& data) {
  SpecReader reader{spec};
  AffineModel model;
  model.has_bias_ = reader.count("bias", Kind::has_bias ? 1 : 0, 0, 1) == 1;
  if (auto done = reader.finish(); !done) return std::move(done).error();
  if (auto fits = Kind::check_classes(data.classes()); !fits) return std::move(fits).error();
  if (data.features() == 0)
    return Error{std::string{name} + " needs features, but the data has none"};
  model.features_ = data.features();
  model.classes_ = data.classes();
  model.outputs_ = Kind::outputs(data.classes());
  model.is_sparse_ = data.is_sparse();
  return model;
}

template <class T, class Kind>
std::string AffineModel<T, Kind>::print() const {
  std::string text{name};
  if (has_bias_ != Kind::has_bias) text += has_bias_ ? ":bias=1" : ":bias=0";
  return text;
}

template <class T, class Kind>
std::vector<Parameter> AffineModel<T, Kind>::parameters() const {
  std::vector<std::size_t> shape{features_};
  if (outputs_ > 1) shape.push_back(outputs_);
  std::vector<Parameter> list{{.name = "weights", .shape = shape, .row_sparse = is_sparse_}};
  if (has_bias_) list.push_back({.name = "bias", .shape = {outputs_}, .decay = false});
  return list;
}

template <class T, class Kind>
void AffineModel<T, Kind>::initialise(std::span<T> w, Random&) const {
  std::ranges::fill(w, T{0});
}

template <class T, class Kind>
Result<void> AffineModel<T, Kind>::accepts(const Table& data) const {
  return check_data_shape(name, {features_, classes_, is_sparse_}, data);
}

template <class T, class Kind>
double AffineModel<T, Kind>::gradient(std::span<const T> w, const Table& data, Batch batch,
                                      std::span<T> g, ComputeContext& context) const {
  if (batch.empty()) return 0;
  const RowReader<T> reader{data, batch.size(), outputs_, context.arena};
  const std::span<T> buffer =
      context.arena.allocate<T>(std::min(batch.size(), rows_at_once) * outputs_);
  const Affine<T> layer_gradient = Affine<T>::from(g, features_, outputs_, has_bias_);
  const T weight = T{1} / static_cast<T>(batch.size());
  Accumulator sums;
  for_each_micro_batch(batch, [&](Batch micro_batch) {
    const std::span<T> z = buffer.first(micro_batch.size() * outputs_);
    const Rows<T> x = reader.read(micro_batch);
    affine_forward(x, layer(w), z);
    sums += Loss::apply(z, reader.labels(micro_batch), weight);
    affine_backward<T>(x, z, layer_gradient);
  });
  return squared_error_factor(data) * sums.loss / static_cast<double>(batch.size());
}

template <class T, class Kind>
Metrics AffineModel<T, Kind>::evaluate(std::span<const T> w, const Table& data, Batch batch,
                                       ComputeContext& context) const {
  const RowReader<T> reader{data, batch.size(), outputs_, context.arena};
  const std::span<T> buffer =
      context.arena.allocate<T>(std::min(batch.size(), rows_at_once) * outputs_);
  Accumulator sums;
  for_each_micro_batch(batch, [&](Batch micro_batch) {
    const std::span<T> z = buffer.first(micro_batch.size() * outputs_);
    affine_forward(reader.read(micro_batch), layer(w), z);
    sums += Loss::apply(z, reader.labels(micro_batch), T{1});
  });
  return mean_metrics<Loss>(sums, batch.size(), data);
}

template <class T, class Kind>
std::vector<TouchedRows> AffineModel<T, Kind>::touched(const Table& data, Batch batch) const {
  if (!is_sparse_) return {};
  return {{.parameter = 0, .rows = stored_columns(data, batch)}};
}

template <class T, class Kind>
void AffineModel<T, Kind>::scores(std::span<const T> w, const Table& data, Batch batch,
                                  ComputeContext& context, std::span<T> out) const {
  STARLING_CHECK(out.size() == batch.size() * outputs_);
  const RowReader<T> reader{data, batch.size(), outputs_, context.arena};
  for_each_micro_batch(batch, [&](Batch micro_batch) {
    const std::span<T> z =
        out.subspan(offset(batch, micro_batch) * outputs_, micro_batch.size() * outputs_);
    affine_forward(reader.read(micro_batch), layer(w), z);
  });
}

template <class T, class Kind>
void AffineModel<T, Kind>::predict(std::span<const T> w, const Table& data, Batch batch,
                                   ComputeContext& context, std::span<float> out) const {
  const std::span<T> z = context.arena.allocate<T>(batch.size() * outputs_);
  scores(w, data, batch, context, z);
  decide_rows<Loss, T>(z, out);
}

template class AffineModel<float, LinearKind>;
template class AffineModel<double, LinearKind>;
template class AffineModel<float, LogisticKind>;
template class AffineModel<double, LogisticKind>;
template class AffineModel<float, SoftmaxKind>;
template class AffineModel<double, SoftmaxKind>;
template class AffineModel<float, SvmKind>;
template class AffineModel<double, SvmKind>;

}  // namespace starling::models
