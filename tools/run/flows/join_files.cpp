#include "starling/tools/run/flows/join_files.hpp"

#include <optional>
#include <stdexcept>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

using Row = std::vector<std::string>;
using Rows = flow::Set<std::pair<std::string, Row>>;

/// One of the two tables.
struct JoinTable {
  std::vector<std::string> files;
  ColumnFormat format;
  /// The index of the key's column.
  std::size_t key = 0;
  /// The number of columns of each row.
  std::size_t columns = 0;
};

Result<JoinTable> open_table(std::vector<std::string> files, const ColumnFlags& flags,
                             const std::string& flag, const std::string& column) {
  JoinTable table{.files = std::move(files), .format = {}};
  table.format = flags.format_of(table.files.front());
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

/// Splits a line into its key and its other columns.
std::pair<std::string, Row> row_of(const std::string& line, const JoinTable& table) {
  Row columns = split_columns(line, table.format.separator);
  if (columns.size() != table.columns)
    throw std::invalid_argument{"the line has " + print_count(columns.size(), "column") +
                                ", and the first line has " + std::to_string(table.columns) +
                                "; valid: as many in each line"};
  const auto at = columns.begin() + static_cast<std::ptrdiff_t>(table.key);
  std::string key = std::move(*at);
  columns.erase(at);
  return {std::move(key), std::move(columns)};
}

Result<Rows> rows_of(const flow::MapReduce& engine, const JoinTable& table) {
  const auto lines = engine.text(table.files, table.format.has_header);
  if (!lines) return lines.error();
  return Rows{lines->filter([](const std::string& line) { return !is_blank(line); })
                  .map([table](const std::string& line) { return row_of(line, table); })};
}

/// Returns a function that makes a line of a joined pair.
auto line_maker(const JoinTable& left, const JoinTable& right) {
  return [separator = left.format.separator, left_columns = std::max<std::size_t>(left.columns, 1),
          right_columns = std::max<std::size_t>(right.columns, 1)](
             const std::string& key, const std::optional<Row>& on_left,
             const std::optional<Row>& on_right) {
    Row columns{key};
    const Row no_left(left_columns - 1);
    const Row no_right(right_columns - 1);
    for (const std::string& column : on_left ? *on_left : no_left) columns.push_back(column);
    for (const std::string& column : on_right ? *on_right : no_right) columns.push_back(column);
    return join_columns(columns, separator);
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
  join.format = ColumnFlags::parse(options);
  return join;
}

Result<flow::Set<std::string>> JoinFiles::run(FlowContext& context) const {
  const auto left = open_table(context.inputs(), format, "column", column);
  if (!left) return left.error();
  const auto right_table = open_table(right, format, "with-column", right_column);
  if (!right_table) return right_table.error();
  const auto rows = rows_of(context.engine(), *left);
  if (!rows) return rows.error();
  const auto right_rows = rows_of(context.engine(), *right_table);
  if (!right_rows) return right_rows.error();
  const auto to_line = [make = line_maker(*left, *right_table)](const auto& joined) {
    return make(joined.first, joined.second.first, joined.second.second);
  };
  using Lines = flow::Set<std::string>;
  if (kind == Kind::inner) return Lines{rows->join(*right_rows).map(to_line)};
  if (kind == Kind::left) return Lines{rows->left_join(*right_rows).map(to_line)};
  return Lines{rows->full_join(*right_rows).map(to_line)};
}

}  // namespace starling::program
