/// The rows of a text file as cells, and which column is what. Internal to models/data; users call
/// load(). One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/input.hpp"
#include "starling/base/result.hpp"
#include "starling/models/data/formats/cell.hpp"
#include "starling/models/data/formats/file.hpp"
#include "starling/models/data/source/source.hpp"

namespace starling::models {

/// Splits lines into cells. Quotes around a cell are taken off; within them stand separators and
/// doubled quotes.
class CellSplitter {
 public:
  explicit CellSplitter(char separator = ',') : separator_(separator) {}

  /// Returns the cells of `line`, valid until the next call; an error names the fault in the line.
  Result<std::vector<std::string_view>*> operator()(std::string_view line);

 private:
  /// Takes one quoted cell off the front of `rest`, up to and with its separator.
  Result<std::string_view> quoted_cell(std::string_view& rest);

  /// Spaces that stand around a cell.
  [[nodiscard]] std::string_view blanks() const { return separator_ == '\t' ? " " : " \t"; }

  char separator_;
  std::vector<std::string_view> cells_;
  /// Cells with doubled quotes, rewritten; reserved so that views into it stay valid.
  std::string rewritten_;
};

class CsvRows {
 public:
  using Cells = std::vector<std::string_view>;

  /// Reads the first row. `source` outlives it.
  static Result<std::unique_ptr<CsvRows>> open(const CsvSource& source);

  /// The next row's cells, as many as columns(), valid until the next call; null behind the last.
  Result<const Cells*> next();

  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  /// The names of columns; empty where there is no header.
  [[nodiscard]] const std::vector<std::string>& header() const noexcept { return header_; }
  /// "FILE:LINE".
  [[nodiscard]] std::string place() const { return lines_.place(); }
  [[nodiscard]] const std::string& path() const noexcept { return lines_.path(); }
  [[nodiscard]] Error error(const std::string& what) const { return Error{place() + ": " + what}; }
  /// "column 3 'age'", for messages.
  [[nodiscard]] std::string name_of(std::size_t column) const;
  /// Whether the file can be read again.
  [[nodiscard]] bool is_pipe() const noexcept { return is_pipe_; }

 private:
  CsvRows(const CsvSource& source, InputFile file);
  Result<void> read_first();
  /// The cells of the next line that holds any; null at the end.
  Result<const Cells*> read();
  [[nodiscard]] Result<void> expect_cells(std::string_view line) const;

  const CsvSource& source_;
  bool is_pipe_;
  LineReader lines_;
  ReadBudget budget_;
  char separator_ = ',';
  CellSplitter split_;
  std::vector<std::string> header_;
  std::size_t columns_ = 0;
  /// The first row, where it is no header and was not handed out yet.
  const Cells* first_ = nullptr;
};

/// As read_cell(), with the source's decimal character.
Cell read_number(const CsvSource& source, std::string_view cell, float& value);

/// The use of each column.
struct CsvColumns {
  /// The indices of the columns; the number of all columns where there is no such column.
  std::size_t label = 0;
  std::size_t id = 0;
  /// The columns that make features: in the file's order, or in that of the training data.
  std::vector<std::size_t> features;
  /// For each feature column: whether an option says that it holds categories.
  std::vector<bool> is_category;
};

/// Finds the use of each column by the source's options, and by the names of the training data's
/// columns.
Result<CsvColumns> columns_of(const CsvRows& rows, const CsvSource& source);

}  // namespace starling::models
