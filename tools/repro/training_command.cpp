#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <span>
#include <vector>

#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/report/report_files.hpp"
#include "starling/tools/report/report_folder.hpp"
#include "starling/tools/repro/repro_data.hpp"
#include "starling/tools/repro/training_report.hpp"
#include "starling/tools/repro/training_runs.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

constexpr const char* report_name = "report.html";
constexpr const char* training_page = "repro-psp-train.md";

/// Returns the names of all files that a report can have.
std::vector<std::string> report_files() {
  std::vector<std::string> names{report_name, "runs.csv", "curves.csv", "claims.csv",
                                 "summary.json"};
  for (const char* plot : {over_updates_plot, over_time_plot, one_seed_plot})
    for (std::string& file : plot_file_names(plot)) names.push_back(std::move(file));
  return names;
}

/// Returns an Error if the folder holds a file that is not among `report_files`.
Result<void> refuse_other_files(const std::string& folder,
                                const std::vector<std::string>& report_files) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return {};
  for (std::filesystem::directory_iterator entry{folder, error}, end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (std::ranges::find(report_files, name) == report_files.end())
      return Error{
          fmt::format("{}: holds '{}', which is not a file of a report; valid: a new or an empty "
                      "folder, or one of an earlier report",
                      folder, name)};
  }
  if (error) return Error{folder + ": cannot be read: " + error.message()};
  return {};
}

/// The folders of the outputs, each before the folder that contains it. They are destroyed in this
/// order: a folder must be empty to be removed, so the folders in it have to be removed first.
using ReportFolders = std::list<ReportFolder>;

/// Makes the folders of the outputs. Returns an Error if an output cannot be written or would
/// overwrite another one, or if a file that is not of a report is in the report's folder.
Result<ReportFolders> prepare_outputs(const TrainingOptions& options) {
  const std::vector<std::string> files = report_files();
  const FileUse out{"--out", options.out};
  if (auto fits = refuse_other_files(out.path, files); !fits)
    return std::move(fits).error().within(out.location);
  ReportFolders folders;
  auto report = ReportFolder::prepare(out, files, {});
  if (!report) return std::move(report).error();
  folders.push_front(*std::move(report));
  if (options.markdown.empty()) return folders;
  const std::vector<std::string> pages{training_page};
  for (const auto& [folder, names] :
       {std::pair{options.markdown, pages},
        std::pair{path_inside(options.markdown, pictures_folder), std::vector<std::string>{}}}) {
    auto prepared = ReportFolder::prepare({"--markdown", folder}, names, std::span{&out, 1});
    if (!prepared) return std::move(prepared).error();
    folders.push_front(*std::move(prepared));
  }
  return folders;
}

/// Writes the report and its data. Sets `is_complete` to false if the pictures could not be drawn
/// although gnuplot is installed.
Result<void> write_all(const Training& training, bool& is_complete) {
  const std::string& out = training.options.out;
  ExperimentResults results;
  Document document = training_document(training, results);
  const std::vector<std::pair<std::string, std::string>> files{
      {"runs.csv", training_runs_csv(training)},
      {"curves.csv", training_curves_csv(training)},
      {"claims.csv", csv_text(claims_table(results))},
      {"summary.json", training_json(training, results)}};
  for (const auto& [name, content] : files)
    if (auto put = replace_file(path_inside(out, name), content); !put) return put;
  if (auto put = write_plot_sources(results.plots, out); !put) return put;
  if (auto drawn = draw_all(document, results.plots, out); !drawn) {
    print_error(out + ": the report has no pictures: " + drawn.error().message);
    is_complete = !has_gnuplot();
  }
  if (auto put = replace_file(path_inside(out, report_name), html_text(document)); !put) return put;
  if (training.options.markdown.empty()) return {};
  return write_page(document, training.options.markdown, training_page);
}

std::string closing_text(const TrainingOptions& options) {
  std::string text = "report  " + path_inside(options.out, report_name) + "\n";
  if (!options.markdown.empty())
    text += "page    " + path_inside(options.markdown, training_page) + "\n";
  return text;
}

}  // namespace

Result<int> repro_psp_train_command(const Registry& registry, const Settings& settings) {
  const auto options = parse_training_options(settings, registry);
  if (!options) return options.error();
  const auto folders = prepare_outputs(*options);
  if (!folders) return folders.error();
  const auto ready = prepare(registry, options->job, "");
  if (!ready) return ready.error();
  if (auto fits = check_accuracy(*ready); !fits) return std::move(fits).error();
  const auto runs = run_training(*ready, *options);
  if (!runs) {
    print_error(runs.error().message);
    return job_failed;
  }
  bool is_complete = true;
  const Training training{*options, ready->resolved, *runs};
  if (auto written = write_all(training, is_complete); !written) {
    print_error(written.error().message);
    return job_failed;
  }
  return write_stdout(closing_text(*options), is_complete ? done : job_failed);
}

}  // namespace starling::program
