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

/// A column of categories holds at most this number of different texts.
constexpr std::size_t categories_max = 1000;
/// If there are more categories than this, each must occur in two rows on average, unless the user
/// asks for categories by category=NAME.
constexpr std::size_t few_categories = 20;

/// Counts the numbers and the different texts of a column, over all rows.
class CsvColumn {
 public:
  /// Counts one cell. Returns by how many bytes the memory of the statistics grew.
  std::size_t add(const CsvSource& source, const CsvRows& rows, std::size_t column,
                  std::string_view cell) {
    float ignored = 0;
    if (is_missing(cell)) return 0;
    ++count_;
    const CellKind kind = read_number(source, cell, ignored);
    if (kind == CellKind::number) ++numbers_;
    if (kind == CellKind::text && is_number_with_comma(cell)) ++comma_numbers_;
    if (kind != CellKind::number && !first_text_error_)
      first_text_error_ =
          rows.error(rows.name_of(column) + ": " + in_quotes(cell) +
                     (kind == CellKind::text ? " is not a number"
                                             : " is not a finite number that a float holds"));
    constexpr std::size_t node_bytes = 48 + sizeof(std::string);
    const bool is_new = texts_.size() <= categories_max && texts_.emplace(cell).second;
    return is_new ? node_bytes + cell.size() : 0;
  }

  /// Returns an error if every cell is a number once its comma is read as a decimal point.
  [[nodiscard]] std::optional<Error> check_decimal_commas() const {
    if (comma_numbers_ == 0 || numbers_ + comma_numbers_ < count_) return std::nullopt;
    return Error{first_text_error_->message +
                 " unless commas stand before decimals; valid: decimal=comma"};
  }

  /// Returns the categories; empty if all cells are numbers. Unless `is_asked`, that is, the user
  /// gave category=NAME for the column, refuses numbers beside texts, and more categories than
  /// likely. Errors name the column `name`.
  [[nodiscard]] Result<std::vector<std::string>> categories(const std::string& name,
                                                            bool is_asked) const;
  /// Returns the names of classes, by the same rules.
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
  /// Returns the different texts, ascending. Errors name the column `name`.
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

  std::set<std::string, std::less<>> texts_;
  std::uint64_t count_ = 0;
  std::uint64_t numbers_ = 0;
  std::uint64_t comma_numbers_ = 0;
  std::optional<Error> first_text_error_;
};

Result<std::vector<std::string>> CsvColumn::categories(const std::string& name,
                                                       bool is_asked) const {
  if (is_asked && count_ == 0) return Error{name + ": holds no value; valid: ignore=NAME"};
  if (!is_asked && numbers_ == count_) return std::vector<std::string>{};
  if (const auto comma_error = check_decimal_commas(); comma_error && !is_asked)
    return *comma_error;
  if (!is_asked && numbers_ > 0)
    return Error{first_text_error_->message + ", but " + std::to_string(numbers_) +
                 " others of that column are; valid: numbers, category=NAME for a column of "
                 "categories, or ignore=NAME"};
  if (!is_asked && texts_.size() > few_categories && 2 * texts_.size() > count_)
    return Error{name + ": holds " + std::to_string(texts_.size()) + " different texts in " +
                 std::to_string(count_) +
                 " rows, too many for categories; valid: ignore=NAME, id=NAME if they name the "
                 "rows, or category=NAME"};
  return list_texts(name);
}

Result<std::vector<std::string>> CsvColumn::classes(const std::optional<LabelKind>& task,
                                                    const std::string& name) const {
  if (numbers_ == count_) return std::vector<std::string>{};
  if (const auto comma_error = check_decimal_commas(); comma_error && task != LabelKind::classes)
    return *comma_error;
  if (task == LabelKind::values) return *first_text_error_;
  if (numbers_ > 0 && !task)
    return Error{first_text_error_->message + ", but " + std::to_string(numbers_) +
                 " other labels are; valid: numbers, or task=class for classes of any text"};
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
  const Encoding* known =
      source.training_table == nullptr ? nullptr : source.training_table->encoding.get();
  if (known != nullptr) {
    *schema.encoding = *known;
  } else {
    for (const std::size_t column : columns.features)
      schema.encoding->columns.push_back(
          {.name = rows.header().empty() ? std::string{} : rows.header()[column]});
    if (!rows.header().empty() && columns.label < rows.columns())
      schema.encoding->label = rows.header()[columns.label];
  }
  schema.encoding->fills = missing_policy(source) == Missing::mean;
  if (source.training_table != nullptr) schema.classes = source.training_table->labelling.names;
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
  std::vector<CsvColumn> features(columns->features.size());
  CsvColumn labels;
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
    if (auto held = budget.check_growth(bytes); !held) return std::move(held).error();
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
