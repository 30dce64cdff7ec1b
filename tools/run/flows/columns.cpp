#include "starling/tools/run/flows/columns.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "starling/base/input.hpp"
#include "starling/base/memory.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/csv_rows.hpp"
#include "starling/models/data/formats/input_file.hpp"

namespace starling::program {
namespace {

/// The largest number of a column that an option may name.
constexpr std::uint64_t columns_max = 1'000'000;

std::vector<std::string> split_at_spaces(std::string_view line) {
  std::vector<std::string> columns;
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  for (auto end = line.begin();;) {
    const auto begin = std::find_if_not(end, line.end(), is_space);
    if (begin == line.end()) return columns;
    end = std::find_if(begin, line.end(), is_space);
    columns.emplace_back(begin, end);
  }
}

std::vector<std::string> split_at_tabs(std::string_view line) {
  std::vector<std::string> columns;
  for (const std::string_view column : split(line, '\t')) columns.emplace_back(column);
  return columns;
}

/// Returns the text without a plus sign at its beginning, unless another sign follows.
std::string_view without_plus(std::string_view text) {
  const bool has_plus = text.size() > 1 && text.front() == '+' && text[1] != '-' && text[1] != '+';
  return has_plus ? text.substr(1) : text;
}

std::string csv_cell(const std::string& text) {
  const bool is_plain =
      text.find_first_of(",\"") == text.npos && !text.starts_with(' ') && !text.ends_with(' ');
  if (is_plain) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string{c};
  return quoted + '"';
}

}  // namespace

std::vector<FlowOption> ColumnFormat::flow_options() {
  return {{"separator", "NAME",
           "what is between columns: comma (CSV), tab, or space for any number of spaces and tabs "
           "[by the ending of the file, without .gz: .csv comma, .tsv tab, else space]"},
          {"header", "", "the first line of each file names the columns"}};
}

ColumnFlags ColumnFlags::parse(SpecReader& options) {
  ColumnFlags flags{.separator = options.text("separator", ""),
                    .has_header = options.flag("header")};
  const auto& name = flags.separator;
  if (!name.empty() && name != "comma" && name != "tab" && name != "space")
    options.refuse("separator=" + name + " is unknown; valid: comma, tab, space");
  return flags;
}

ColumnFormat ColumnFlags::format_of(const std::string& file) const {
  const std::string_view name =
      file.ends_with(".gz") ? std::string_view{file}.substr(0, file.size() - 3) : file;
  const bool has_commas = separator.empty() ? name.ends_with(".csv") : separator == "comma";
  const bool has_tabs = separator.empty() ? name.ends_with(".tsv") : separator == "tab";
  return {.separator = has_commas ? Separator::comma
                       : has_tabs ? Separator::tab
                                  : Separator::space,
          .has_header = has_header};
}

Result<TableFiles> ColumnFlags::open(const std::vector<std::string>& files,
                                     bool skips_unreadable) const {
  // Flows read no pipes. The free memory is measured once, and not for each of the files.
  ReadLimits limits = ReadScope::limits();
  limits.refuses_pipes = true;
  if (limits.memory_max == 0)
    limits.memory_max = static_cast<std::uint64_t>(free_memory_bytes() / 3);
  const ReadScope read_scope{limits};
  TableFiles table;
  std::optional<Error> unreadable;
  std::vector<std::string> header;
  std::vector<std::string> empty;  // these come last: the first file names the columns
  for (const std::string& file : files) {
    const ColumnFormat own = format_of(file);
    auto first = first_columns(file, own);
    if (!first && !models::InputFile::open(file)) {  // else its first line is faulty
      if (!unreadable) unreadable = first.error();
      continue;
    }
    if (!first) return std::move(first).error();
    if (table.files.empty() && empty.empty()) table.format = own;
    if (own.separator != table.format.separator)
      return Error{file + ": has other separators between columns, by its name, than " +
                   (table.files.empty() ? empty : table.files).front() +
                   "; valid: files of one kind, or --separator"};
    if (first->empty()) {
      empty.push_back(file);
      continue;
    }
    if (table.files.empty()) header = *first;
    if (has_header && *first != header)
      return Error{file + ": its first line names other columns than that of " +
                   table.files.front() + "; valid: files with the same header"};
    table.files.push_back(file);
  }
  table.files.insert(table.files.end(), empty.begin(), empty.end());
  if (unreadable && (table.files.empty() || !skips_unreadable)) return *unreadable;
  return table;
}

std::vector<std::string> split_columns(std::string_view line, Separator separator) {
  if (separator == Separator::space) return split_at_spaces(line);
  if (separator == Separator::tab) return split_at_tabs(line);
  thread_local models::CellSplitter splitter;
  const auto cells = splitter(line);
  if (!cells) throw std::invalid_argument{cells.error().message};
  return {(*cells)->begin(), (*cells)->end()};
}

std::string join_columns(const std::vector<std::string>& columns, Separator separator) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) line += separator == Separator::comma ? ',' : '\t';
    line += separator == Separator::comma ? csv_cell(columns[i]) : columns[i];
  }
  return line;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }

