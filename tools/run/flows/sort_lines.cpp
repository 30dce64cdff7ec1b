#include "starling/tools/run/flows/sort_lines.hpp"

#include <functional>
#include <tuple>

namespace starling::program {
namespace {

/// Reverses the order of a key: the largest key comes first.
template <class K>
struct Descending {
  K key{};

  bool operator<(const Descending& other) const { return other.key < key; }
  static constexpr auto fields(auto& m) { return std::tie(m.key); }
};

using Lines = flow::Set<std::string, flow::TextChain>;

template <class KeyOf>
flow::Set<std::string> sorted_by(const Lines& lines, const KeyOf& key_of, bool is_descending) {
  using K = std::decay_t<std::invoke_result_t<const KeyOf&, const std::string&>>;
  if (!is_descending) return lines.sort_by(key_of);
  return lines.sort_by([key_of](const std::string& line) { return Descending<K>{key_of(line)}; });
}

}  // namespace

std::vector<FlowOption> SortLines::flow_options() {
  std::vector<FlowOption> all{
      {"column", "COLUMN",
       "sort by this column: its number from 1, or with --header its name [the whole line, or with "
       "--numeric column 1]"},
      {"numeric", "", "compare numbers, not bytes"},
      {"descending", "", "the largest first"}};
  for (auto& option : ColumnFormat::flow_options()) all.push_back(std::move(option));
  return all;
}

SortLines SortLines::parse(SpecReader& options) {
  return {.column = options.text("column", ""),
          .is_numeric = options.flag("numeric"),
          .is_descending = options.flag("descending"),
          .columns = ColumnFlags::parse(options)};
}

Result<flow::Set<std::string>> SortLines::run(FlowContext& context) const {
  const auto lines = context.text(columns.has_header);
  if (!lines) return lines.error();
  if (column.empty() && !is_numeric) return sorted_by(*lines, std::identity{}, is_descending);
  const auto table = columns.open(context.inputs(), context.engine().options().skip_unreadable);
  if (!table) return table.error();
  const Separator separator = table->format.separator;
  const auto index =
      find_column("column", column.empty() ? "1" : column, table->files.front(), table->format);
  if (!index) return index.error();
  const auto column_of = [index = *index, separator](const std::string& line) {
    if (is_blank(line)) throw std::invalid_argument{"the line is blank; valid: lines with columns"};
    return column_at(split_columns(line, separator), index);
  };
  if (!is_numeric) return sorted_by(*lines, column_of, is_descending);
  const auto number_of = [index = *index, separator](const std::string& line) {
    return number_key_at(split_columns(line, separator), index);
  };
  return sorted_by(*lines, number_of, is_descending);
}

}  // namespace starling::program
