#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <span>
#include <vector>

#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/report/folder_output.hpp"
#include "starling/tools/report/report_files.hpp"
#include "starling/tools/repro/repro_data.hpp"
#include "starling/tools/repro/training_report.hpp"
#include "starling/tools/repro/training_runs.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

constexpr const char* report_name = "report.html";
constexpr const char* page = "repro-psp-train.md";

std::vector<std::string> report_files() {
  std::vector<std::string> names{report_name, "runs.csv", "curves.csv", "claims.csv",
                                 "summary.json"};
  for (const char* plot : {over_updates_plot, over_time_plot, one_seed_plot})
    for (std::string& file : plot_files(plot)) names.push_back(std::move(file));
  return names;
}

/// Refuses a folder that holds a file which no report has.
Result<void> refuse_strangers(const std::string& folder, const std::vector<std::string>& known) {
  std::error_code fault;
  if (!std::filesystem::is_directory(folder, fault)) return {};
  for (std::filesystem::directory_iterator entry{folder, fault}, end; !fault && entry != end;
       entry.increment(fault)) {
    const std::string name = entry->path().filename().string();
    if (std::ranges::find(known, name) == known.end())
      return Error{fmt::format(
          "{}: holds '{}', which is of no report; valid: a new or an empty folder, or one of an "
          "earlier report",
          folder, name)};
  }
  if (fault) return Error{folder + ": cannot be read: " + fault.message()};
  return {};
}

/// Folders, the innermost first: it must be removed before the folder around it is empty.
using Folders = std::list<OutputFolder>;

Result<Folders> prepare_outputs(const TrainingOptions& options) {
  const std::vector<std::string> files = report_files();
  const FileUse out{"--out", options.out};
  if (auto fits = refuse_strangers(out.path, files); !fits)
    return std::move(fits).error().within(out.place);
  Folders folders;
  auto made = OutputFolder::prepare(out, files, {});
  if (!made) return std::move(made).error();
  folders.push_front(*std::move(made));
  if (options.markdown.empty()) return folders;
  const std::vector<std::string> pages{page};
  for (const auto& [folder, names] :
       {std::pair{options.markdown, pages},
        std::pair{inside(options.markdown, pictures_folder), std::vector<std::string>{}}}) {
    auto also = OutputFolder::prepare({"--markdown", folder}, names, std::span{&out, 1});
    if (!also) return std::move(also).error();
    folders.push_front(*std::move(also));
  }
  return folders;
}

Result<void> write_all(const Training& training, bool& complete) {
  const std::string& out = training.options.out;
  ExperimentResults results;
  Document document = training_document(training, results);
  const std::vector<std::pair<std::string, std::string>> files{
      {"runs.csv", training_runs_csv(training)},
      {"curves.csv", training_curves_csv(training)},
      {"claims.csv", csv_text(claims_table(results))},
      {"summary.json", training_json(training, results)}};
  for (const auto& [name, content] : files)
    if (auto put = replace_file(inside(out, name), content); !put) return put;
  if (auto put = write_plot_sources(results.plots, out); !put) return put;
  if (auto drawn = draw_all(document, results.plots, out); !drawn) {
    print_error(out + ": the report has no pictures: " + drawn.error().message);
    complete = !has_gnuplot();
  }
  if (auto put = replace_file(inside(out, report_name), html_text(document)); !put) return put;
  if (training.options.markdown.empty()) return {};
  return write_page(document, training.options.markdown, page);
}

std::string closing_text(const TrainingOptions& options) {
  std::string text = "report  " + inside(options.out, report_name) + "\n";
  if (!options.markdown.empty()) text += "page    " + inside(options.markdown, page) + "\n";
  return text;
}

}  // namespace

Result<int> repro_psp_train_command(const Registry& registry, const Settings& settings) {
  const auto options = make_training(settings, registry);
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
  bool complete = true;
  const Training training{*options, ready->running, *runs};
  if (auto written = write_all(training, complete); !written) {
    print_error(written.error().message);
    return job_failed;
  }
  return write_stdout(closing_text(*options), complete ? done : job_failed);
}

}  // namespace starling::program
