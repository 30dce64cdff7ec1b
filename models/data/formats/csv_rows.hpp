/// Reads the rows of a text file as cells and finds the columns that hold labels, row names and
/// features. Internal to models/data; users call load(). Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/input.hpp"
#include "starling/base/result.hpp"
#include "starling/models/data/formats/cell.hpp"
#include "starling/models/data/formats/input_file.hpp"
#include "starling/models/data/source/source.hpp"

namespace starling::models {

/// Splits lines into cells and removes the quotes around a cell. A quoted cell may contain
/// separators, and quotes if each is written twice.
class CellSplitter {
 public:
  explicit CellSplitter(char separator = ',') : separator_(separator) {}

  /// Returns the cells of `line`, valid until the next call, or an error for a faulty quote.
  Result<std::vector<std::string_view>*> operator()(std::string_view line);

 private:
  /// Removes one quoted cell from the front of `rest` and returns it without its quotes. Afterwards
  /// `rest` is empty or starts with the separator.
  Result<std::string_view> take_quoted_cell(std::string_view& rest);

  /// The characters that are skipped around a cell.
  [[nodiscard]] std::string_view blanks() const { return separator_ == '\t' ? " " : " \t"; }

  char separator_;
  std::vector<std::string_view> cells_;
  /// The content of the line's quoted cells, without their quotes. Reserved for the whole line, so
  /// that views into it stay valid.
  std::string unquoted_;
};

/// Reads the rows of one file from the first to the last.
class CsvRows {
 public:
  using Cells = std::vector<std::string_view>;

  /// Opens the file and reads its first row. `source` must outlive the result.
  static Result<std::unique_ptr<CsvRows>> open(const CsvSource& source);

  /// Returns the next row's cells, as many as columns(), valid until the next call; null at the end
  /// of the file.
  Result<const Cells*> next();

  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  /// The names of the columns; empty if the file has no header.
  [[nodiscard]] const std::vector<std::string>& header() const noexcept { return header_; }
  /// Returns "FILE:LINE" of the row that was read last.
  [[nodiscard]] std::string location() const { return lines_.location(); }
  [[nodiscard]] const std::string& path() const noexcept { return lines_.path(); }
  [[nodiscard]] Error error(const std::string& what) const {
    return Error{location() + ": " + what};
  }
  /// Returns the column's number and name, such as "column 3 'age'", for messages.
  [[nodiscard]] std::string name_of(std::size_t column) const;
  /// Returns true if the file is a pipe, which cannot be read a second time.
  [[nodiscard]] bool is_pipe() const noexcept { return is_pipe_; }

 private:
  CsvRows(const CsvSource& source, InputFile file);
  /// Reads the first row into header_ if it is a header; else keeps it for next().
  Result<void> read_first();
  /// Returns whether the training data show that `first`, the first row, is a header: true if
  /// `first` names all columns of the training data, false if the file of the training data has no
  /// header, nullopt if the training data do not show it.
  [[nodiscard]] std::optional<bool> training_header(const Cells& first) const;
  /// Returns the cells of the next line that is neither blank nor a comment; null at the end of the
  /// file.
  Result<const Cells*> read_line();
  /// Returns true if `blank`, a line of blanks, is a row of empty cells whose separators are tabs.
  [[nodiscard]] bool is_row_of_empty_cells(std::string_view blank) const;
  /// Refuses a line whose cells would take too much memory.
  [[nodiscard]] Result<void> check_memory(std::string_view line) const;

  const CsvSource& source_;
  bool is_pipe_;
  LineReader lines_;
  ReadBudget budget_;
  char separator_ = ',';
  CellSplitter split_;
  std::vector<std::string> header_;
  std::size_t columns_ = 0;
  /// The first row if it is not a header and next() has not returned it yet; else null.
  const Cells* pending_row_ = nullptr;
};

/// Does what read_cell() does, but with the source's decimal character.
CellKind read_number(const CsvSource& source, std::string_view cell, float& value);

/// The columns of labels, row names and features.
struct CsvColumns {
  /// The index of the column of labels; the number of columns if there is none.
  std::size_t label = 0;
  /// The index of the column of row names; the number of columns if there is none.
  std::size_t id = 0;
  /// The indices of the columns that make features, in the order of the file or of the training
  /// data.
  std::vector<std::size_t> features;
  /// For each element of `features`: whether the option category=NAME names its column.
  std::vector<bool> is_category;
};

/// Finds the columns by the source's options and, for test data, by the names of the training
/// data's columns.
Result<CsvColumns> find_columns(const CsvRows& rows, const CsvSource& source);

}  // namespace starling::models
