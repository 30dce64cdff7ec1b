/// A report as a value: sections of paragraphs, tables and pictures, written as one HTML file that
/// needs no other, or as a Markdown page beside its pictures. Any thread.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "starling/tools/report/table.hpp"

namespace starling::program {

struct Paragraph {
  std::string text;
};

/// A picture. Without SVG the caption stands alone, with a note on where the data is.
struct Picture {
  /// The stem of its file's name, different for each picture of a document.
  std::string name;
  std::string caption;
  std::string svg;
};

/// A long table that is folded away until the reader opens it.
struct Details {
  /// Differs for each element of the page.
  std::string name;
  std::string summary;
  TextTable table;
};

using Block = std::variant<Paragraph, TextTable, Picture, Details>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
  /// Its pictures stand side by side where the page is wide enough.
  bool is_gallery = false;
};

struct Document {
  std::string title;
  std::vector<Section> sections;
};

/// Returns a page that contains its pictures and style, and loads nothing from outside.
[[nodiscard]] std::string html_text(const Document& document);

/// Returns a page whose pictures are the files `folder`/NAME.svg.
[[nodiscard]] std::string markdown_text(const Document& document, const std::string& folder);

}  // namespace starling::program
