#include "starling/actor/flow/samples.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/engine/flow/values/hash.hpp"
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

/// Returns a hash of the features and labels of all rows.
std::uint64_t hash_of_rows(const models::Table& table) {
  std::uint64_t combined = 0;
  const auto add = [&combined](const auto& values) {
    const std::span bytes = std::as_bytes(std::span{values});
    combined =
        mix(combined ^ hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  };
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table.is_sparse()) {
      add(table.sparse_row(row).columns);
      add(table.sparse_row(row).values);
    } else {
      add(table.dense_row(row));
    }
    add(std::array{table.label(row)});
  }
  return combined;
}

/// Makes a set of what `sample_of(table, row)` returns for each row.
template <class F>
auto rows_of(const MapReduce& engine, models::Table table, const std::string& name, F sample_of) {
  const auto shared = std::make_shared<const models::Table>(std::move(table));
  return engine.generate(
      shared->size(), [shared, sample_of](std::uint64_t row) { return sample_of(*shared, row); },
      name, hash_of_rows(*shared));
}

float label_of(const models::Table& table, std::size_t row) {
  return table.has_labels ? table.labelling.original(table.label(row)) : 0;
}

}  // namespace

std::string print(const SparseSample& sample) {
  std::string line = print_float(sample.label);
  for (std::size_t i = 0; i < sample.columns.size(); ++i)
    line += ' ' + std::to_string(sample.columns[i] + std::uint64_t{1}) + ':' +
            print_float(sample.values[i]);
  return line;
}

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
