#include "starling/models/data/formats/csv_survey.hpp"

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

/// The most different texts of a column of categories.
constexpr std::size_t categories_max = 1000;
/// Above this number of categories, each must stand in two rows on average, unless category=NAME
/// asks for them.
constexpr std::size_t few_categories = 20;

/// Counts kinds of a column's cells, over all rows.
class ColumnSurvey {
 public:
  /// Returns by how many bytes the survey's memory grew.
  std::size_t add(const CsvSource& source, const CsvRows& rows, std::size_t column,
                  std::string_view cell) {
    float ignored = 0;
    if (is_missing(cell)) return 0;
    ++count_;
    const Cell kind = read_number(source, cell, ignored);
    if (kind == Cell::number) ++numbers_;
    if (kind == Cell::text && is_number_with_comma(cell)) ++comma_numbers_;
    if (kind != Cell::number && !first_text_)
      first_text_ = rows.error(
          rows.name_of(column) + ": " + in_quotes(cell) +
          (kind == Cell::text ? " is not a number" : " is not a finite number that a float holds"));
    constexpr std::size_t node_bytes = 48 + sizeof(std::string);
    const bool is_new = texts_.size() <= categories_max && texts_.emplace(cell).second;
    return is_new ? node_bytes + cell.size() : 0;
  }

  /// Returns an error where all cells would be numbers if commas stood for decimal points.
  [[nodiscard]] std::optional<Error> doubt_of_commas() const {
    if (comma_numbers_ == 0 || numbers_ + comma_numbers_ < count_) return std::nullopt;
    return Error{first_text_->message +
                 " unless commas stand before decimals; valid: decimal=comma"};
  }

  /// Returns the categories; empty where all cells are numbers. An Error where both occur and the
  /// user did not say which is meant, and where there are too many.
  [[nodiscard]] Result<std::vector<std::string>> categories(const std::string& name,
                                                            bool are_asked) const;
  /// Returns the names of classes, by the same rules.
  [[nodiscard]] Result<std::vector<std::string>> classes(const std::optional<LabelKind>& task,
                                                         const std::string& name) const;

 private:
  static bool is_number_with_comma(std::string_view cell) {
    if (cell.find(',') == std::string_view::npos) return false;
    std::string pointed{cell};
    std::ranges::replace(pointed, ',', '.');
    float ignored = 0;
    return read_cell(pointed, ignored) == Cell::number;
  }
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& what) const {
    if (texts_.size() > categories_max)
      return Error{what + ": has more than " + std::to_string(categories_max) + " different texts"};
    for (const std::string& text : texts_)
      if (printable(text) != text)
        return Error{
            what + ": " + shown(text) +
            " is no text in UTF-8; valid: the file as `iconv -f latin1 -t utf-8` writes it"};
    return std::vector<std::string>{texts_.begin(), texts_.end()};
  }

  std::set<std::string, std::less<>> texts_;
  std::uint64_t count_ = 0;
  std::uint64_t numbers_ = 0;
  std::uint64_t comma_numbers_ = 0;
  std::optional<Error> first_text_;
};

Result<std::vector<std::string>> ColumnSurvey::categories(const std::string& name,
                                                          bool are_asked) const {
  if (are_asked && count_ == 0) return Error{name + ": holds no value; valid: ignore=NAME"};
  if (!are_asked && numbers_ == count_) return std::vector<std::string>{};
  if (const auto doubt = doubt_of_commas(); doubt && !are_asked) return *doubt;
  if (!are_asked && numbers_ > 0)
    return Error{first_text_->message + ", but " + std::to_string(numbers_) +
                 " others of that column are; valid: numbers, category=NAME for a column of "
                 "categories, or ignore=NAME"};
  if (!are_asked && texts_.size() > few_categories && 2 * texts_.size() > count_)
    return Error{name + ": holds " + std::to_string(texts_.size()) + " different texts in " +
                 std::to_string(count_) +
                 " rows, too many for categories; valid: ignore=NAME, id=NAME where they name the "
                 "rows, or category=NAME"};
  return list(name);
}

Result<std::vector<std::string>> ColumnSurvey::classes(const std::optional<LabelKind>& task,
                                                       const std::string& name) const {
  if (numbers_ == count_) return std::vector<std::string>{};
  if (const auto doubt = doubt_of_commas(); doubt && task != LabelKind::classes) return *doubt;
  if (task == LabelKind::values) return *first_text_;
  if (numbers_ > 0 && !task)
    return Error{first_text_->message + ", but " + std::to_string(numbers_) +
                 " other labels are; valid: numbers, or task=class for classes of any text"};
  if (texts_.size() == 1)
    return Error{name + ": every label is " + in_quotes(*texts_.begin()) +
                 ", but a classification needs at least two classes"};
  return list(name);
}

}  // namespace

Missing policy_of(const CsvSource& source) {
  const bool fills = source.training_table != nullptr && source.training_table->encoding &&
                     source.training_table->encoding->fills;
  return source.missing.value_or(fills ? Missing::mean : Missing::refuse);
}

CsvPlan plan_of(const CsvSource& source, const CsvRows& rows, const CsvColumns& columns) {
  CsvPlan plan;
  const Encoding* known =
      source.training_table == nullptr ? nullptr : source.training_table->encoding.get();
  if (known != nullptr) {
    *plan.encoding = *known;
  } else {
    for (const std::size_t column : columns.features)
      plan.encoding->columns.push_back(
          {.name = rows.header().empty() ? std::string{} : rows.header()[column]});
    if (!rows.header().empty() && columns.label < rows.columns())
      plan.encoding->label = rows.header()[columns.label];
  }
  plan.encoding->fills = policy_of(source) == Missing::mean;
  if (source.training_table != nullptr) plan.classes = source.training_table->labelling.names;
  return plan;
}

Result<CsvPlan> survey(const CsvSource& source) {
  auto opened = CsvRows::open(source);
  if (!opened) return std::move(opened).error();
  CsvRows& rows = **opened;
  const auto columns = columns_of(rows, source);
  if (!columns) return columns.error();
  const RowFilter filter{source, *columns};
  ReadBudget budget{source.file};
  std::size_t bytes = 0;
  std::vector<ColumnSurvey> features(columns->features.size());
  ColumnSurvey labels;
  while (true) {
    const auto cells = rows.next();
    if (!cells) return cells.error();
    if (*cells == nullptr) break;
    if (filter.leaves_out(**cells)) continue;
    for (std::size_t i = 0; i < features.size(); ++i) {
      const std::size_t column = columns->features[i];
      bytes += features[i].add(source, rows, column, (**cells)[column]);
    }
    if (columns->label < rows.columns())
      bytes += labels.add(source, rows, columns->label, (**cells)[columns->label]);
    if (auto held = budget.hold(bytes); !held) return std::move(held).error();
  }
  CsvPlan plan = plan_of(source, rows, *columns);
  const auto place = [&](std::size_t column) { return rows.path() + ": " + rows.name_of(column); };
  for (std::size_t i = 0; i < features.size(); ++i) {
    auto found = features[i].categories(place(columns->features[i]), columns->is_category[i]);
    if (!found) return std::move(found).error();
    plan.encoding->columns[i].categories = *std::move(found);
  }
  if (columns->label == rows.columns()) return plan;
  auto classes = labels.classes(source.task, place(columns->label));
  if (!classes) return std::move(classes).error();
  plan.classes = *std::move(classes);
  return plan;
}

}  // namespace starling::models
