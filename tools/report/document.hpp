/// A report as a value: sections of paragraphs, tables and pictures. It is written as one HTML file
/// that needs no other file, or as a Markdown page beside its pictures. Thread-safe.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "starling/tools/report/table.hpp"

namespace starling::program {

struct Paragraph {
  std::string text;
};

/// A picture. If `svg` is empty, an HTML page shows the caption and names the file with the data,
/// and a Markdown page shows the caption alone.
struct Picture {
  /// The name of the picture's files without their extension; unique in the document.
  std::string name;
  std::string caption;
  std::string svg;
};

/// A long table that an HTML page hides until the reader opens it.
struct FoldedTable {
  /// The id of the HTML element; unique on the page.
  std::string name;
  std::string summary;
  TextTable table;
};

using Block = std::variant<Paragraph, TextTable, Picture, FoldedTable>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
  /// True if an HTML page shows the pictures side by side where it is wide enough.
  bool is_gallery = false;
};

struct Document {
  std::string title;
  std::vector<Section> sections;
};

/// Returns an HTML page that contains its pictures and its style, and loads no other file.
[[nodiscard]] std::string html_text(const Document& document);

/// Returns a Markdown page whose pictures are the files `folder`/NAME.svg.
[[nodiscard]] std::string markdown_text(const Document& document, const std::string& folder);

}  // namespace starling::program
