/// Writes the files of a report: its plots drawn, and the report as a page of Markdown. Blocking;
/// one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"

namespace starling::program {

/// The folder of a page's pictures, beside it.
inline constexpr const char* pictures_folder = "pictures";

/// Writes the data and the script of each plot into `folder`.
[[nodiscard]] Result<void> write_plot_sources(const std::vector<Plot>& plots,
                                              const std::string& folder);

/// Draws the plots into `folder` and puts the drawings where the document has pictures; without
/// gnuplot there are no drawings. Requires: a plot for each picture.
[[nodiscard]] Result<void> draw_all(Document& document, const std::vector<Plot>& plots,
                                    const std::string& folder);

/// Writes `folder`/`name` and the pictures below it.
[[nodiscard]] Result<void> write_page(const Document& document, const std::string& folder,
                                      const std::string& name);

}  // namespace starling::program
