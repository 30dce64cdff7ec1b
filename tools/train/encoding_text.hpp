/// How a text file's columns became features, as JSON text in a model file. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/encoding.hpp"

namespace starling::program {

/// `["setosa", "versicolor"]`.
[[nodiscard]] std::string print_names(const std::vector<std::string>& names);
/// Refuses texts that are no array of different strings.
[[nodiscard]] Result<std::vector<std::string>> parse_names(const std::string& text);

/// `{"label": "species", "missing": "mean", "columns": [{"name": "age", "mean": 38.5},
/// {"name": "city", "categories": ["Berlin", "Paris"]}]}`; "mean" only where missing values are
/// filled.
[[nodiscard]] std::string print_encoding(const models::Encoding& encoding);
[[nodiscard]] Result<models::Encoding> parse_encoding(const std::string& text);

}  // namespace starling::program
