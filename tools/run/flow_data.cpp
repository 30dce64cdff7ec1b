#include "starling/tools/run/flow_data.hpp"

#include <utility>

namespace starling::program {

Result<flow::Set<flow::Sample>> flow_samples(const flow::MapReduce& engine,
                                             const Registry& registry, const std::string& source,
                                             std::uint64_t seed) {
  const auto data = load_source(registry, source, seed);
  if (!data) return data.error();
  const models::Table* table = data->table();
  if (table == nullptr)
    return Error{source + ": its data is not a table; valid: a source whose data is a table"};
  return flow::samples(engine, *table, source);
}

Result<flow::Predictor> load_predictor(const Registry& registry, const std::string& path,
                                       Trust trust) {
  const auto stored = read_model(path, trust);
  if (!stored) return stored.error();
  const auto& shape = stored->notes.shape;
  if (!shape)
    return Error{path + ": was not trained on a table; valid: a model that was trained on one"};
  // `shape` is the training data without its rows.
  const AnyData no_samples = AnyData::of(*shape);
  const auto model = model_in(registry, *stored, no_samples, path);
  if (!model) return model.error();
  auto weights = weights_in(*stored, **model);
  if (!weights) return std::move(weights).error();
  // A model that cannot predict returns nothing, even for no samples.
  if (!(*model)->predict(*weights, no_samples))
    return Error{path + ": model " + (*model)->print() +
                 " makes no predictions; valid: a model with the function predict()"};
  return flow::Predictor{[model = *model, w = *std::move(weights)](models::Table table) {
                           return model->predict(w, AnyData::of(std::move(table))).value();
                         },
                         *shape};
}

}  // namespace starling::program
