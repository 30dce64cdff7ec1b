#include "starling/tools/run/flows/join_files.hpp"

#include <optional>
#include <stdexcept>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// A key, and the other columns of its row as text of the result.
using Row = std::pair<std::string, std::string>;
using Rows = flow::Set<Row>;

/// One of the two tables.
struct JoinTable {
  std::vector<std::string> files;
  ColumnFormat format;
  /// The index of the key's column.
  std::size_t key = 0;
  /// The number of columns of each row.
  std::size_t columns = 0;
};

Result<JoinTable> open_table(const FlowContext& context, const std::vector<std::string>& files,
                             const ColumnFlags& flags, const std::string& flag,
                             const std::string& column) {
  auto opened = flags.open(files, context.engine().options().skip_unreadable);
  if (!opened) return std::move(opened).error();
  JoinTable table{.files = std::move(opened->files), .format = opened->format};
  auto key = find_column(flag, column, table.files.front(), table.format);
  if (!key) return std::move(key).error();
  table.key = *key;
  for (const std::string& file : table.files) {
    const auto first = first_columns(file, table.format);
    if (!first) return first.error();
    table.columns = first->size();
    if (table.columns > 0) break;
  }
  if (table.columns > 0 && table.key >= table.columns)
    return Error{"--" + flag + ": " + table.files.front() + " has " +
                 print_count(table.columns, "column") + "; valid: 1 to " +
                 std::to_string(table.columns)};
  return table;
}

/// Throws std::invalid_argument if the text cannot be a column of a line of the result.
void check_column(const std::string& column, Separator separator) {
  if (separator != Separator::comma && column.find('\t') != column.npos)
    throw std::invalid_argument{"the column " + quote(column) +
                                " has a tab, which divides the columns of the result; valid: a "
                                "CSV file on the left"};
}

/// Returns columns as text that follows another column in a line of the result.
std::string rest_of_line(const std::vector<std::string>& columns, Separator separator) {
  std::string text;
  for (const std::string& column : columns) {
    check_column(column, separator);
    text += separator == Separator::comma ? ',' : '\t';
    text += join_columns({column}, separator);
  }
  return text;
}

/// Splits a line into its key and its other columns. `separator` is that of the result.
Row row_of(const std::string& line, const JoinTable& table, Separator separator) {
  auto columns = split_columns(line, table.format.separator);
  if (columns.size() != table.columns)
    throw std::invalid_argument{"the line has " + print_count(columns.size(), "column") +
                                ", and the first line has " + std::to_string(table.columns) +
                                "; valid: the same number of columns in each line"};
  const auto at = columns.begin() + static_cast<std::ptrdiff_t>(table.key);
  std::string key = std::move(*at);
  columns.erase(at);
  check_column(key, separator);
  return {std::move(key), rest_of_line(columns, separator)};
}

/// Returns the rows of the table. `files` are those of the table, and those that are skipped.
Result<Rows> rows_of(const flow::MapReduce& engine, const std::vector<std::string>& files,
                     const JoinTable& table, Separator separator) {
  const auto lines = engine.text(files, table.format.has_header);
  if (!lines) return lines.error();
  return Rows{lines->filter([](const std::string& line) { return !is_blank(line); })
                  .map([table, separator](const std::string& line) {
                    return row_of(line, table, separator);
                  })};
}

/// Returns the empty columns that stand for a row that the table lacks.
std::string empty_rest(const JoinTable& table, Separator separator) {
  const std::size_t columns = std::max<std::size_t>(table.columns, 1) - 1;
  return rest_of_line(std::vector<std::string>(columns), separator);
}

/// Returns a function that makes a line of a joined pair.
auto line_maker(const JoinTable& left, const JoinTable& right) {
  const Separator separator = left.format.separator;
  const auto text_of = []<class T>(const T& rest,
                                   const std::string& empty_rest) -> const std::string& {
    if constexpr (std::is_same_v<T, std::string>)
      return rest;
    else
      return rest ? *rest : empty_rest;
  };
  return [separator, text_of, empty_left = empty_rest(left, separator),
          empty_right = empty_rest(right, separator)](const auto& joined) {
    const auto& [on_left, on_right] = joined.second;
    return join_columns({joined.first}, separator) + text_of(on_left, empty_left) +
           text_of(on_right, empty_right);
  };
}

}  // namespace

std::vector<FlowOption> JoinFiles::flow_options() {
  std::vector<FlowOption> all{
      {"with", "FILE", "the right table; the left one is --input"},
      {"kind", "NAME",
       "inner: rows with a partner | left: all rows of the left table | full: all rows of both "
       "[inner]"},
      {"column", "COLUMN",
       "the column of the left table: its number from 1, or with --header its name [1]"},
      {"with-column", "COLUMN", "the column of the right table [as --column]"}};
  for (auto& option : ColumnFormat::flow_options()) all.push_back(std::move(option));
  return all;
}

JoinFiles JoinFiles::parse(SpecReader& options) {
  JoinFiles join;
  if (const auto file = options.text("with", ""); !file.empty()) join.right.push_back(file);
  if (join.right.empty()) options.refuse("the right table is missing; valid: --with FILE");
  const std::string kind = options.text("kind", "inner");
  if (kind == "left")
    join.kind = Kind::left;
  else if (kind == "full")
    join.kind = Kind::full;
  else if (kind != "inner")
    options.refuse("kind=" + kind + " is unknown; valid: inner, left, full");
  join.column = options.text("column", "1");
  join.right_column = options.text("with-column", join.column);
  join.columns = ColumnFlags::parse(options);
  return join;
}

Result<flow::Set<std::string>> JoinFiles::run(FlowContext& context) const {
  const auto left = open_table(context, context.inputs(), columns, "column", column);
  if (!left) return left.error();
  const auto right_table = open_table(context, right, columns, "with-column", right_column);
  if (!right_table) return right_table.error();
  const auto rows = rows_of(context.engine(), context.inputs(), *left, left->format.separator);
  if (!rows) return rows.error();
  const auto right_rows = rows_of(context.engine(), right, *right_table, left->format.separator);
  if (!right_rows) return right_rows.error();
  const auto to_line = line_maker(*left, *right_table);
  using Lines = flow::Set<std::string>;
  if (kind == Kind::inner) return Lines{rows->join(*right_rows).map(to_line)};
  if (kind == Kind::left) return Lines{rows->left_join(*right_rows).map(to_line)};
  return Lines{rows->full_join(*right_rows).map(to_line)};
}

}  // namespace starling::program
