#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/models/data/formats/cell.hpp"
#include "starling/models/data/formats/csv_rows.hpp"

namespace starling::models {
namespace {

/// Assigns each column of a file its use: row names, labels, ignored, or a feature.
class ColumnFinder {
 public:
  ColumnFinder(const CsvRows& rows, const CsvSource& source)
      : rows_(rows), source_(source), count_(rows.columns()), uses_(count_) {
    inherit_unused();
  }

  Result<CsvColumns> find();

 private:
  /// Without a header, takes id=N and ignore=N from the training data's source, unless this source
  /// names such columns, or the file has too few columns to have them.
  void inherit_unused();
  Result<void> find_id();
  Result<void> find_label();
  /// Returns the option `label`, or else that of the training data's source.
  [[nodiscard]] std::optional<std::string> label_option() const;
  Result<void> find_ignored();
  Result<void> find_categories();
  Result<void> order_by_name(const Encoding& training);

  /// Returns the index of the only column with this name or, without a header, with this number.
  /// Errors say that the user gave the name by `option`.
  [[nodiscard]] Result<std::size_t> find_column(const std::string& option,
                                                const std::string& name) const;
  /// Records that `option`=`name` uses the column. Refuses a column that has a use already.
  Result<void> set_use(std::size_t column, const std::string& option, const std::string& name);
  /// Returns the index of the last column without a use, or `count_` if all have one.
  [[nodiscard]] std::size_t last_unused() const;
  /// Returns the number of columns without a use.
  [[nodiscard]] std::size_t unused_count() const;
  /// Returns the training data's encoding; null if this file is the training data, or if the
  /// training data have no encoding.
  [[nodiscard]] const Encoding* training_encoding() const {
    return source_.training_table == nullptr ? nullptr : source_.training_table->encoding.get();
  }
  /// Returns true if the header names any of the training data's feature columns.
  [[nodiscard]] bool has_feature_name(const Encoding& training) const;
  /// Returns the number of feature columns of the training data; 0 if this file is the training
  /// data.
  [[nodiscard]] std::size_t count_training_columns() const;

