/// A folder that a command writes files into. Blocking; one thread at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "starling/app/file_use.hpp"
#include "starling/app/sim/plot.hpp"
#include "starling/base/result.hpp"

namespace starling::app {

/// The files of a plot: data, script and picture.
[[nodiscard]] std::vector<std::string> plot_files(const std::string& name);

/// `folder`/`name`.
[[nodiscard]] std::string inside(const std::string& folder, const std::string& name);

/// Makes the folder where there is none, and refuses it where a file of `names` cannot be written
/// into it or is one of `taken`. `place` is where the folder was named.
[[nodiscard]] Result<void> prepare_folder(const FileUse& folder, std::span<const std::string> names,
                                          std::span<const FileUse> taken);

/// Writes the data and the script of a plot.
[[nodiscard]] Result<void> write_plot_source(const std::string& folder, const Plot& plot);

}  // namespace starling::app
