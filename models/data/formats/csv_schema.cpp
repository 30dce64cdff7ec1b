#include "starling/models/data/formats/csv_schema.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/cell.hpp"

namespace starling::models {
namespace {

/// A column of categories must not have more different texts than this.
constexpr std::size_t categories_max = 1000;
/// A column with more different texts than this is refused if fewer than two rows on average have
/// the same text, unless the user declares it by category=NAME.
constexpr std::size_t few_categories = 20;

/// Counts the numbers and the different texts in all rows of a column.
class CsvColumnStatistics {
 public:
  /// Counts one cell. Returns the number of bytes by which the memory of the statistics grew.
  std::size_t add(const CsvSource& source, const CsvRows& rows, std::size_t column,
                  std::string_view cell) {
    float ignored = 0;
    const bool is_first_row = ++rows_ == 1;
    if (is_missing(cell)) return 0;
    ++count_;
    const CellKind kind = read_number(source, cell, ignored);
    if (kind == CellKind::number) ++numbers_;
    if (kind == CellKind::text && is_number_with_comma(cell)) ++comma_numbers_;
    if (kind == CellKind::text && is_first_row && rows.header().empty())
      may_begin_with_name_ = true;
    if (kind != CellKind::number && !first_error_)
      first_error_ =
          rows.error(rows.name_of(column) + ": " + in_quotes(cell) +
                     (kind == CellKind::text ? " is not a number"
                                             : " is not a finite number that a float holds"));
    constexpr std::size_t node_bytes = 48 + sizeof(std::string);
    const bool is_new = texts_.size() <= categories_max && texts_.emplace(cell).second;
    return is_new ? node_bytes + cell.size() : 0;
  }

  /// Returns an error if every cell is a number, but some are numbers only if a comma counts as
  /// decimal point.
  [[nodiscard]] std::optional<Error> check_decimal_commas() const {
    if (comma_numbers_ == 0 || numbers_ + comma_numbers_ < count_) return std::nullopt;
    return Error{first_error_->message +
                 " unless commas stand before decimals; valid: decimal=comma"};
  }

  /// Returns the categories; empty if all cells are numbers. If the user declared the column by
  /// category=NAME (`is_declared`), numbers are categories too. If not, refuses a column that has
  /// both numbers and texts, and a column with too many different texts. Errors begin with `name`.
  [[nodiscard]] Result<std::vector<std::string>> categories(const std::string& name,
                                                            bool is_declared) const;
  /// Returns the names of the classes; empty if all labels are numbers. Refuses labels of which
  /// only some are numbers, unless `task` is classes. Errors begin with `name`.
  [[nodiscard]] Result<std::vector<std::string>> classes(const std::optional<LabelKind>& task,
                                                         const std::string& name) const;

 private:
  static bool is_number_with_comma(std::string_view cell) {
    if (cell.find(',') == std::string_view::npos) return false;
    std::string with_point{cell};
    std::ranges::replace(with_point, ',', '.');
    float ignored = 0;
    return read_cell(with_point, ignored) == CellKind::number;
  }
  /// Returns, for messages, the option that makes the first row a header; empty unless its cell is
  /// the only one that is not a number.
  [[nodiscard]] std::string header_option() const {
    return may_begin_with_name_ && numbers_ + 1 == count_
               ? "header=yes if the first row names the columns, "
               : "";
  }
  /// Returns the different texts, ascending. Errors begin with `name`.
  [[nodiscard]] Result<std::vector<std::string>> list_texts(const std::string& name) const {
    if (texts_.size() > categories_max)
      return Error{name + ": has more than " + std::to_string(categories_max) + " different texts"};
    for (const std::string& text : texts_)
      if (printable(text) != text)
        return Error{
            name + ": " + quote(text) +
            " is not text in UTF-8; valid: the file as `iconv -f latin1 -t utf-8` writes it"};
    return std::vector<std::string>{texts_.begin(), texts_.end()};
  }

