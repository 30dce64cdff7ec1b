/// The report of a barrier study as a document, with its plots, and its data as CSV and JSON. Plain
/// values and pure functions; thread-safe to read and call.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/repro/barriers/claims.hpp"
#include "starling/tools/repro/barriers/study.hpp"

namespace starling::program {

/// A report with the plots whose pictures it shows.
struct StudyReport {
  Document document;
  std::vector<ComparedClaim> claims{};
  std::vector<Plot> plots{};
};

/// Returns the report; its pictures are not drawn yet. `flags` are the flags with which the command
/// makes this report again.
[[nodiscard]] StudyReport report_of(const BarrierStudy& study, const std::string& flags);

/// Return the sections of the report: the simulated clusters, the live runs, the map.
[[nodiscard]] std::vector<Section> cluster_sections(const BarrierStudy& study,
                                                    std::vector<Plot>& plots);
[[nodiscard]] Section live_section(const BarrierStudy& study, std::vector<Plot>& plots);
[[nodiscard]] Section map_section(const BarrierStudy& study, std::vector<Plot>& plots);

/// Returns true if plots of many barriers have a curve of this barrier. A plot has only eight
/// colours, so the curves of fluent and pbsp are left out: they are close to those of ssp and bsp.
[[nodiscard]] bool is_plotted(const std::string& barrier);

/// Adds a plot to `plots`, and returns its picture, which is not drawn yet.
[[nodiscard]] Picture add_plot(std::vector<Plot>& plots, Plot plot, const std::string& caption);

/// Return the data as CSV: a row for each simulated run, each live run, each barrier on a cluster
/// of the map.
[[nodiscard]] std::string study_runs_csv(const BarrierStudy& study);
[[nodiscard]] std::string live_csv(const BarrierStudy& study);
[[nodiscard]] std::string map_csv(const BarrierStudy& study);
/// Returns one JSON object with the claims and the live runs.
[[nodiscard]] std::string study_json(const BarrierStudy& study,
                                     const std::vector<ComparedClaim>& claims);

}  // namespace starling::program
