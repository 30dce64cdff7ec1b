#include "starling/actor/flow/samples.hpp"

#include <memory>
#include <utility>

#include "starling/models/data/load.hpp"
#include "starling/models/data/missing.hpp"

namespace starling::flow {
namespace {

/// Returns the table with the mean of the column for each missing number, if it was read with
/// missing=mean.
Result<models::Table> fill(models::Table table, const std::string& name) {
  auto encoding = models::fit_fill_values(table);
  if (!encoding) return std::move(encoding).error().within(name);
  return models::filled(std::move(table), *std::move(encoding));
}

Result<models::Table> load_table(const std::string& text, std::uint64_t seed) {
  const auto source = models::Source::parse(text);
  if (!source) return source.error();
  return models::load(*source, seed);
}

/// Makes a set of what `sample_of(table, row)` returns for each row.
template <class F>
auto rows_of(const MapReduce& engine, models::Table table, const std::string& name, F sample_of) {
  const auto shared = std::make_shared<const models::Table>(std::move(table));
  return engine.generate(
      shared->size(), [shared, sample_of](std::uint64_t row) { return sample_of(*shared, row); },
      name);
}

float label_of(const models::Table& table, std::size_t row) {
  return table.has_labels ? table.labelling.original(table.label(row)) : 0;
}

}  // namespace

Result<Set<Sample>> samples(const MapReduce& engine, models::Table table, const std::string& name) {
  if (table.is_sparse()) return Error{name + ": is sparse; valid: sparse_samples()"};
  auto complete = fill(std::move(table), name);
  if (!complete) return std::move(complete).error();
  const auto sample_of = [](const models::Table& t, std::size_t row) {
    const auto features = t.dense_row(row);
    return Sample{{features.begin(), features.end()}, label_of(t, row)};
  };
  return Set<Sample>{rows_of(engine, *std::move(complete), name, sample_of)};
}

Result<Set<SparseSample>> sparse_samples(const MapReduce& engine, models::Table table,
                                         const std::string& name) {
  if (!table.is_sparse()) return Error{name + ": is dense; valid: samples()"};
  const auto sample_of = [](const models::Table& t, std::size_t row) {
    const auto [columns, values] = t.sparse_row(row);
    return SparseSample{
        {columns.begin(), columns.end()}, {values.begin(), values.end()}, label_of(t, row)};
  };
  return Set<SparseSample>{rows_of(engine, std::move(table), name, sample_of)};
}

Result<Set<Sample>> samples(const MapReduce& engine, const std::string& source,
                            std::uint64_t seed) {
  auto table = load_table(source, seed);
  if (!table) return std::move(table).error();
  return samples(engine, *std::move(table), source);
}

Result<Set<SparseSample>> sparse_samples(const MapReduce& engine, const std::string& source,
                                         std::uint64_t seed) {
  auto table = load_table(source, seed);
  if (!table) return std::move(table).error();
  return sparse_samples(engine, *std::move(table), source);
}

}  // namespace starling::flow
