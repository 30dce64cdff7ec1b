/// Writes the page of `--report`: a job's curves, configuration and figures as one HTML file that
/// needs no other file, no network and no JavaScript. gnuplot draws the curves. One thread at a
/// time.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/train/curves.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// Refuses a path to which no file can be written, and a machine without gnuplot.
[[nodiscard]] Result<void> check_report(const std::string& path);

/// Returns the plots of a job's curves, without those that have no points.
[[nodiscard]] std::vector<Plot> report_plots(const ResolvedJob& job, const Curves& curves);

/// Returns the page without the pictures of its curves.
[[nodiscard]] Document report_page(const EndedJob& ended, const Curves& curves);

/// Replaces the file as a whole. If gnuplot fails, the page says so and still has all figures.
[[nodiscard]] Result<void> write_report(const std::string& path, const EndedJob& ended,
                                        const Curves& curves);

}  // namespace starling::program
