/// Writes the page of `--report`: a job's curves, configuration and measured figures as one HTML
/// file that needs no other file, no network and no JavaScript. gnuplot draws the curves. Not
/// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/train/curves.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// Returns an error if the file cannot be written, or if gnuplot is not installed.
[[nodiscard]] Result<void> check_report(const std::string& path);

/// Returns the plots of a job's curves, without those that have no points.
[[nodiscard]] std::vector<Plot> report_plots(const ResolvedJob& job, const Curves& curves);

/// Returns the page, whose section "Curves" has no pictures yet.
[[nodiscard]] Document report_page(const EndedJob& ended, const Curves& curves);

/// Draws the curves and replaces the file `path` as a whole. If gnuplot fails, the page says so
/// where the picture would be, and still has all figures in tables.
[[nodiscard]] Result<void> write_report(const std::string& path, const EndedJob& ended,
                                        const Curves& curves);

}  // namespace starling::program
