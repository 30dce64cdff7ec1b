/// Lines as columns of text and numbers. Thread-safe if each thread has an object of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// The characters between the columns of a line.
enum class Separator {
  /// A comma, as in CSV: cells may be in quotes. No cell reaches beyond its line.
  comma,
  tab,
  /// One or more spaces or tabs.
  space,
};

/// How a flow reads its files.
struct ColumnFormat {
  Separator separator = Separator::space;
  /// True if the first line of each file names the columns.
  bool has_header = false;

  /// The flags `separator` and `header`.
  static std::vector<FlowOption> flow_options();
};

/// The files of one table, and the format that all of them have.
struct TableFiles {
  /// At least one. Files that are skipped are left out; those without a line come last.
  std::vector<std::string> files;
  ColumnFormat format;
};

/// The flags of ColumnFormat as they were given.
struct ColumnFlags {
  /// Empty: the names of the files decide.
  std::string separator;
  bool has_header = false;

  static ColumnFlags parse(SpecReader& options);
  /// Returns the files that can be opened, and their format. Returns an Error that names a file if
  /// the file has another separator or header than the first one, or cannot be opened. A file that
  /// cannot be opened is left out instead if `skips_unreadable` and another file can be opened.
  [[nodiscard]] Result<TableFiles> open(const std::vector<std::string>& files,
                                        bool skips_unreadable) const;
  /// Returns the format of `file`. If `separator` is empty, the name of the file without .gz
  /// decides: commas for .csv, tabs for .tsv, and otherwise spaces.
  [[nodiscard]] ColumnFormat format_of(const std::string& file) const;
};

/// Returns the columns of a line. Throws std::invalid_argument for a faulty quote.
[[nodiscard]] std::vector<std::string> split_columns(std::string_view line, Separator separator);

/// Returns a line with these columns: CSV for commas, and tabs between the columns otherwise.
[[nodiscard]] std::string join_columns(const std::vector<std::string>& columns,
                                       Separator separator);

/// Returns true if there are only spaces and tabs in the line.
[[nodiscard]] bool is_blank(std::string_view line);

/// Returns column `index`, from 0. Throws std::invalid_argument if the line has too few.
[[nodiscard]] const std::string& column_at(const std::vector<std::string>& columns,
                                           std::size_t index);

/// Reads the finite number in column `index`. Throws std::invalid_argument if it is not one.
[[nodiscard]] double number_at(const std::vector<std::string>& columns, std::size_t index);

/// A key that orders numbers, also whole numbers with an absolute value from 2^53 to 2^63, which a
/// double rounds. It holds the number and 0, or for these whole numbers the number without its last
/// 11 bits, and these bits.
using NumberKey = std::tuple<double, std::int64_t>;
/// Reads the number in column `index` as number_at() does.
[[nodiscard]] NumberKey number_key_at(const std::vector<std::string>& columns, std::size_t index);

/// Returns the header of a file, or, without a header, its first line that is not blank, as
/// columns. Returns no columns if there is no such line.
[[nodiscard]] Result<std::vector<std::string>> first_columns(const std::string& file,
                                                             const ColumnFormat& format);

/// Returns the index, from 0, of the column that `text` names: by its number, from 1, or by its
/// name if the files have a header, which is read from `file`. `flag` is for errors.
[[nodiscard]] Result<std::size_t> find_column(const std::string& flag, const std::string& text,
                                              const std::string& file, const ColumnFormat& format);

}  // namespace starling::program