  const CsvRows& rows_;
  CsvSource source_;
  /// The number of columns.
  const std::size_t count_;
  /// For each column the option that uses it, such as "label=age"; empty for a column of features.
  std::vector<std::string> uses_;
  CsvColumns found_;
};

Result<CsvColumns> ColumnFinder::find() {
  found_.label = found_.id = count_;
  for (const auto step :
       {&ColumnFinder::find_id, &ColumnFinder::find_ignored, &ColumnFinder::find_label})
    if (auto done = (this->*step)(); !done) return std::move(done).error();
  for (std::size_t column = 0; column < count_; ++column)
    if (uses_[column].empty()) found_.features.push_back(column);
  const Encoding* training = training_encoding();
  if (training != nullptr)
    if (auto done = order_by_name(*training); !done) return std::move(done).error();
  if (found_.features.empty())
    return rows_.error(
        "has no column of features; valid: one or more beside labels, ids and ignored columns");
  if (auto done = find_categories(); !done) return std::move(done).error();
  return found_;
}

void ColumnFinder::inherit_unused() {
  const CsvSource* training = source_.training_source.get();
  if (training == nullptr || !rows_.header().empty()) return;
  if (!source_.id.empty() || !source_.ignored.empty()) return;
  std::vector<std::string> names = training->ignored;
  if (!training->id.empty()) names.push_back(training->id);
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names)
    if (const auto number = parse_count(name)) numbers.push_back(*number);
  const bool has_label = source_.label && source_.label != "none";
  const std::size_t without_label = count_training_columns() + names.size();
  if (numbers.size() < names.size() || count_ < without_label + (has_label ? 1 : 0)) return;
  // In a file without labels, the columns that follow the labels in the training file have numbers
  // that are smaller by 1.
  std::uint64_t label = UINT64_MAX;
  if (training->label == "first") label = 1;
  if (const auto number = parse_count(training->label.value_or(""))) label = *number;
  for (std::uint64_t& number : numbers)
    if (count_ == without_label && !has_label && number > label) --number;
  if (!training->id.empty()) {
    source_.id = std::to_string(numbers.back());
    numbers.pop_back();
  }
  for (const std::uint64_t number : numbers) source_.ignored.push_back(std::to_string(number));
}

std::optional<std::string> ColumnFinder::label_option() const {
  const CsvSource* training = source_.training_source.get();
  if (source_.label || training == nullptr || training->label == "none") return source_.label;
  return training->label;
}

/// Finds the column of row names. Programs that write tables often put the numbers of the rows into
/// a first column without a name. As a feature, that column would reveal the order of the rows,
/// which often reveals the label.
Result<void> ColumnFinder::find_id() {
  if (source_.id.empty()) {
    const auto& header = rows_.header();
    const Encoding* training = training_encoding();
    const bool is_known_as_feature =
        training != nullptr && std::ranges::count(training->columns, "", &Column::name) > 0;
    const bool may_be_id = count_ > 2 || (training != nullptr && !is_known_as_feature);
    if (may_be_id && !header.empty() && header[0].empty())
      uses_[found_.id = 0] = "the column without a name";
    return {};
  }
  const auto id = find_column("id", source_.id);
  if (!id) return id.error();
  found_.id = *id;
  return set_use(*id, "id", source_.id);
}

Result<void> ColumnFinder::find_ignored() {
  for (const std::string& name : source_.ignored) {
    const auto column = find_column("ignore", name);
    if (!column) return column.error();
    if (auto used = set_use(*column, "ignore", name); !used) return used;
  }
  return {};
}

Result<void> ColumnFinder::find_label() {
  if (source_.label == "none") return {};
  if (!source_.label) {
    const auto& header = rows_.header();
    const Encoding* training = training_encoding();
    if (training != nullptr && !training->label.empty() && !header.empty() &&
        has_feature_name(*training)) {
      const auto at = std::ranges::find(header, training->label);
      if (at == header.end()) return {};
      found_.label = static_cast<std::size_t>(at - header.begin());
      return set_use(found_.label, "label", training->label);
    }
    if (count_training_columns() == unused_count()) return {};
  }
  const std::optional<std::string> label = label_option();
  if (label && label != "last" && label != "first") {
    const auto column = find_column("label", *label);
    if (!column) return column.error();
    found_.label = *column;
    return set_use(*column, "label", *label);
  }
  if (unused_count() < 2)
    return rows_.error("has " + print_count(unused_count(), "column") +
                       " for a feature and a label; a row needs two, separated by commas, "
                       "semicolons, tabs or |");
  found_.label = label == "first" ? 0 : label == "last" ? count_ - 1 : last_unused();
  const auto& header = rows_.header();
  if (source_.training_table == nullptr && !header.empty() &&
      std::ranges::count(header, header[found_.label]) > 1)
    return rows_.error("several columns are named " + in_quotes(header[found_.label]) +
                       ", and the label column is one of them; valid: different names, or "
                       "label=NAME of another column");
  return set_use(found_.label, "label", label.value_or("last"));
}

std::size_t ColumnFinder::count_training_columns() const {
  if (source_.training_table == nullptr) return 0;
  const auto& training = source_.training_table->encoding;
  return training == nullptr ? source_.training_table->features() : training->columns.size();
}

bool ColumnFinder::has_feature_name(const Encoding& training) const {
  const auto& header = rows_.header();
  const std::unordered_set<std::string_view> names{header.begin(), header.end()};
  return std::ranges::any_of(training.columns, [&](const Column& column) {
    return !column.name.empty() && names.contains(column.name);
  });
}

/// Brings the features into the order of the training data's columns. If the header has any of
/// the names of these columns, it must have all of them, in any order. If it has no such name, or
/// there is no header, the features keep the file's order.
Result<void> ColumnFinder::order_by_name(const Encoding& training) {
  const auto& header = rows_.header();
  if (header.empty() || !has_feature_name(training)) {
    if (found_.features.size() == training.columns.size()) return {};
    return rows_.error("has " + print_count(found_.features.size(), "column") +
                       " of features, but the training data have " +
                       std::to_string(training.columns.size()));
  }
  // Columns of the same name keep their order among each other.
  std::unordered_map<std::string_view, std::deque<std::size_t>> indices;
  for (const std::size_t feature : found_.features) indices[header[feature]].push_back(feature);
  std::vector<std::size_t> ordered;
  for (const Column& column : training.columns) {
    const auto at = indices.find(column.name);
    if (at == indices.end() || at->second.empty())
      return rows_.error("has no column " + in_quotes(column.name) +
                         ", which the training data have; valid: all of their columns");
    ordered.push_back(at->second.front());
    at->second.pop_front();
  }
  for (const std::size_t feature : found_.features)
    if (!indices[header[feature]].empty())
      return rows_.error("the training data have no " + rows_.name_of(feature) +
                         "; valid: their columns, ignore=" + header[feature] +
                         ", or id=" + header[feature]);
  found_.features = std::move(ordered);
  return {};
}

Result<void> ColumnFinder::find_categories() {
  found_.is_category.assign(found_.features.size(), false);
  for (const std::string& name : source_.categories) {
    const auto column = find_column("category", name);
    if (!column) return column.error();
    if (auto used = set_use(*column, "category", name); !used) return used;
    const auto at = std::ranges::find(found_.features, *column);
    found_.is_category[static_cast<std::size_t>(at - found_.features.begin())] = true;
  }
  return {};
}

Result<std::size_t> ColumnFinder::find_column(const std::string& option,
                                              const std::string& name) const {
  const auto& header = rows_.header();
  if (header.empty()) {
    const auto number = parse_count(name);
    if (number && *number >= 1 && *number <= count_) return static_cast<std::size_t>(*number - 1);
    return rows_.error(option + "=" + name +
                       " names a column, but the file has no header; valid: " +
                       (option == "label" ? "label=last, label=first, label=none, or " : "") +
                       "its number, 1 to " + std::to_string(count_));
  }
  const auto count = std::ranges::count(header, name);
  if (count == 1) return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
  if (count > 1)
    return rows_.error(option + "=" + name + " names " + std::to_string(count) +
                       " columns; valid: a name that only one column has");
  return rows_.error("no column is named " + in_quotes(name) + "; " + suggest(name, header));
}

Result<void> ColumnFinder::set_use(std::size_t column, const std::string& option,
                                   const std::string& name) {
  std::string& use = uses_[column];
  if (!use.empty())
    return rows_.error(option + "=" + name + " is " + rows_.name_of(column) + ", which is " + use +
                       " already; valid: another column");
  use = option + "=" + name;
  return {};
}

std::size_t ColumnFinder::last_unused() const {
  for (std::size_t column = count_; column-- > 0;)
    if (uses_[column].empty()) return column;
  return count_;
}

std::size_t ColumnFinder::unused_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(uses_, [](const std::string& use) { return use.empty(); }));
}

}  // namespace

Result<CsvColumns> find_columns(const CsvRows& rows, const CsvSource& source) {
  return ColumnFinder{rows, source}.find();
}

}  // namespace starling::models
