/// Writes the files of a report: its plots, and the report as a Markdown page. Blocking. Not
/// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"

namespace starling::program {

/// The name of the folder beside a page that holds its pictures.
inline constexpr const char* pictures_folder = "pictures";

/// Writes the data and the script of each plot into `folder`.
[[nodiscard]] Result<void> write_plot_sources(const std::vector<Plot>& plots,
                                              const std::string& folder);

/// Draws each plot into the file NAME.svg in `folder`, and sets the SVG of the document's picture
/// with the same name. Returns an Error if gnuplot is not installed. Requires: each picture of the
/// document has a plot.
[[nodiscard]] Result<void> draw_all(Document& document, const std::vector<Plot>& plots,
                                    const std::string& folder);

/// Writes the Markdown page `folder`/`name`, and its pictures into `folder`/`pictures_folder`,
/// which must exist.
[[nodiscard]] Result<void> write_page(const Document& document, const std::string& folder,
                                      const std::string& name);

}  // namespace starling::program
