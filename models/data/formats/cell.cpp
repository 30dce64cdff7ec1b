#include "starling/models/data/formats/cell.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace starling::models {

CellKind read_cell(std::string_view cell, float& value) {
  if (cell.size() > 1 && cell[0] == '+' && cell[1] != '-') cell.remove_prefix(1);
  double number = 0;
  const char* const end = cell.data() + cell.size();
  const auto [stop, fault] = std::from_chars(cell.data(), end, number);
  if (stop != end || fault == std::errc::invalid_argument) return CellKind::text;
  if (fault == std::errc::result_out_of_range &&
      (cell.find("e-") != cell.npos || cell.find("E-") != cell.npos)) {
    value = 0;  // the number is nearer to 0 than any double
    return CellKind::number;
  }
  const auto narrow = static_cast<float>(number);
  if (fault != std::errc{} || !std::isfinite(narrow)) return CellKind::not_finite;
  value = narrow;
  return CellKind::number;
}

bool is_missing(std::string_view cell) {
  constexpr std::array<std::string_view, 12> words{"",    "?",   "NA",   "N/A",  "n/a",  "nan",
                                                   "NaN", "NAN", "null", "NULL", "None", "<NA>"};
  return cell.size() <= 4 && std::ranges::find(words, cell) != words.end();
}

std::string in_quotes(std::string_view cell) {
  constexpr std::size_t shown_max = 40;
  std::string text{cell.substr(0, shown_max)};
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return "'" + text + (cell.size() > shown_max ? "...'" : "'");
}

}  // namespace starling::models