  /// The different cells, also numbers; at most categories_max + 1.
  std::set<std::string, std::less<>> texts_;
  /// The number of cells.
  std::uint64_t rows_ = 0;
  /// The number of cells that are not missing.
  std::uint64_t count_ = 0;
  std::uint64_t numbers_ = 0;
  /// The number of cells that are numbers if a comma counts as decimal point, and texts if not.
  std::uint64_t comma_numbers_ = 0;
  /// True if the file has no header, and the cell in its first row is a text.
  bool may_begin_with_name_ = false;
  /// The error for the first cell that is not a finite number.
  std::optional<Error> first_error_;
};

Result<std::vector<std::string>> CsvColumnStatistics::categories(const std::string& name,
                                                                 bool is_declared) const {
  if (is_declared && count_ == 0) return Error{name + ": holds no value; valid: ignore=NAME"};
  if (!is_declared && numbers_ == count_) return std::vector<std::string>{};
  if (const auto comma_error = check_decimal_commas(); comma_error && !is_declared)
    return *comma_error;
  if (!is_declared && numbers_ > 0)
    return Error{first_error_->message + ", but " + std::to_string(numbers_) +
                 " others of that column are; valid: " + header_option() +
                 "numbers, category=NAME for a column of categories, or ignore=NAME"};
  if (!is_declared && texts_.size() > few_categories && 2 * texts_.size() > count_)
    return Error{name + ": holds " + std::to_string(texts_.size()) + " different texts in " +
                 std::to_string(count_) +
                 " rows, too many for categories; valid: ignore=NAME, id=NAME if they name the "
                 "rows, or category=NAME"};
  return list_texts(name);
}

Result<std::vector<std::string>> CsvColumnStatistics::classes(const std::optional<LabelKind>& task,
                                                              const std::string& name) const {
  if (numbers_ == count_) return std::vector<std::string>{};
  if (const auto comma_error = check_decimal_commas(); comma_error && task != LabelKind::classes)
    return *comma_error;
  if (task == LabelKind::values) return *first_error_;
  if (numbers_ > 0 && !task)
    return Error{first_error_->message + ", but " + std::to_string(numbers_) +
                 " other labels are; valid: " + header_option() +
                 "numbers, or task=class for classes of any text"};
  if (texts_.size() == 1)
    return Error{name + ": every label is " + in_quotes(*texts_.begin()) +
                 ", but a classification needs at least two classes"};
  return list_texts(name);
}

}  // namespace

Missing missing_policy(const CsvSource& source) {
  const bool fills = source.training_table != nullptr && source.training_table->encoding &&
                     source.training_table->encoding->fills;
  return source.missing.value_or(fills ? Missing::mean : Missing::refuse);
}

CsvSchema default_schema(const CsvSource& source, const CsvRows& rows, const CsvColumns& columns) {
  CsvSchema schema;
  const Encoding* training_encoding =
      source.training_table == nullptr ? nullptr : source.training_table->encoding.get();
  if (training_encoding != nullptr) {
    *schema.encoding = *training_encoding;
  } else {
    for (const std::size_t column : columns.features)
      schema.encoding->columns.push_back(
          {.name = rows.header().empty() ? std::string{} : rows.header()[column]});
    if (!rows.header().empty() && columns.label < rows.columns())
      schema.encoding->label = rows.header()[columns.label];
  }
  schema.encoding->fills = missing_policy(source) == Missing::mean;
  // Names that are all numbers are labels that were read as numbers. to_table() finds the class of
  // such a label by its value, so that 2 and 2.0 are the same class.
  const auto is_number = [](const std::string& name) { return bool{parse_number(name)}; };
  if (source.training_table != nullptr &&
      !std::ranges::all_of(source.training_table->labelling.names, is_number))
    schema.classes = source.training_table->labelling.names;
  return schema;
}

Result<CsvSchema> infer_schema(const CsvSource& source) {
  auto opened = CsvRows::open(source);
  if (!opened) return std::move(opened).error();
  CsvRows& rows = **opened;
  const auto columns = find_columns(rows, source);
  if (!columns) return columns.error();
  const RowFilter filter{source, *columns};
  ReadBudget budget{source.file};
  std::size_t bytes = 0;
  std::vector<CsvColumnStatistics> features(columns->features.size());
  CsvColumnStatistics labels;
  while (true) {
    const auto cells = rows.next();
    if (!cells) return cells.error();
    if (*cells == nullptr) break;
    if (filter.drops(**cells)) continue;
    for (std::size_t i = 0; i < features.size(); ++i) {
      const std::size_t column = columns->features[i];
      bytes += features[i].add(source, rows, column, (**cells)[column]);
    }
    if (columns->label < rows.columns())
      bytes += labels.add(source, rows, columns->label, (**cells)[columns->label]);
    if (auto fits = budget.check_growth(bytes); !fits) return std::move(fits).error();
  }
  CsvSchema schema = default_schema(source, rows, *columns);
  const auto name = [&](std::size_t column) { return rows.path() + ": " + rows.name_of(column); };
  for (std::size_t i = 0; i < features.size(); ++i) {
    auto found = features[i].categories(name(columns->features[i]), columns->is_category[i]);
    if (!found) return std::move(found).error();
    schema.encoding->columns[i].categories = *std::move(found);
  }
  if (columns->label == rows.columns()) return schema;
  auto classes = labels.classes(source.task, name(columns->label));
  if (!classes) return std::move(classes).error();
  schema.classes = *std::move(classes);
  return schema;
}

}  // namespace starling::models
