#include "starling/models/data/missing.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"

namespace starling::models {

Result<std::shared_ptr<const Encoding>> fit_fill_values(const Table& train) {
  if (!train.encoding || !train.encoding->fills || train.is_sparse()) return train.encoding;
  std::vector<double> sums(train.features());
  std::vector<std::uint64_t> counts(train.features());
  for (std::size_t row = 0; row < train.size(); ++row) {
    const auto values = train.dense_row(row);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) continue;
      sums[i] += static_cast<double>(values[i]);
      ++counts[i];
    }
  }
  auto fitted = std::make_shared<Encoding>(*train.encoding);
  std::size_t feature = 0;
  for (std::size_t c = 0; c < fitted->columns.size(); ++c) {
    Column& column = fitted->columns[c];
    if (!column.is_category() && counts[feature] == 0) {
      const std::string name =
          column.name.empty() ? std::to_string(c + 1) : "'" + column.name + "'";
      return Error{
          "column " + name +
          " holds no value in the training data; valid: ignore=NAME, or data with a value in it"};
    }
    if (!column.is_category())
      column.fill = static_cast<float>(sums[feature] / static_cast<double>(counts[feature]));
    feature += column.features();
  }
  return std::shared_ptr<const Encoding>{std::move(fitted)};
}

Table filled(Table table, std::shared_ptr<const Encoding> encoding) {
  table.encoding = std::move(encoding);
  if (!table.encoding || !table.encoding->fills || table.is_sparse()) return table;
  STARLING_CHECK(table.encoding->features() == table.features());
  std::vector<float> fills;
  for (const Column& column : table.encoding->columns)
    fills.insert(fills.end(), column.features(), column.fill);
  Table::Dense x;
  x.values.reserve(table.entries());
  std::vector<float> labels;
  labels.reserve(table.size());
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto values = table.dense_row(row);
    for (std::size_t i = 0; i < values.size(); ++i)
      x.values.push_back(std::isnan(values[i]) ? fills[i] : values[i]);
    labels.push_back(table.label(row));
  }
  return table.with(std::move(x), std::move(labels));
}

}  // namespace starling::models
