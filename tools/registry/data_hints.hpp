/// Errors about data that were named in a way that cannot be read. Pure but for looking
/// whether a file or folder is there.
#pragma once

#include <span>
#include <string>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"

namespace starling::program {

/// How a file or folder of data may be written as a source: "csv:FILE, ...".
[[nodiscard]] std::string forms_of_data(const std::string& path);

/// Returns the error for a source whose name is none of `names`: how a file of that name is read,
/// or which line of Python makes one that is.
[[nodiscard]] Error unknown_data(const Spec& spec, std::span<const std::string> names);

/// Refuses to read a file as text whose name says that it is of another format.
[[nodiscard]] Result<void> check_text_file(const std::string& source, const std::string& path);

/// Says how the data of this source get labels.
[[nodiscard]] std::string valid_labels(const std::string& text);

}  // namespace starling::program