const std::string& column_at(const std::vector<std::string>& columns, std::size_t index) {
  if (index < columns.size()) return columns[index];
  throw std::invalid_argument{"column " + std::to_string(index + 1) + " is missing: the line has " +
                              print_count(columns.size(), "column") +
                              "; valid: lines with that column"};
}

NumberKey number_key_at(const std::vector<std::string>& columns, std::size_t index) {
  const double number = number_at(columns, index);
  if (std::abs(number) < 0x1p53) return {number, 0};
  const std::string_view text = without_plus(trim(columns[index]));
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc{} || end != text.data() + text.size()) {
    if (std::abs(number) >= 0x1p63) return {number, 0};
    whole = static_cast<std::int64_t>(number);
  }
  constexpr std::int64_t rest_mask = 2047;
  return {static_cast<double>(whole & ~rest_mask), whole & rest_mask};
}

double number_at(const std::vector<std::string>& columns, std::size_t index) {
  const std::string& text = column_at(columns, index);
  if (const auto number = parse_number(without_plus(trim(text)))) return *number;
  throw std::invalid_argument{"column " + std::to_string(index + 1) + ": " + quote(text) +
                              " is not a finite number; valid: numbers such as 17, -0.5 or 1e6"};
}

Result<std::vector<std::string>> first_columns(const std::string& file,
                                               const ColumnFormat& format) {
  auto input = models::InputFile::open(file);
  if (!input) return std::move(input).error();
  models::LineReader reader{*std::move(input)};
  for (;;) {
    const auto line = reader.next();
    if (!line) return line.error();
    if (!*line) return std::vector<std::string>{};
    if (is_blank(**line) && !format.has_header) continue;
    try {
      return split_columns(**line, format.separator);
    } catch (const std::invalid_argument& fault) {
      return Error{fault.what()}.within(reader.location());
    }
  }
}

Result<std::size_t> find_column(const std::string& flag, const std::string& text,
                                const std::string& file, const ColumnFormat& format) {
  std::vector<std::string> names;
  if (format.has_header) {
    auto header = first_columns(file, format);
    if (!header) return std::move(header).error();
    names = *std::move(header);
    const auto found = std::ranges::find(names, text);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  if (const auto number = parse_count(text, 1, columns_max))
    return static_cast<std::size_t>(*number - 1);
  if (format.has_header)
    return Error{"--" + flag + ": " + file + " has no column " + quote(text) + "; " +
                 suggest(text, names) + ", or a number from 1"};
  return Error{"--" + flag + ": " + quote(text) +
               " is not the number of a column; valid: a whole number from 1, or with --header a "
               "name"};
}

}  // namespace starling::program
