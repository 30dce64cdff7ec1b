/// A table as a value, which is written for a terminal or as CSV, Markdown or HTML. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling::program {

/// The first column names the rows. The others hold numbers and are aligned to the right.
struct TextTable {
  std::vector<std::string> head;
  /// Each row has as many cells as the head.
  std::vector<std::vector<std::string>> rows{};
  /// True if all columns hold words and are aligned to the left.
  bool holds_words = false;
};

/// Returns a line for the head and one for each row, with aligned columns and two spaces between
/// them.
[[nodiscard]] std::string plain_text(const TextTable& table);

/// Returns CSV as in RFC 4180: commas between cells, and quotes around a cell that needs them.
/// Lines end with \n.
[[nodiscard]] std::string csv_text(const TextTable& table);

/// Returns a table of GitHub's Markdown. A new line in a cell becomes <br>.
[[nodiscard]] std::string markdown_text(const TextTable& table);
[[nodiscard]] std::string html_text(const TextTable& table);

/// Returns `text` with the characters that HTML would take for markup written as entities.
[[nodiscard]] std::string html_escaped(std::string_view text);

}  // namespace starling::program
