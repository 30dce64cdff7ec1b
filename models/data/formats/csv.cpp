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
#include "starling/models/data/formats/csv_survey.hpp"
#include "starling/models/data/formats/readers.hpp"

namespace starling::models {
namespace {

using Cells = CsvRows::Cells;

constexpr float missing_number = std::numeric_limits<float>::quiet_NaN();

/// Says how to go on where a value is missing.
std::string remedies(const CsvSource& source) {
  return source.training_table == nullptr
             ? "; valid: missing=mean takes a number for its column's mean and a category for "
               "none, "
               "missing=drop leaves out such rows"
             : "; valid: rows that are whole, or training data that were read with missing=mean";
}

Error missing_cell(const CsvSource& source, const CsvRows& rows, std::size_t column,
                   std::string_view cell) {
  return rows.error(rows.name_of(column) + ": " + in_quotes(cell) + " is a missing value" +
                    remedies(source));
}

Error missing_label(const CsvRows& rows, std::size_t column, std::string_view cell) {
  return rows.error(rows.name_of(column) + ": " + in_quotes(cell) +
                    " is a missing label; valid: missing=drop leaves out such rows");
}

class CsvReader {
 public:
  /// `source` and `rows` must outlive the reader.
  CsvReader(const CsvSource& source, CsvRows& rows, CsvColumns columns, CsvPlan plan)
      : source_(source),
        rows_(rows),
        columns_(std::move(columns)),
        plan_(std::move(plan)),
        filter_(source_, columns_),
        budget_(source.file) {
    for (const std::string& name : plan_.classes) classes_.emplace(name, classes_.size());
  }

  /// Returns nullopt where a cell is a text that the plan does not know, but might know after a
  /// survey of all rows.
  Result<std::optional<RawTable>> read();

 private:
  enum class Taken { yes, unplanned };

  Result<Taken> take(const Cells& cells);
  Result<Taken> take_feature(std::size_t feature, std::string_view cell);
  Result<Taken> take_label(std::string_view cell);
  Result<void> take_category(const Column& column, std::size_t at, std::string_view cell);
  [[nodiscard]] Error not_a_number(Cell kind, std::string_view cell, std::size_t column) const;
  [[nodiscard]] bool has_labels() const { return columns_.label < rows_.columns(); }
  Result<RawTable> finish();

