#include "starling/models/table.hpp"

#include <cmath>
#include <stdexcept>

#include "starling/base/text.hpp"

namespace starling::models {
namespace {

/// prefetch() stops after this number of bytes. More would evict from the cache what prefetch() has
/// loaded before, and the data of the running computation.
constexpr std::size_t prefetched_bytes_max = std::size_t{512} << 10U;

/// Begins to load `values` into the second-level cache, in lines of 64 bytes. Leaves out the
/// first-level cache, because it is small and the running computation needs it. Returns the number
/// of bytes of `values`.
template <class V>
std::size_t prefetch_all(std::span<const V> values) noexcept {
  constexpr std::size_t values_per_line = 64 / sizeof(V);
  for (std::size_t i = 0; i < values.size(); i += values_per_line)
    __builtin_prefetch(values.data() + i, 0, 2);
  return values.size_bytes();
}

}  // namespace

std::string Labelling::text(float label) const {
  const bool is_named = label >= 0 && label < static_cast<float>(names.size());
  if (is_named) return names[static_cast<std::size_t>(label)];
  return print_float(original(label));
}

void Table::prefetch(std::span<const std::uint32_t> rows) const noexcept {
  if (is_mapped()) return read_ahead(rows);
  std::size_t bytes = 0;
  for (const std::uint32_t row : rows) {
    if (bytes >= prefetched_bytes_max) return;
    if (!is_sparse_) {
      bytes += prefetch_all(dense_row(row));
      continue;
    }
    const auto [columns, values] = sparse_row(row);
    bytes += prefetch_all(columns) + prefetch_all(values);
  }
}

void Table::throw_other_form() const {
  throw std::logic_error{is_sparse_
                             ? "dense_row() of a table whose rows are sparse; valid: sparse_row(), "
                               "or a model that refuses such data by accepts()"
                             : "sparse_row() of a table whose rows are dense; valid: dense_row(), "
                               "or a model that refuses such data by accepts()"};
}

/// Asks for rows that lie one behind the other together.
void Table::read_ahead(std::span<const std::uint32_t> rows) const noexcept {
  for (std::size_t from = 0, to = 0; from < rows.size(); from = to) {
    const std::size_t first = row_in_file(rows[from]);
    for (to = from + 1; to < rows.size() && row_in_file(rows[to]) == first + to - from;) ++to;
    mapped_.file->will_need(
        std::as_bytes(mapped_.values.subspan(first * features_, (to - from) * features_)));
  }
}

Table Table::select(std::span<const std::uint32_t> rows) const {
  std::vector<float> labels;
  labels.reserve(rows.size());
  for (const std::uint32_t row : rows) labels.push_back(labels_[row]);
  Table chosen;
  if (is_sparse_) {
    Sparse x;
    for (const std::uint32_t row : rows) {
      const auto [columns, values] = sparse_row(row);
      x.columns.insert(x.columns.end(), columns.begin(), columns.end());
      x.values.insert(x.values.end(), values.begin(), values.end());
      x.starts.push_back(x.columns.size());
    }
    x.columns.shrink_to_fit();
    x.values.shrink_to_fit();
    chosen = with_metadata_of_this({features_, classes_, std::move(x), std::move(labels)});
  } else if (is_mapped() && !rows.empty()) {
    Mapped x{mapped_.file, mapped_.values, {}};
    x.rows.reserve(rows.size());
    for (const std::uint32_t row : rows)
      x.rows.push_back(static_cast<std::uint32_t>(row_in_file(row)));
    chosen = with_metadata_of_this({features_, classes_, std::move(x), std::move(labels)});
  } else {
    Dense x;
    x.values.reserve(rows.size() * features_);
    for (const std::uint32_t row : rows) {
      const auto values = dense_row(row);
      x.values.insert(x.values.end(), values.begin(), values.end());
    }
    chosen = with_metadata_of_this({features_, classes_, std::move(x), std::move(labels)});
  }
  if (!ids.empty())
    for (const std::uint32_t row : rows) chosen.ids.push_back(ids[row]);
  return chosen;
}

Table Table::with(Dense x, std::vector<float> labels) const {
  Table table = with_metadata_of_this({features_, classes_, std::move(x), std::move(labels)});
  table.ids = ids;
  return table;
}

Table Table::with(Sparse x, std::vector<float> labels) const {
  Table table = with_metadata_of_this({features_, classes_, std::move(x), std::move(labels)});
  table.ids = ids;
  return table;
}

Table Table::with_metadata_of_this(Table table) const {
  table.true_weights = true_weights;
  table.labelling = labelling;
  table.has_labels = has_labels;
  table.encoding = encoding;
  table.scaling = scaling;
  table.first_index = first_index;
  table.image = image;
  return table;
}

Result<void> check_classes(const Table& table) {
  if (table.classes() == 0) return {};
  const auto classes = static_cast<float>(table.classes());
  for (std::size_t row = 0; row < table.size(); ++row) {
    const float label = table.label(row);
    if (!(label >= 0 && label < classes) || label != std::floor(label))
      return Error{"the label in row " + std::to_string(row + 1) + " is " + print_float(label) +
                   "; valid: a class from 0 to " + std::to_string(table.classes() - 1)};
  }
  return {};
}

}  // namespace starling::models
