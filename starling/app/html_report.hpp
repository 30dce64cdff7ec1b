/// The page of `--report`: a job's curves, configuration and figures as one HTML file that needs no
/// other file, no network and no JavaScript. Drawn by gnuplot. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "starling/app/curves.hpp"
#include "starling/app/report.hpp"
#include "starling/app/sim/document.hpp"
#include "starling/app/sim/plot.hpp"
#include "starling/base/result.hpp"

namespace starling::app {

/// Refuses a path where no file can be written, and a machine without gnuplot.
[[nodiscard]] Result<void> check_report(const std::string& path);

/// The curves of a job; those that would show nothing are left out.
[[nodiscard]] std::vector<Plot> report_plots(const Running& job, const Curves& curves);

/// The page without its curves' pictures.
[[nodiscard]] Document report_page(const Ended& ended, const Curves& curves);

/// Replaces the file as a whole. Where gnuplot fails the page says so and has all figures.
[[nodiscard]] Result<void> write_report(const std::string& path, const Ended& ended,
                                        const Curves& curves);

}  // namespace starling::app
