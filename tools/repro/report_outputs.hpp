/// The outputs of a report: one HTML file, a folder beside it with its data and plots, and a page
/// of Markdown if the user asks for one. Blocking. Not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/report/report_folder.hpp"

namespace starling::program {

struct ReportOutputs {
  /// The HTML file.
  std::string out;
  /// The folder of the data. Empty: a folder beside the report with the report's name, but with
  /// -data in place of its extension.
  std::string data;
  /// A folder for the report as a Markdown page with its pictures; empty for none.
  std::string markdown;
  /// The name of the Markdown page.
  std::string page;
};

/// A file of the data: its name and its content.
using DataFiles = std::vector<std::pair<std::string, std::string>>;

/// Makes the folders of the outputs, which are removed again unless files are written into them.
/// `names` are the names of the data files. Returns an Error if an output cannot be written, or
/// would overwrite another one.
[[nodiscard]] Result<std::vector<ReportFolder>> prepare_report(
    const ReportOutputs& outputs, const std::vector<std::string>& names);

/// Writes the data, draws the plots into the document, writes the document, and prints the names of
/// the outputs. Returns the exit code of the command: job_failed if an output could not be written,
/// or if the pictures could not be drawn although gnuplot is installed.
[[nodiscard]] Result<int> finish_report(const ReportOutputs& outputs, const DataFiles& files,
                                        Document& document, const std::vector<Plot>& plots);

}  // namespace starling::program
