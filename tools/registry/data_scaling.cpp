#include <algorithm>
#include <cmath>
#include <string>

#include "starling/base/text.hpp"
#include "starling/models/data/source/source.hpp"
#include "starling/tools/registry/data.hpp"

namespace starling::program {
namespace {

/// Returns the scale for numbers of which nothing is known: none if they have a common scale, all
/// between 0 and 1, like the pixels of an image, or if they stay in a mapped file.
models::Scale scale_of_numbers(const models::Table& table) {
  if (table.is_sparse()) return models::Scale::standard;
  if (table.is_mapped()) return models::Scale::none;
  const auto is_between_0_and_1 = [](float value) { return value >= 0 && value <= 1; };
  for (std::size_t row = 0; row < table.size(); ++row)
    if (!std::ranges::all_of(table.dense_row(row), is_between_0_and_1))
      return models::Scale::standard;
  return models::Scale::none;
}

/// Returns the error for a value that no float holds once it is scaled.
Error not_scalable(std::size_t row, const std::string& name, float value, float shift,
                   float divisor) {
  return Error{"record " + std::to_string(row + 1) + ": " + name + " is " + print_float(value) +
               ", and no float holds it once it is scaled, as (x - " + print_float(shift) + ") / " +
               print_float(divisor) + "; valid: smaller values"};
}

/// Scales a table. Refuses a value that no float holds once it is scaled.
Result<models::Table> scale_table(const models::Table& table, const models::Scaling& scaling,
                                  const models::Labelling& labelling) {
  models::Table scaled = models::scaled(table, scaling, labelling);
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (std::isinf(scaled.label(row)))
      return not_scalable(row, "the target", table.label(row), labelling.shift, labelling.divisor);
    const auto values = table.is_sparse() ? scaled.sparse_row(row).values : scaled.dense_row(row);
    const auto at = std::ranges::find_if(values, [](float value) { return std::isinf(value); });
    if (scaling.shift.empty() || at == values.end()) continue;
    const auto i = static_cast<std::size_t>(at - values.begin());
    const std::size_t feature = table.is_sparse() ? table.sparse_row(row).columns[i] : i;
    const float value =
        table.is_sparse() ? table.sparse_row(row).values[i] : table.dense_row(row)[i];
    return not_scalable(row, "feature " + std::to_string(feature + 1), value,
                        scaling.shift[feature], scaling.divisor[feature]);
  }
  return scaled;
}

}  // namespace

models::Scale scale_of(const Registry& registry, const DataRequest& request,
                       const models::Recipe& recipe, const AnyData& train) {
  if (request.scale) return *request.scale;
  if (!recipe.standardises || train.table() == nullptr) return models::Scale::none;
  const auto spec = Spec::parse(request.data);
  const auto entry = std::ranges::find(registry.data(), spec ? spec->name : "", &DataEntry::name);
  if (entry != registry.data().end())
    return entry->is_flow ? scale_of_numbers(*train.table()) : models::Scale::none;
  const auto source = models::Source::parse(request.data);
  if (!source) return models::Scale::none;
  if (std::holds_alternative<models::CsvSource>(source->kind) ||
      std::holds_alternative<models::LibsvmSource>(source->kind))
    return models::Scale::standard;
  if (std::holds_alternative<models::NpySource>(source->kind) ||
      std::holds_alternative<models::NpzSource>(source->kind))
    return scale_of_numbers(*train.table());
  return models::Scale::none;
}

Result<TrainAndTest> scale_data(models::Scale scale, TrainAndTest data) {
  if (scale == models::Scale::none) return data;
  const models::Table* train = data.train.table();
  if (train == nullptr || (data.test && data.test->table() == nullptr))
    return Error{"scale: " + print(scale) +
                 " needs tables, the data are of another type; valid: none"};
  if (train->is_mapped() || (data.test && data.test->table()->is_mapped()))
    return Error{"scale: " + print(scale) +
                 " would copy mapped data into memory; valid: none, or data without mapped=yes"};
  const models::Scaling scaling = models::fit(scale, *train);
  const models::Labelling labelling = models::fit_targets(scale, *train);
  for (AnyData* part : {&data.train, data.test ? &*data.test : nullptr}) {
    if (part == nullptr) continue;
    auto scaled = scale_table(*part->table(), scaling, labelling);
    if (!scaled)
      return Error{"scale: " + print(scale) + ": " + scaled.error().message + ", or another scale"};
    *part = AnyData::of(*std::move(scaled));
  }
  return data;
}

Result<AnyData> scale_like(const models::Table& shape, const AnyData& data) {
  const models::Labelling& labels = shape.labelling;
  const bool is_unscaled = shape.scaling.shift.empty() && labels.shift == 0 && labels.divisor == 1;
  const models::Table* table = data.table();
  if (table == nullptr || is_unscaled) return data;
  if (table->is_mapped())
    return Error{
        "is mapped, but the model was trained on scaled features; valid: without mapped=yes"};
  const std::size_t trained = shape.scaling.shift.size();
  const std::size_t features = table->features();
  // A sparse table may lack the last features, because its rows leave out zeros.
  if (trained > 0 && (table->is_sparse() ? features > trained : features != trained))
    return Error{"has " + print_count(features, "feature") + ", the model was trained on " +
                 std::to_string(trained)};
  auto scaled = scale_table(*table, shape.scaling, labels);
  if (!scaled) return std::move(scaled).error();
  return AnyData::of(*std::move(scaled));
}

}  // namespace starling::program
