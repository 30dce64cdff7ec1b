/// A report as a value: sections of paragraphs, tables and pictures. It is written as one HTML file
/// that needs no other file, or as a Markdown page beside its pictures. Any thread.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "starling/tools/report/table.hpp"

namespace starling::program {

struct Paragraph {
  std::string text;
};

/// A picture. If `svg` is empty, an HTML page shows the caption and says in which file the data is,
/// and a Markdown page shows the caption alone.
struct Picture {
  /// The name of its files without their extension, different for each picture of a document.
  std::string name;
  std::string caption;
  std::string svg;
};

/// A long table that an HTML page hides until the reader opens it.
struct FoldedTable {
  /// Different for each element of the page.
  std::string name;
  std::string summary;
  TextTable table;
};

using Block = std::variant<Paragraph, TextTable, Picture, FoldedTable>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
  /// True if its pictures are shown side by side when the page is wide enough.
  bool is_gallery = false;
};

struct Document {
  std::string title;
  std::vector<Section> sections;
};

/// Returns an HTML page that contains its pictures and style, and loads nothing.
[[nodiscard]] std::string html_text(const Document& document);

/// Returns a Markdown page whose pictures are the files `folder`/NAME.svg.
[[nodiscard]] std::string markdown_text(const Document& document, const std::string& folder);

}  // namespace starling::program
