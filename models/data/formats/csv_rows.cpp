#include "starling/models/data/formats/csv_rows.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/models/data/formats/cell.hpp"

namespace starling::models {
namespace {

constexpr std::array<char, 4> separators{',', ';', '\t', '|'};

/// Names the separator, for messages.
std::string print(char separator) {
  switch (separator) {
    case ',':
      return "a comma";
    case ';':
      return "a semicolon";
    case '\t':
      return "a tab";
    default:
      return "a |";
  }
}

/// Returns the separator that occurs most often in the line outside of quotes. Does not count
/// commas if numbers are written with decimal commas.
char guess_separator(std::string_view line, bool has_decimal_commas) {
  std::array<std::size_t, separators.size()> counts{};
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == ',' && has_decimal_commas) continue;
    const auto at = std::ranges::find(separators, c);
    if (!is_quoted && at != separators.end())
      ++counts.at(static_cast<std::size_t>(at - separators.begin()));
  }
  return separators.at(static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin()));
}

/// Returns whether `line` begins with a cell that is only a `#`. This is a usual name for a column
/// of row numbers, so such a line is a header, not a comment.
bool begins_with_number_column(std::string_view line, const CsvSource& source) {
  if (line.size() < 2 || line[0] != '#' || !source.header.value_or(true)) return false;
  if (source.separator) return line[1] == *source.separator;
  return line[1] != '\t' && line[1] == guess_separator(line, source.has_decimal_commas);
}

/// Returns true if a CR stands within `line`, which has no quoted cell: then the lines of the file
/// end by CR, as on old Macs.
bool has_inner_return(std::string_view line) {
  if (line.find('"') != line.npos) return false;
  const auto found = line.find('\r');
  return found != std::string_view::npos && line.find_first_not_of('\r', found) != line.npos;
}

}  // namespace

CellKind read_number(const CsvSource& source, std::string_view cell, float& value) {
  if (!source.has_decimal_commas) return read_cell(cell, value);
  if (cell.find('.') != std::string_view::npos) return CellKind::text;
  std::string with_point{cell};
  std::ranges::replace(with_point, ',', '.');
  return read_cell(with_point, value);
}

Result<std::vector<std::string_view>*> CellSplitter::operator()(std::string_view line) {
  cells_.clear();
  unquoted_.clear();
  unquoted_.reserve(line.size());
  bool has_more = true;
  while (has_more) {
    const auto start = line.find_first_not_of(blanks());
    if (start != std::string_view::npos && line[start] == '"') {
      line.remove_prefix(start);
      auto cell = take_quoted_cell(line);
      if (!cell) return std::move(cell).error();
      cells_.push_back(*cell);
      has_more = !line.empty();
      if (has_more) line.remove_prefix(1);
      continue;
    }
    const auto end = line.find(separator_);
    has_more = end != std::string_view::npos;
    cells_.push_back(trim(line.substr(0, end)));
    if (has_more) line.remove_prefix(end + 1);
  }
  return &cells_;
}

Result<std::string_view> CellSplitter::take_quoted_cell(std::string_view& rest) {
  const std::size_t start = unquoted_.size();
  const auto column = [&] { return "column " + std::to_string(cells_.size() + 1) + ": "; };
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] != '"') {
      unquoted_ += rest[i];
    } else if (i + 1 < rest.size() && rest[i + 1] == '"') {
      unquoted_ += rest[i++];
    } else {
      rest.remove_prefix(i + 1);
      rest.remove_prefix(std::min(rest.find_first_not_of(blanks()), rest.size()));
      if (!rest.empty() && rest[0] != separator_)
        return Error{column() + in_quotes(rest) +
                     " follows a closing quote; valid: " + print(separator_)};
      return trim(std::string_view{unquoted_}.substr(start));
    }
  }
  return Error{column() + "the quote before " + in_quotes(rest.substr(1)) +
               " is not closed in its line"};
}

Result<std::unique_ptr<CsvRows>> CsvRows::open(const CsvSource& source) {
  auto file = InputFile::open(source.file);
  if (!file) return std::move(file).error();
  std::unique_ptr<CsvRows> rows{new CsvRows{source, *std::move(file)}};
  if (auto first = rows->read_first(); !first) return std::move(first).error();
  return rows;
}

