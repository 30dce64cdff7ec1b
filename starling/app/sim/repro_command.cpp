#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <thread>

#include "starling/app/commands.hpp"
#include "starling/app/file_output.hpp"
#include "starling/app/file_use.hpp"
#include "starling/app/sim/experiments.hpp"
#include "starling/app/sim/folder_output.hpp"
#include "starling/app/sim/report_files.hpp"
#include "starling/app/sim/repro_data.hpp"
#include "starling/app/version.hpp"
#include "starling/base/text.hpp"

namespace starling::app {
namespace {

constexpr const char* page = "repro-psp.md";

std::string data_folder(const ReproOptions& options) {
  if (!options.data.empty()) return options.data;
  return std::filesystem::path{options.out}.replace_extension().string() + "-data";
}

using Folders = std::vector<OutputFolder>;

/// The name of a file that has the ending of a plot's: wherever plots go, one may be called so.
std::vector<std::string> as_plot(const std::string& path) {
  const std::filesystem::path file{resolved(path)};
  const auto endings = plot_files({});
  if (std::ranges::find(endings, file.extension().string()) == endings.end()) return {};
  return {file.filename().string()};
}

Result<Folders> prepare_outputs(const ReproOptions& options) {
  const FileUse out{"--out", options.out};
  if (auto writable = check_writable(out.path); !writable)
    return std::move(writable).error().within(out.place);
  const std::vector<std::string> plot = as_plot(options.out);
  std::vector<std::string> data{"runs.csv", "learning.csv", "claims.csv", "summary.json"};
  data.insert(data.end(), plot.begin(), plot.end());
  std::vector<std::pair<FileUse, std::vector<std::string>>> wanted{
      {{"--data", data_folder(options)}, data}};
  if (!options.markdown.empty()) {
    wanted.push_back({{"--markdown", options.markdown}, {page}});
    wanted.push_back({{"--markdown", inside(options.markdown, pictures_folder)}, plot});
  }
  Folders folders;
  for (const auto& [folder, names] : wanted) {
    auto made = OutputFolder::prepare(folder, names, std::span{&out, 1});
    if (!made) return std::move(made).error();
    folders.push_back(*std::move(made));
  }
  return folders;
}

Section claims_section(const Findings& findings, const LabOptions& lab) {
  return {
      "Published and here",
      {Paragraph{fmt::format(
           "{} of {} claims are reproduced. Every figure here is a mean over {} ({} "
           "to {}), with its standard error; published ones were read off plots, so a number is "
           "reproduced within 3 % and close within 10 %.",
           findings.reproduced(), findings.claims.size(), counted(lab.seeds, "seed"), lab.seed,
           lab.seed + (lab.seeds - 1))},
       claims_table(findings)}};
}

Section closing_section(const LabOptions& lab) {
  return {
      "How this was made",
      {Paragraph{fmt::format(
          "starling {} made all of it: starling repro psp --seed {} --seeds {}{}. The same seeds "
          "give the same figures on every machine. Source: Wang, Catterall, Mortier, "
          "Probabilistic Synchronous Parallel, arXiv 1709.07772.",
          version(), lab.seed, lab.seeds, lab.quick ? " --quick" : "")}}};
}

Document document_of(const Lab& lab, Findings& findings) {
  Document document{"Probabilistic Synchronous Parallel, reproduced", {}};
  for (const Experiment& experiment : psp_experiments())
    document.sections.push_back(experiment.report(lab, findings));
  document.sections.insert(document.sections.begin(), claims_section(findings, lab.options()));
  document.sections.push_back(closing_section(lab.options()));
  return document;
}

Result<void> write_data(const std::string& folder, const Lab& lab, const Findings& findings) {
  const std::vector<std::pair<std::string, std::string>> files{
      {"runs.csv", runs_csv(lab)},
      {"learning.csv", learning_csv(lab)},
      {"claims.csv", csv_text(claims_table(findings))},
      {"summary.json", summary_json(lab, findings)}};
  for (const auto& [name, content] : files)
    if (auto put = replace_file(inside(folder, name), content); !put) return put;
  return write_plot_sources(findings.plots, folder);
}

Result<void> write_all(const ReproOptions& options, const Lab& lab, bool& complete) {
  Findings findings;
  Document document = document_of(lab, findings);
  const std::string folder = data_folder(options);
  if (auto put = write_data(folder, lab, findings); !put) return put;
  if (auto drawn = draw_all(document, findings.plots, folder); !drawn) {
    complain(options.out + " has no pictures, their data is in " + folder + ": " +
             drawn.error().message);
    complete = !has_gnuplot();
  }
  if (auto put = replace_file(options.out, html_text(document)); !put) return put;
  if (!options.markdown.empty())
    if (auto put = write_page(document, options.markdown, page); !put) return put;
  return Result<void>{};
}

std::string closing_text(const ReproOptions& options) {
  std::string text = "report  " + options.out + "\ndata    " + data_folder(options) + "\n";
  if (!options.markdown.empty()) text += "page    " + inside(options.markdown, page) + "\n";
  return text;
}

}  // namespace

Result<int> repro_psp_command(const ReproOptions& options) {
  if (options.seeds > UINT64_MAX - options.seed)
    return Error{"--seeds: " + std::to_string(options.seeds) + " seeds from " +
                 std::to_string(options.seed) + " on: there are not so many"};
  auto folders = prepare_outputs(options);
  if (!folders) return std::move(folders).error();
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  Lab lab{{.seed = options.seed,
           .seeds = options.seeds,
           .threads = options.threads > 0 ? options.threads : processors,
           .quick = options.quick,
           .quiet = options.quiet}};
  for (const Experiment& experiment : psp_experiments()) experiment.plan(lab);
  lab.run();
  bool complete = true;
  if (auto written = write_all(options, lab, complete); !written) {
    complain(written.error().message);
    return job_failed;
  }
  return put_out(closing_text(options), complete ? done : job_failed);
}

}  // namespace starling::app
