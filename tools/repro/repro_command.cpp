#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <thread>

#include "starling/base/text.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/folder_output.hpp"
#include "starling/tools/report/report_files.hpp"
#include "starling/tools/repro/experiments.hpp"
#include "starling/tools/repro/repro_data.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

/// The name of the Markdown page.
constexpr const char* page_name = "repro-psp.md";

std::string data_folder(const ReproOptions& options) {
  if (!options.data.empty()) return options.data;
  return std::filesystem::path{options.out}.replace_extension().string() + "-data";
}

using Folders = std::vector<OutputFolder>;

/// Returns the name of the file if it has the extension of a plot's file, so that it could have the
/// same name as one; else returns no name.
std::vector<std::string> possible_plot_name(const std::string& path) {
  const std::filesystem::path file{resolve_links(path)};
  const auto endings = plot_file_names({});
  if (std::ranges::find(endings, file.extension().string()) == endings.end()) return {};
  return {file.filename().string()};
}

/// Makes the folders of the outputs. Returns an Error if an output cannot be written, or would
/// overwrite another one.
Result<Folders> prepare_outputs(const ReproOptions& options) {
  const FileUse out{"--out", options.out};
  if (auto writable = check_writable(out.path); !writable)
    return std::move(writable).error().within(out.location);
  const std::vector<std::string> plots = possible_plot_name(options.out);
  std::vector<std::string> data{"runs.csv", "learning.csv", "claims.csv", "summary.json"};
  data.insert(data.end(), plots.begin(), plots.end());
  std::vector<std::pair<FileUse, std::vector<std::string>>> outputs{
      {{"--data", data_folder(options)}, data}};
  if (!options.markdown.empty()) {
    outputs.push_back({{"--markdown", options.markdown}, {page_name}});
    outputs.push_back({{"--markdown", path_inside(options.markdown, pictures_folder)}, plots});
  }
  Folders folders;
  for (const auto& [folder, names] : outputs) {
    auto prepared = OutputFolder::prepare(folder, names, std::span{&out, 1});
    if (!prepared) return std::move(prepared).error();
    folders.push_back(*std::move(prepared));
  }
  return folders;
}

Section claims_section(const ExperimentResults& results, const ExperimentOptions& options) {
  return {"Published and here",
          {Paragraph{fmt::format(
               "{} of {} claims are reproduced. Every figure here is a mean over {} ({} to "
               "{}), with its standard error. The published figures were read off plots. "
               "So a number counts as reproduced if it is within 3 % of the published one, "
               "and as close if it is within 10 %.",
               results.reproduced(), results.claims.size(), print_count(options.seeds, "seed"),
               options.seed, options.seed + (options.seeds - 1))},
           claims_table(results)}};
}

Section closing_section(const ExperimentOptions& options) {
  return {"How this was made",
          {Paragraph{fmt::format(
              "starling {} made the whole page with this command: starling repro psp "
              "--seed {} --seeds {}{}. The same seeds give the same figures on every "
              "machine. Source: Wang, Catterall, Mortier, Probabilistic Synchronous "
              "Parallel, arXiv 1709.07772.",
              version(), options.seed, options.seeds, options.quick ? " --quick" : "")}}};
}

Document document_of(const ExperimentRunner& runner, ExperimentResults& results) {
  Document document{"Probabilistic Synchronous Parallel, reproduced", {}};
  for (const Experiment& experiment : psp_experiments())
    document.sections.push_back(experiment.report(runner, results));
  document.sections.insert(document.sections.begin(), claims_section(results, runner.options()));
  document.sections.push_back(closing_section(runner.options()));
  return document;
}

Result<void> write_data(const std::string& folder, const ExperimentRunner& runner,
                        const ExperimentResults& results) {
  const std::vector<std::pair<std::string, std::string>> files{
      {"runs.csv", runs_csv(runner)},
      {"learning.csv", learning_csv(runner)},
      {"claims.csv", csv_text(claims_table(results))},
      {"summary.json", summary_json(runner, results)}};
  for (const auto& [name, content] : files)
    if (auto put = replace_file(path_inside(folder, name), content); !put) return put;
  return write_plot_sources(results.plots, folder);
}

/// Writes the report and its data. Sets `is_complete` to false if the pictures could not be drawn
/// although gnuplot is installed.
Result<void> write_all(const ReproOptions& options, const ExperimentRunner& runner,
                       bool& is_complete) {
  ExperimentResults results;
  Document document = document_of(runner, results);
  const std::string folder = data_folder(options);
  if (auto put = write_data(folder, runner, results); !put) return put;
  if (auto drawn = draw_all(document, results.plots, folder); !drawn) {
    print_error(options.out + " has no pictures; their data is in " + folder + ": " +
                drawn.error().message);
    is_complete = !has_gnuplot();
  }
  if (auto put = replace_file(options.out, html_text(document)); !put) return put;
  if (!options.markdown.empty())
    if (auto put = write_page(document, options.markdown, page_name); !put) return put;
  return Result<void>{};
}

std::string closing_text(const ReproOptions& options) {
  std::string text = "report  " + options.out + "\ndata    " + data_folder(options) + "\n";
  if (!options.markdown.empty())
    text += "page    " + path_inside(options.markdown, page_name) + "\n";
  return text;
}

}  // namespace

Result<int> repro_psp_command(const ReproOptions& options) {
  if (options.seeds > UINT64_MAX - options.seed)
    return Error{"--seeds: " + std::to_string(options.seeds) + " seeds from " +
                 std::to_string(options.seed) + " on exceed the largest seed"};
  auto folders = prepare_outputs(options);
  if (!folders) return std::move(folders).error();
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  ExperimentRunner runner{{.seed = options.seed,
                           .seeds = options.seeds,
                           .threads = options.threads > 0 ? options.threads : processors,
                           .quick = options.quick,
                           .quiet = options.quiet}};
  for (const Experiment& experiment : psp_experiments()) experiment.request_runs(runner);
  runner.run();
  bool is_complete = true;
  if (auto written = write_all(options, runner, is_complete); !written) {
    print_error(written.error().message);
    return job_failed;
  }
  return write_stdout(closing_text(options), is_complete ? done : job_failed);
}

}  // namespace starling::program