CsvRows::CsvRows(const CsvSource& source, InputFile file)
    : source_(source),
      is_pipe_(file.content_max() == UINT64_MAX),
      lines_(std::move(file)),
      budget_(source.file) {}

/// Applies the training data's option `header` to the first row of test data. With header=no the
/// row is not a header. With header=yes the row is a header if it names all columns of the training
/// data. Otherwise returns nullopt: the option does not decide.
std::optional<bool> CsvRows::training_header(const Cells& first) const {
  const CsvSource* const training = source_.training_source.get();
  if (training == nullptr || !training->header) return std::nullopt;
  if (!*training->header) return false;
  const Table* const table = source_.training_table.get();
  if (table == nullptr || !table->encoding) return std::nullopt;
  const auto is_named = [&](const Column& column) {
    return std::ranges::find(first, std::string_view{column.name}) != first.end();
  };
  if (std::ranges::all_of(table->encoding->columns, is_named)) return true;
  return std::nullopt;
}

Result<void> CsvRows::read_first() {
  const auto cells = read_line();
  if (!cells) return cells.error();
  if (*cells == nullptr) return Error{path() + ": is empty; valid: rows of cells"};
  const Cells& first = **cells;
  columns_ = first.size();
  float ignored = 0;
  const auto is_text = [&](std::string_view c) {
    return read_number(source_, c, ignored) == CellKind::text;
  };
  const bool is_header =
      source_.header.value_or(training_header(first).value_or(std::ranges::all_of(first, is_text)));
  if (is_header)
    for (const std::string_view name : first) header_.push_back(printable(std::string{name}));
  else
    pending_row_ = &first;
  return {};
}

Result<const CsvRows::Cells*> CsvRows::next() {
  if (pending_row_ != nullptr) return std::exchange(pending_row_, nullptr);
  const auto cells = read_line();
  if (!cells) return cells.error();
  if (*cells != nullptr && (*cells)->size() != columns_)
    return error("has " + print_count((*cells)->size(), "column") + ", but the first row has " +
                 std::to_string(columns_));
  return cells;
}

/// Returns true if `blank`, a line of spaces and tabs, has as many separators as a row, which is
/// possible only if the separators are tabs.
bool CsvRows::is_row_of_empty_cells(std::string_view blank) const {
  const auto separators = static_cast<std::size_t>(std::ranges::count(blank, separator_));
  return separators > 0 && separators + 1 == columns_;
}

Result<const CsvRows::Cells*> CsvRows::read_line() {
  while (true) {
    const auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) return nullptr;
    const bool is_first = columns_ == 0;
    if (trim(**line).empty() && (is_first || !is_row_of_empty_cells(**line))) continue;
    if (is_first && ((**line).starts_with("\xff\xfe") || (**line).starts_with("\xfe\xff")))
      return error("is UTF-16; valid: UTF-8, as `iconv -f UTF-16 -t UTF-8` writes it");
    if (is_first && has_inner_return(**line))
      return error("ends lines by CR; valid: LF or CR LF, as `tr '\\r' '\\n'` writes");
    const bool may_be_comment =
        source_.has_comments || (is_first && !begins_with_number_column(**line, source_));
    if (may_be_comment && (**line).starts_with('#')) continue;
    if (is_first)
      separator_ = source_.separator.value_or(guess_separator(**line, source_.has_decimal_commas));
    if (is_first) split_ = CellSplitter{separator_};
    if (auto fits = check_memory(**line); !fits) return std::move(fits).error();
    const auto cells = split_(**line);
    if (!cells) return Error{cells.error()}.within(location());
    return *cells;
  }
}

/// Checks long lines, because the cells of a long line of separators take many times the line's
/// bytes.
Result<void> CsvRows::check_memory(std::string_view line) const {
  constexpr std::size_t short_line = std::size_t{1} << 20U;
  if (line.size() <= short_line) return {};
  // Each cell of the first line also makes a column, with a name and the statistics of
  // infer_schema().
  constexpr std::uint64_t column_bytes = 400;
  const auto cells = static_cast<std::uint64_t>(std::ranges::count(line, separator_));
  return budget_.check_total(cells * (columns_ == 0 ? column_bytes : sizeof(std::string_view)));
}

std::string CsvRows::name_of(std::size_t column) const {
  const std::string number = "column " + std::to_string(column + 1);
  return header_.empty() ? number : number + " " + in_quotes(header_[column]);
}

}  // namespace starling::models
