/// Prints and parses an encoding, which says how a text file's columns became features, as JSON for
/// the metadata of a model file. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/encoding.hpp"

namespace starling::program {

/// Prints names as a JSON array: `["setosa", "versicolor"]`.
[[nodiscard]] std::string print_names(const std::vector<std::string>& names);
/// Refuses a text that is not a JSON array of distinct strings.
[[nodiscard]] Result<std::vector<std::string>> parse_names(const std::string& text);

/// Prints `{"label": "species", "missing": "mean", "columns": [{"name": "age", "mean": 38.5},
/// {"name": "city", "categories": ["Berlin", "Paris"]}]}`. The keys "missing" and "mean" are left
/// out unless missing values are replaced by the column's mean.
[[nodiscard]] std::string print_encoding(const models::Encoding& encoding);
/// Reads the text that print_encoding() returns. An Error says what in the text is not valid.
[[nodiscard]] Result<models::Encoding> parse_encoding(const std::string& text);

}  // namespace starling::program
