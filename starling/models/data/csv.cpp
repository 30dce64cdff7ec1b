#include <algorithm>
#include <optional>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/cell.hpp"
#include "starling/models/data/file.hpp"
#include "starling/models/data/readers.hpp"

namespace starling::models {
namespace {

/// Splits lines into cells. Quotes around a cell are taken off; within them stand commas and
/// doubled quotes.
class CellSplitter {
 public:
  /// The cells of `line`, valid until the next call; an error names what is wrong in the line.
  Result<std::vector<std::string_view>*> operator()(std::string_view line);

 private:
  /// Takes one quoted cell off the front of `rest`, up to and with its comma.
  Result<std::string_view> quoted_cell(std::string_view& rest);

  std::vector<std::string_view> cells_;
  /// Cells with doubled quotes, rewritten; reserved so that views into it stay valid.
  std::string rewritten_;
};

Result<std::vector<std::string_view>*> CellSplitter::operator()(std::string_view line) {
  cells_.clear();
  rewritten_.clear();
  rewritten_.reserve(line.size());
  bool more = true;
  while (more) {
    const auto start = line.find_first_not_of(" \t");
    if (start != std::string_view::npos && line[start] == '"') {
      line.remove_prefix(start);
      auto cell = quoted_cell(line);
      if (!cell) return std::move(cell).error();
      cells_.push_back(*cell);
      more = !line.empty();
      if (more) line.remove_prefix(1);
      continue;
    }
    const auto comma = line.find(',');
    more = comma != std::string_view::npos;
    cells_.push_back(trimmed(line.substr(0, comma)));
    if (more) line.remove_prefix(comma + 1);
  }
  return &cells_;
}

Result<std::string_view> CellSplitter::quoted_cell(std::string_view& rest) {
  const std::size_t from = rewritten_.size();
  const auto column = [&] { return "column " + std::to_string(cells_.size() + 1) + ": "; };
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] != '"') {
      rewritten_ += rest[i];
    } else if (i + 1 < rest.size() && rest[i + 1] == '"') {
      rewritten_ += rest[i++];
    } else {
      rest.remove_prefix(i + 1);
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
      if (!rest.empty() && rest[0] != ',')
        return Error{column() + in_quotes(rest) + " follows a closing quote; valid: a comma"};
      return trimmed(std::string_view{rewritten_}.substr(from));
    }
  }
  return Error{column() + "the quote before " + in_quotes(rest.substr(1)) +
               " is not closed in its line"};
}

class CsvReader {
 public:
  CsvReader(const CsvSource& source, InputFile file)
      : source_(source), lines_(std::move(file)), budget_(source.file) {}

  Result<RawTable> read();

 private:
  using Cells = std::vector<std::string_view>;

  Result<void> take(std::string_view line);
  /// A long line of nothing but commas makes cells that take many times its bytes.
  Result<void> expect_cells(std::string_view line) const;
  Result<void> take_first(const Cells& cells);
  Result<void> take_row(const Cells& cells);
  Result<std::size_t> label_column(const std::vector<std::string>& header) const;
  /// The one column of that name; `key` says who asks.
  Result<std::size_t> column_named(const std::string& key, const std::string& name,
                                   const std::vector<std::string>& header) const;
  [[nodiscard]] Error error(const std::string& what) const {
    return Error{lines_.place() + ": " + what};
  }
  [[nodiscard]] Error bad_cell(Cell kind, std::string_view cell, std::size_t column) const;

  const CsvSource& source_;
  LineReader lines_;
  ReadBudget budget_;
  CellSplitter split_;
  std::size_t columns_ = 0;
  /// Behind the last column where there is none.
  std::size_t label_ = 0;
  std::size_t id_ = 0;
  std::size_t rows_ = 0;
  bool has_header_ = false;
  std::vector<float> values_;
  std::vector<float> labels_;
  std::vector<std::string> ids_;
  std::uint64_t id_bytes_ = 0;
};

Result<RawTable> CsvReader::read() {
  while (true) {
    const auto line = lines_.next();
    if (!line) return line.error();
    if (!*line) break;
    if (trimmed(**line).empty()) continue;
    if (auto taken = take(**line); !taken) return std::move(taken).error();
  }
  if (columns_ == 0) return Error{lines_.path() + ": is empty; valid: rows of numbers"};
  if (rows_ == 0) return Error{lines_.path() + ": holds a header, but no rows"};
  values_.shrink_to_fit();
  labels_.shrink_to_fit();
  RawTable raw{.place = lines_.path(), .features = values_.size() / rows_};
  raw.has_labels = label_ < columns_;
  if (!raw.has_labels) labels_.assign(rows_, 0);
  raw.ids = std::move(ids_);
  raw.task = source_.task;
  raw.x = Table::Dense{std::move(values_)};
  raw.labels = std::move(labels_);
  return raw;
}

