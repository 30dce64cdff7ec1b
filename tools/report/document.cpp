#include "starling/tools/report/document.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace starling::program {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

/// The style sheet of a page, which is light or dark like the reader's system. The style replaces
/// the black and the white of gnuplot's drawings by the page's text and background colours.
constexpr const char* style =
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;"
    "color:CanvasText;background:Canvas}"
    "h1,h2{line-height:1.2}h1{font-size:1.6rem;overflow-wrap:anywhere}h2{margin-top:2.5rem}"
    "table{border-collapse:collapse;margin:1rem 0;font-size:.9rem}"
    "th,td{border-bottom:1px solid #8885;padding:.25rem .7rem;text-align:right}"
    "th:first-child,td:first-child,.words th,.words td{text-align:left}.words td{overflow-wrap:"
    "anywhere}.words td:first-child{white-space:nowrap}th{border-bottom:2px solid #888}"
    "details{margin:1rem 0;overflow-x:auto}summary{cursor:pointer}"
    "figure{margin:1rem 0}figcaption{opacity:.75;font-size:.9rem}svg{max-width:100%;height:auto}"
    ".gallery{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));"
    "gap:0 1rem}.gallery h2{grid-column:1/-1}"
    "svg{color:CanvasText}svg g[color=black]{color:CanvasText}svg [fill=black]{fill:CanvasText}"
    "svg [stroke=black]{stroke:CanvasText}svg rect[fill=\"#ffffff\"]{fill:none}"
    ".gridline{stroke-opacity:.4}";

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// Returns the picture's <svg> element alone. Puts the picture's name before the ids in it, because
/// gnuplot uses the same ids in every drawing.
std::string inline_svg(const Picture& picture) {
  std::string svg = picture.svg.substr(std::min(picture.svg.find("<svg"), picture.svg.size()));
  constexpr std::array<std::string_view, 5> names{"gpDot", "gpPt", "textbox", "greybox",
                                                  "gnuplot_canvas"};
  for (const std::string_view name : names) {
    for (const char quote : {'"', '\''})
      replace_all(svg, std::string{"id="} + quote + std::string{name},
                  std::string{"id="} + quote + picture.name + "-" + std::string{name});
    replace_all(svg, "#" + std::string{name}, "#" + picture.name + "-" + std::string{name});
  }
  return svg;
}

std::string html_block(const Block& block) {
  return std::visit(
      Overloaded{
          [](const Paragraph& p) { return "<p>" + html_escaped(p.text) + "</p>\n"; },
          [](const TextTable& table) { return html_text(table); },
          [](const FoldedTable& d) {
            return "<details id=\"" + d.name + "\">\n<summary>" + html_escaped(d.summary) +
                   "</summary>\n" + html_text(d.table) + "</details>\n";
          },
          [](const Picture& p) {
            const std::string picture =
                p.svg.empty()
                    ? "<p>(not drawn: gnuplot is needed; its data is in " + p.name + ".dat)</p>\n"
                    : inline_svg(p);
            const std::string caption =
                p.caption.empty() ? ""
                                  : "<figcaption>" + html_escaped(p.caption) + "</figcaption>\n";
            return "<figure id=\"" + p.name + "\">\n" + picture + caption + "</figure>\n";
          },
      },
      block);
}

/// Escapes the characters that Markdown would take for emphasis or HTML.
std::string markdown_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '_' || c == '<') out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_block(const Block& block, const std::string& folder) {
  return std::visit(Overloaded{
                        [](const Paragraph& p) { return markdown_escaped(p.text) + "\n"; },
                        [](const TextTable& table) { return markdown_text(table); },
                        [](const FoldedTable& d) {
                          return markdown_escaped(d.summary) + "\n\n" + markdown_text(d.table);
                        },
                        [&](const Picture& p) {
                          return p.svg.empty() ? markdown_escaped(p.caption) + "\n"
                                               : "![" + markdown_escaped(p.caption) + "](" +
                                                     folder + "/" + p.name + ".svg)\n";
                        },
                    },
                    block);
}

}  // namespace

std::string html_text(const Document& document) {
  std::string text =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
      html_escaped(document.title) + "</title>\n<style>" + style +
      "</style>\n</head>\n<body>\n<h1>" + html_escaped(document.title) + "</h1>\n";
  for (const Section& section : document.sections) {
    text += std::string{section.is_gallery ? "<section class=\"gallery\">" : "<section>"} +
            "\n<h2>" + html_escaped(section.title) + "</h2>\n";
    for (const Block& block : section.blocks) text += html_block(block);
    text += "</section>\n";
  }
  return text + "</body>\n</html>\n";
}

std::string markdown_text(const Document& document, const std::string& folder) {
  std::string text = "# " + document.title + "\n";
  for (const Section& section : document.sections) {
    text += "\n## " + section.title + "\n";
    for (const Block& block : section.blocks) text += "\n" + markdown_block(block, folder);
  }
  return text;
}

}  // namespace starling::program
