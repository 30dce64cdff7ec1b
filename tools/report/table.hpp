/// A table as a value, and how it is written: for a terminal, as CSV, Markdown or HTML. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling::program {

/// The first column names the rows; the others hold figures and stand to the right.
struct TextTable {
  std::vector<std::string> head;
  /// Each row is as long as the head.
  std::vector<std::vector<std::string>> rows{};
  /// All columns hold words and stand to the left.
  bool is_words = false;
};

/// Columns under each other, two spaces between them, a line for each row.
[[nodiscard]] std::string plain_text(const TextTable& table);

/// RFC 4180: commas, and quotes around what holds one. Lines end with \n.
[[nodiscard]] std::string csv_text(const TextTable& table);

[[nodiscard]] std::string markdown_text(const TextTable& table);
[[nodiscard]] std::string html_text(const TextTable& table);

/// Returns `text` with the characters that HTML would take for markup written as entities.
[[nodiscard]] std::string html_escaped(std::string_view text);

}  // namespace starling::program
