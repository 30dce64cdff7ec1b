/// Makes helpful errors about data that cannot be read as the user named it. Asks the file system
/// whether a file or folder exists.
#pragma once

#include <span>
#include <string>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"

namespace starling::program {

/// Returns the ways to write a file or folder as a source of data, such as "npz:FILE".
[[nodiscard]] std::string suggest_sources(const std::string& path);

/// Returns the error for a source whose name is not one of `names`. If the name is a file, the
/// error says how to write it as a source, or which line of Python converts it.
[[nodiscard]] Error unknown_data(const Spec& spec, std::span<const std::string> names);

/// Refuses to read a file as text if its name shows another format.
[[nodiscard]] Result<void> check_text_file(const std::string& source, const std::string& path);

/// Returns the part of an error that says how data of this source gets labels.
[[nodiscard]] std::string valid_labels(const std::string& text);

}  // namespace starling::program
