/// The page of `--report`: a job's curves, configuration and figures as one HTML file that needs no
/// other file, no network and no JavaScript. Drawn by gnuplot. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/train/curves.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// Refuses a path where no file can be written, and a machine without gnuplot.
[[nodiscard]] Result<void> check_report(const std::string& path);

/// The curves of a job; those that would show nothing are left out.
[[nodiscard]] std::vector<Plot> report_plots(const Running& job, const Curves& curves);

/// The page without its curves' pictures.
[[nodiscard]] Document report_page(const Ended& ended, const Curves& curves);

/// Replaces the file as a whole. Where gnuplot fails the page says so and has all figures.
[[nodiscard]] Result<void> write_report(const std::string& path, const Ended& ended,
                                        const Curves& curves);

}  // namespace starling::program
