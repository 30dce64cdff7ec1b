#include "starling/tools/report/table.hpp"

#include <algorithm>

#include "starling/base/check.hpp"

namespace starling::program {
namespace {

using Row = std::vector<std::string>;

/// Counts code points, most of which take one column of a terminal: continuation bytes of UTF-8 do
/// not count.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::vector<std::size_t> widths_of(const TextTable& table) {
  std::vector<std::size_t> widths;
  for (const auto& cell : table.head) widths.push_back(width_of(cell));
  for (const Row& row : table.rows) {
    STARLING_CHECK(row.size() == widths.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  return widths;
}

std::string plain_row(const Row& row, const std::vector<std::size_t>& widths, bool holds_words) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string gap(widths[i] - width_of(row[i]), ' ');
    if (i > 0) line += "  ";
    line += i == 0 || holds_words ? row[i] + gap : gap + row[i];
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + "\"";
}

std::string csv_row(const Row& row) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(row[i]);
  return line + "\n";
}

std::string markdown_row(const Row& row) {
  std::string line = "|";
  for (const auto& cell : row) {
    line += " ";
    for (const char c : cell)
      if (c == '|')
        line += "\\|";
      else if (c == '\n')
        line += "<br>";
      else if (c != '\r')
        line += c;
    line += " |";
  }
  return line + "\n";
}

std::string html_row(const Row& row, const std::string& tag) {
  const std::string begin = "<" + tag + ">";
  const std::string end = "</" + tag + ">";
  std::string line = "<tr>";
  for (const auto& cell : row) {
    line += begin;
    line += html_escaped(cell);
    line += end;
  }
  return line + "</tr>\n";
}

}  // namespace

std::string plain_text(const TextTable& table) {
  const auto widths = widths_of(table);
  std::string text = plain_row(table.head, widths, table.holds_words);
  for (const Row& row : table.rows) text += plain_row(row, widths, table.holds_words);
  return text;
}

std::string csv_text(const TextTable& table) {
  std::string text = csv_row(table.head);
  for (const Row& row : table.rows) text += csv_row(row);
  return text;
}

std::string markdown_text(const TextTable& table) {
  std::string text = markdown_row(table.head) + "|";
  for (std::size_t i = 0; i < table.head.size(); ++i)
    text += i == 0 || table.holds_words ? " --- |" : " ---: |";
  text += "\n";
  for (const Row& row : table.rows) text += markdown_row(row);
  return text;
}

std::string html_text(const TextTable& table) {
  const std::string kind = table.holds_words ? " class=\"words\"" : "";
  std::string text =
      "<table" + kind + ">\n<thead>\n" + html_row(table.head, "th") + "</thead>\n<tbody>\n";
  for (const Row& row : table.rows) text += html_row(row, "td");
  return text + "</tbody>\n</table>\n";
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace starling::program