Result<void> CsvReader::take(std::string_view line) {
  if (auto fits = expect_cells(line); !fits) return fits;
  auto cells = split_(line);
  if (!cells) return std::move(cells).error().within(lines_.place());
  return columns_ == 0 ? take_first(**cells) : take_row(**cells);
}

Result<void> CsvReader::expect_cells(std::string_view line) const {
  constexpr std::size_t short_line = std::size_t{1} << 20U;
  if (line.size() <= short_line) return {};
  const auto cells = static_cast<std::uint64_t>(std::ranges::count(line, ','));
  return budget_.expect(cells * sizeof(std::string_view));
}

Result<void> CsvReader::take_first(const Cells& cells) {
  const bool is_plain = source_.label != "none" && (source_.label || source_.features != 1);
  if (cells.size() < 2 && is_plain)
    return error("has one column only, " + in_quotes(cells[0]) +
                 "; a row needs a feature and a label, separated by a comma");
  columns_ = cells.size();
  float ignored = 0;
  const auto is_text = [&](std::string_view c) { return read_cell(c, ignored) == Cell::text; };
  has_header_ = std::ranges::all_of(cells, is_text);
  std::vector<std::string> header;
  if (has_header_) header.assign(cells.begin(), cells.end());
  id_ = columns_;
  if (!source_.id.empty()) {
    const auto id = column_named("id", source_.id, header);
    if (!id) return id.error();
    id_ = *id;
  }
  const auto label = label_column(header);
  if (!label) return label.error();
  label_ = *label;
  if (label_ == id_ && id_ < columns_)
    return error("id=" + source_.id + " is the column of labels, by label=" +
                 source_.label.value_or("last") + "; valid: another column, or label=NAME");
  const std::size_t others = (label_ < columns_ ? 1U : 0U) + (id_ < columns_ ? 1U : 0U);
  if (columns_ == others) return error("has no column of features beside labels and ids");
  return has_header_ ? Result<void>{} : take_row(cells);
}

Result<std::size_t> CsvReader::label_column(const std::vector<std::string>& header) const {
  const std::size_t ids = source_.id.empty() ? 0 : 1;
  if (!source_.label) return source_.features + ids == columns_ ? columns_ : columns_ - 1;
  if (source_.label == "none") return columns_;
  if (source_.label == "last") return columns_ - 1;
  if (source_.label == "first") return std::size_t{0};
  return column_named("label", *source_.label, header);
}

Result<std::size_t> CsvReader::column_named(const std::string& key, const std::string& name,
                                            const std::vector<std::string>& header) const {
  if (header.empty())
    return error(key + "=" + name + " names a column, but the file has no header" +
                 (key == "label" ? "; valid: label=last, label=first, label=none" : ""));
  const auto count = std::ranges::count(header, name);
  if (count == 1) return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
  if (count > 1)
    return error(key + "=" + name + " names " + std::to_string(count) +
                 " columns; valid: a name that stands once");
  return error("no column is named " + in_quotes(name) + "; " + suggest(name, header));
}

Result<void> CsvReader::take_row(const Cells& cells) {
  if (cells.size() != columns_)
    return error("has " + std::to_string(cells.size()) + " columns, but the first row has " +
                 std::to_string(columns_));
  ++rows_;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i == id_) {
      ids_.emplace_back(cells[i]);
      id_bytes_ += sizeof(std::string) + (cells[i].size() > 15 ? cells[i].size() + 1 : 0);
      continue;
    }
    float value = 0;
    if (const Cell kind = read_cell(cells[i], value); kind != Cell::number)
      return bad_cell(kind, cells[i], i);
    (i == label_ ? labels_ : values_).push_back(value);
  }
  return budget_.hold((values_.size() + labels_.size()) * sizeof(float) + id_bytes_);
}

Error CsvReader::bad_cell(Cell kind, std::string_view cell, std::size_t column) const {
  const std::string place = "column " + std::to_string(column + 1) + ": " + in_quotes(cell);
  if (kind == Cell::not_finite) return error(place + " is not a finite number that a float holds");
  const bool first = !has_header_ && rows_ == 1;
  return error(place + " is not a number" + (first ? " (a header holds no numbers at all)" : ""));
}

}  // namespace

Result<RawTable> read_csv(const CsvSource& source) {
  auto file = InputFile::open(source.file);
  if (!file) return std::move(file).error();
  return CsvReader{source, std::move(*file)}.read();
}

}  // namespace starling::models
