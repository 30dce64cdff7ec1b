/// Makes errors for data sources that cannot be read as the user wrote them. The errors say what
/// would be valid. Looks in the file system whether a file or folder exists.
#pragma once

#include <span>
#include <string>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"

namespace starling::program {

/// Returns how a user can write the file or folder `path` as a data source, such as "npz:FILE".
[[nodiscard]] std::string suggest_sources(const std::string& path);

/// Returns the error for a source whose name is not one of `names`. If the name is that of a file,
/// the error says how to write the file as a source, or which line of Python converts the file.
[[nodiscard]] Error unknown_data(const Spec& spec, std::span<const std::string> names);

/// Returns an Error if the name of a file that `source` reads as text shows another format.
[[nodiscard]] Result<void> check_text_file(const std::string& source, const std::string& path);

/// Returns the part of an error that says how the user gives labels to data of a source; `text` is
/// the source.
[[nodiscard]] std::string valid_labels(const std::string& text);

}  // namespace starling::program