  const CsvSource& source_;
  CsvRows& rows_;
  const CsvColumns columns_;
  const CsvPlan plan_;
  const RowFilter filter_;
  /// The index of each class name.
  std::map<std::string, std::size_t, std::less<>> classes_;
  ReadBudget budget_;
  std::size_t read_rows_ = 0;
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
    ++read_rows_;
    if (filter_.leaves_out(**cells)) {
      if (source_.training_table != nullptr && !has_labels())
        return rows_.error(
            "lacks a value, and missing=drop would leave the row without a prediction; valid: rows "
            "that are whole, or training data that were read with missing=mean");
      continue;
    }
    const auto taken = take(**cells);
    if (!taken) return taken.error();
    if (*taken == Taken::unplanned) return std::optional<RawTable>{};
  }
  auto raw = finish();
  if (!raw) return std::move(raw).error();
  return std::optional{*std::move(raw)};
}

Result<RawTable> CsvReader::finish() {
  if (read_rows_ == 0) return Error{rows_.path() + ": holds a header, but no rows"};
  if (labels_.empty())
    return Error{rows_.path() +
                 ": lacks a value in every row, so missing=drop leaves none; valid: "
                 "missing=mean, or ignore=NAME"};
  values_.shrink_to_fit();
  labels_.shrink_to_fit();
  RawTable raw{.place = rows_.path(), .features = plan_.encoding->features()};
  raw.has_labels = has_labels();
  raw.ids = std::move(ids_);
  raw.task = source_.task;
  raw.x = Table::Dense{std::move(values_)};
  raw.labels = std::move(labels_);
  if (has_labels() && !plan_.classes.empty()) {
    raw.task = LabelKind::classes;
    raw.labelling = Labelling{.classes = plan_.classes.size(), .names = plan_.classes};
  }
  const bool says_something = !rows_.header().empty() || plan_.encoding->fills ||
                              std::ranges::any_of(plan_.encoding->columns, &Column::is_category);
  if (says_something) raw.encoding = plan_.encoding;
  return raw;
}

Result<CsvReader::Taken> CsvReader::take(const Cells& cells) {
  for (std::size_t i = 0; i < columns_.features.size(); ++i) {
    const auto taken = take_feature(i, cells[columns_.features[i]]);
    if (!taken || *taken == Taken::unplanned) return taken;
  }
  if (has_labels()) {
    const auto taken = take_label(cells[columns_.label]);
    if (!taken || *taken == Taken::unplanned) return taken;
  } else {
    labels_.push_back(0);
  }
  // The remaining rows keep their numbers where others are left out.
  const bool is_numbered = columns_.id == rows_.columns() && policy_of(source_) == Missing::drop;
  if (columns_.id < rows_.columns() || is_numbered) {
    const std::string id =
        is_numbered ? std::to_string(read_rows_ - 1) : std::string{cells[columns_.id]};
    ids_.push_back(id);
    id_bytes_ += sizeof(std::string) + (id.size() > 15 ? id.size() + 1 : 0);
  }
  const auto held = budget_.hold((values_.size() + labels_.size()) * sizeof(float) + id_bytes_);
  if (!held) return held.error();
  return Taken::yes;
}

Result<CsvReader::Taken> CsvReader::take_feature(std::size_t feature, std::string_view cell) {
  const Column& column = plan_.encoding->columns[feature];
  const std::size_t at = columns_.features[feature];
  if (column.is_category()) {
    if (auto taken = take_category(column, at, cell); !taken) return std::move(taken).error();
    return Taken::yes;
  }
  if (columns_.is_category[feature] && source_.training_table == nullptr) return Taken::unplanned;
  float value = missing_number;
  if (is_missing(cell)) {
    if (!plan_.encoding->fills) return missing_cell(source_, rows_, at, cell);
  } else if (const Cell kind = read_number(source_, cell, value); kind != Cell::number) {
    if (kind == Cell::text && source_.training_table == nullptr) return Taken::unplanned;
    return not_a_number(kind, cell, at);
  }
  values_.push_back(value);
  return Taken::yes;
}

Result<void> CsvReader::take_category(const Column& column, std::size_t at, std::string_view cell) {
  const auto found = std::ranges::lower_bound(column.categories, cell);
  const bool is_known = found != column.categories.end() && *found == cell;
  if (!is_known && is_missing(cell) && !plan_.encoding->fills)
    return missing_cell(source_, rows_, at, cell);
  if (!is_known && !plan_.encoding->fills)
    return rows_.error(rows_.name_of(at) + ": " + in_quotes(cell) +
                       " is no category of the training data; " +
                       suggest(std::string{cell}, column.categories) +
                       "; or training data that were read with missing=mean, which takes it for "
                       "missing");
  values_.resize(values_.size() + column.categories.size());
  if (is_known) *(values_.end() - (column.categories.end() - found)) = 1;
  return {};
}

Result<CsvReader::Taken> CsvReader::take_label(std::string_view cell) {
  if (is_missing(cell)) return missing_label(rows_, columns_.label, cell);
  if (!plan_.classes.empty()) {
    const auto found = classes_.find(cell);
    if (found == classes_.end())
      return rows_.error(rows_.name_of(columns_.label) + ": " + in_quotes(cell) +
                         " is no class of the training data; " +
                         suggest(std::string{cell}, plan_.classes));
    labels_.push_back(static_cast<float>(found->second));
    return Taken::yes;
  }
  float value = 0;
  const Cell kind = read_number(source_, cell, value);
  if (kind == Cell::text && source_.training_table == nullptr && source_.task != LabelKind::values)
    return Taken::unplanned;
  if (kind != Cell::number) return not_a_number(kind, cell, columns_.label);
  labels_.push_back(value);
  return Taken::yes;
}

Error CsvReader::not_a_number(Cell kind, std::string_view cell, std::size_t column) const {
  return rows_.error(rows_.name_of(column) + ": " + in_quotes(cell) +
                     (kind == Cell::not_finite ? " is not a finite number that a float holds"
                                               : " is not a number"));
}

/// Reads the file once, by `plan` where it is given.
Result<std::optional<RawTable>> read_once(const CsvSource& source, std::optional<CsvPlan> plan,
                                          bool* is_pipe = nullptr) {
  auto rows = CsvRows::open(source);
  if (!rows) return std::move(rows).error();
  if (is_pipe != nullptr) *is_pipe = (*rows)->is_pipe();
  auto columns = columns_of(**rows, source);
  if (!columns) return std::move(columns).error();
  if (!plan) plan = plan_of(source, **rows, *columns);
  return CsvReader{source, **rows, *std::move(columns), *std::move(plan)}.read();
}

}  // namespace

/// Most files hold only numbers and are read once; at the first text, all rows are surveyed for
/// their categories, and read again.
Result<RawTable> read_csv(const CsvSource& source) {
  const Table* training_table = source.training_table.get();
  if (training_table != nullptr && source.missing == Missing::mean &&
      !(training_table->encoding && training_table->encoding->fills))
    return Error{source.file +
                 ": missing=mean needs the means of the training data, which were read without it; "
                 "valid: missing=mean for the training data too, or missing=drop where there are "
                 "labels"};
  bool is_pipe = false;
  auto raw = read_once(source, std::nullopt, &is_pipe);
  if (!raw) return std::move(raw).error();
  if (*raw) return **std::move(raw);
  if (is_pipe)
    return Error{source.file +
                 ": holds text, for which it is read twice, and is a pipe; valid: a file"};
  auto plan = survey(source);
  if (!plan) return std::move(plan).error();
  auto planned = read_once(source, *std::move(plan));
  if (!planned) return std::move(planned).error();
  if (!*planned) return Error{source.file + ": has changed while it was read"};
  return **std::move(planned);
}

}  // namespace starling::models
