#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/cell.hpp"
#include "starling/models/data/formats/csv_rows.hpp"
#include "starling/models/data/formats/csv_schema.hpp"
#include "starling/models/data/formats/readers.hpp"

namespace starling::models {
namespace {

using Cells = CsvRows::Cells;

constexpr float missing_number = std::numeric_limits<float>::quiet_NaN();

/// Names the options that accept missing values, for messages.
std::string missing_value_options(const CsvSource& source) {
  return source.training_table == nullptr
             ? "; valid: missing=mean, which replaces a missing number by its column's mean and "
               "encodes a missing category as zeros, or missing=drop, which leaves out such rows"
             : "; valid: rows without missing values, or training data that were read with "
               "missing=mean";
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Error missing_cell(const CsvSource& source, const CsvRows& rows, std::size_t column,
                   std::string_view cell) {
  return rows.error(rows.name_of(column) + ": " + in_quotes(cell) + " is a missing value" +
                    missing_value_options(source));
}

Error missing_label(const CsvSource& source, const CsvRows& rows, std::size_t column,
                    std::string_view cell) {
  const std::string unlabelled =
      source.training_table == nullptr
          ? ""
          : ", or to predict such rows label=none,ignore=" +
                (rows.header().empty() ? std::to_string(column + 1) : rows.header()[column]);
  return rows.error(rows.name_of(column) + ": " + in_quotes(cell) +
                    " is a missing label; valid: missing=drop, which leaves out such rows" +
                    unlabelled);
}

/// Reads the rows of one file into a RawTable, by a schema.
class CsvReader {
 public:
  /// `source` and `rows` must outlive the reader.
  CsvReader(const CsvSource& source, CsvRows& rows, CsvColumns columns, CsvSchema schema)
      : source_(source),
        rows_(rows),
        columns_(std::move(columns)),
        schema_(std::move(schema)),
        filter_(source_, columns_),
        budget_(source.file) {
    for (const std::string& name : schema_.classes) classes_.emplace(name, classes_.size());
  }

  /// Returns nullopt if the schema does not fit: it treats as numbers a column that holds text or
  /// that the user declared by category=NAME. The caller then infers a schema from all rows and
  /// reads the file again.
  Result<std::optional<RawTable>> read();

 private:
  /// needs_schema: the schema does not fit; see read().
  enum class AddResult { added, needs_schema };

  Result<AddResult> add_row(const Cells& cells);
  Result<AddResult> add_feature(std::size_t feature, std::string_view cell);
  Result<AddResult> add_label(std::string_view cell);
  /// Appends the one-hot features for `cell`, which is in the file's column `file_column`.
  Result<void> add_category(const Column& column, std::size_t file_column, std::string_view cell);
  [[nodiscard]] Error not_a_number(CellKind kind, std::string_view cell, std::size_t column) const;
  [[nodiscard]] bool has_labels() const { return columns_.label < rows_.columns(); }
  Result<RawTable> finish();

  const CsvSource& source_;
  CsvRows& rows_;
  const CsvColumns columns_;
  const CsvSchema schema_;
  const RowFilter filter_;
  /// The class index of each class name.
  std::map<std::string, std::size_t, std::less<>> classes_;
  ReadBudget budget_;
  /// The number of rows read so far, including the rows that are left out.
  std::size_t rows_read_ = 0;
  std::vector<float> values_;
  std::vector<float> labels_;
  std::vector<std::string> ids_;
  std::uint64_t id_bytes_ = 0;
};

Result<std::optional<RawTable>> CsvReader::read() {
  while (true) {
    const auto cells = rows_.next();
    if (!cells) return cells.error();
    if (*cells == nullptr) break;
    ++rows_read_;
    if (filter_.drops(**cells)) {
      if (source_.training_table != nullptr && !has_labels())
        return rows_.error(
            "lacks a value, and missing=drop would leave the row without a prediction; valid: rows "
            "without missing values, or training data that were read with missing=mean");
      continue;
    }
    const auto added = add_row(**cells);
    if (!added) return added.error();
    if (*added == AddResult::needs_schema) return std::optional<RawTable>{};
  }
  auto raw = finish();
  if (!raw) return std::move(raw).error();
  return std::optional{*std::move(raw)};
}

Result<RawTable> CsvReader::finish() {
  if (rows_read_ == 0)
    return Error{rows_.path() + ": holds a header, but no rows; valid: at least one row"};
  if (labels_.empty())
    return Error{rows_.path() +
                 ": lacks a value in every row, so missing=drop leaves none; valid: "
                 "missing=mean, or ignore=NAME"};
  values_.shrink_to_fit();
  labels_.shrink_to_fit();
  RawTable raw{.source = rows_.path(), .features = schema_.encoding->features()};
  raw.has_labels = has_labels();
  raw.ids = std::move(ids_);
  raw.task = source_.task;
  raw.x = Table::Dense{std::move(values_)};
  raw.labels = std::move(labels_);
  if (has_labels() && !schema_.classes.empty()) {
    raw.task = LabelKind::classes;
    raw.labelling = Labelling{.classes = schema_.classes.size(), .names = schema_.classes};
  }
  const bool needs_encoding = !rows_.header().empty() || schema_.encoding->fills ||
                              std::ranges::any_of(schema_.encoding->columns, &Column::is_category);
  if (needs_encoding) raw.encoding = schema_.encoding;
  return raw;
}

Result<CsvReader::AddResult> CsvReader::add_row(const Cells& cells) {
  for (std::size_t i = 0; i < columns_.features.size(); ++i) {
    const auto added = add_feature(i, cells[columns_.features[i]]);
    if (!added || *added == AddResult::needs_schema) return added;
  }
  if (has_labels()) {
    const auto added = add_label(cells[columns_.label]);
    if (!added || *added == AddResult::needs_schema) return added;
  } else {
    labels_.push_back(0);
  }
  // If missing=drop may leave out rows, rows without names are named by their numbers in the file,
  // from 0.
  const bool is_numbered =
      columns_.id == rows_.columns() && missing_policy(source_) == Missing::drop;
  if (columns_.id < rows_.columns() || is_numbered) {
    const std::string id =
        is_numbered ? std::to_string(rows_read_ - 1) : std::string{cells[columns_.id]};
    ids_.push_back(id);
    id_bytes_ += sizeof(std::string) + (id.size() > 15 ? id.size() + 1 : 0);
  }
  const auto fits =
      budget_.check_growth((values_.size() + labels_.size()) * sizeof(float) + id_bytes_);
  if (!fits) return fits.error();
  return AddResult::added;
}

Result<CsvReader::AddResult> CsvReader::add_feature(std::size_t feature, std::string_view cell) {
  const Column& column = schema_.encoding->columns[feature];
  const std::size_t file_column = columns_.features[feature];
  if (column.is_category()) {
    if (auto added = add_category(column, file_column, cell); !added)
      return std::move(added).error();
    return AddResult::added;
  }
  if (columns_.is_category[feature] && source_.training_table == nullptr)
    return AddResult::needs_schema;
  float value = missing_number;
  if (is_missing(cell)) {
    if (!schema_.encoding->fills) return missing_cell(source_, rows_, file_column, cell);
  } else if (const CellKind kind = read_number(source_, cell, value); kind != CellKind::number) {
    // `Inf` and `Nan` are words: in a column of texts they are categories.
    const bool may_be_text = kind == CellKind::text || is_letter(cell[0]);
    if (may_be_text && source_.training_table == nullptr) return AddResult::needs_schema;
    return not_a_number(kind, cell, file_column);
  }
  values_.push_back(value);
  return AddResult::added;
}

Result<void> CsvReader::add_category(const Column& column, std::size_t file_column,
                                     std::string_view cell) {
  const auto found = std::ranges::lower_bound(column.categories, cell);
  const bool is_known = found != column.categories.end() && *found == cell;
  if (!is_known && is_missing(cell) && !schema_.encoding->fills)
    return missing_cell(source_, rows_, file_column, cell);
  if (!is_known && !schema_.encoding->fills)
    return rows_.error(rows_.name_of(file_column) + ": " + in_quotes(cell) +
                       " is not a category of the training data; " +
                       suggest(std::string{cell}, column.categories) +
                       "; or training data that were read with missing=mean, which treats it as "
                       "missing");
  values_.resize(values_.size() + column.categories.size());
  if (is_known) *(values_.end() - (column.categories.end() - found)) = 1;
  return {};
}

Result<CsvReader::AddResult> CsvReader::add_label(std::string_view cell) {
  if (is_missing(cell)) return missing_label(source_, rows_, columns_.label, cell);
  if (!schema_.classes.empty()) {
    const auto found = classes_.find(cell);
    if (found == classes_.end())
      return rows_.error(rows_.name_of(columns_.label) + ": " + in_quotes(cell) +
                         " is not a class of the training data; " +
                         suggest(std::string{cell}, schema_.classes));
    labels_.push_back(static_cast<float>(found->second));
    return AddResult::added;
  }
  float value = 0;
  const CellKind kind = read_number(source_, cell, value);
  if (kind == CellKind::text && source_.training_table == nullptr &&
      source_.task != LabelKind::values)
    return AddResult::needs_schema;
  if (kind != CellKind::number) return not_a_number(kind, cell, columns_.label);
  labels_.push_back(value);
  return AddResult::added;
}

Error CsvReader::not_a_number(CellKind kind, std::string_view cell, std::size_t column) const {
  return rows_.error(rows_.name_of(column) + ": " + in_quotes(cell) +
                     (kind == CellKind::not_finite ? " is not a finite number that a float holds"
                                                   : " is not a number"));
}

/// Reads the file once, by `schema` if given, else by the default schema. Returns nullopt if the
/// schema does not fit; see CsvReader::read(). If `is_pipe` is not null, sets `*is_pipe` to whether
/// the file is a pipe.
Result<std::optional<RawTable>> read_once(const CsvSource& source, std::optional<CsvSchema> schema,
                                          bool* is_pipe = nullptr) {
  auto rows = CsvRows::open(source);
  if (!rows) return std::move(rows).error();
  if (is_pipe != nullptr) *is_pipe = (*rows)->is_pipe();
  auto columns = find_columns(**rows, source);
  if (!columns) return std::move(columns).error();
  if (!schema) schema = default_schema(source, **rows, *columns);
  return CsvReader{source, **rows, *std::move(columns), *std::move(schema)}.read();
}

}  // namespace

/// Reads a file of numbers once, and also test data, because the training data give their schema.
/// If training data contain text, or the user declares a column by category=NAME, reads the file
/// two more times: to infer the schema from all rows, and to fill the table.
Result<RawTable> read_csv(const CsvSource& source) {
  const Table* training_table = source.training_table.get();
  if (training_table != nullptr && source.missing == Missing::mean &&
      !(training_table->encoding && training_table->encoding->fills))
    return Error{source.file +
                 ": missing=mean needs the means of the training data, which were read without it; "
                 "valid: missing=mean for the training data too, or missing=drop if there are "
                 "labels"};
  bool is_pipe = false;
  auto raw = read_once(source, std::nullopt, &is_pipe);
  if (!raw) return std::move(raw).error();
  if (*raw) return **std::move(raw);
  if (is_pipe)
    return Error{source.file +
                 ": holds text, so that it must be read more than once, but is a pipe; valid: a "
                 "file"};
  auto schema = infer_schema(source);
  if (!schema) return std::move(schema).error();
  auto reread = read_once(source, *std::move(schema));
  if (!reread) return std::move(reread).error();
  if (!*reread) return Error{source.file + ": has changed while it was read"};
  return **std::move(reread);
}

}  // namespace starling::models
