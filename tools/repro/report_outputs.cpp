#include "starling/tools/repro/report_outputs.hpp"

#include <algorithm>
#include <filesystem>
#include <span>

#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/report/report_files.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

std::string data_folder(const ReportOutputs& outputs) {
  if (!outputs.data.empty()) return outputs.data;
  return std::filesystem::path{outputs.out}.replace_extension().string() + "-data";
}

/// Returns the name of the file at `path` if its extension is that of a plot's file, because a
/// plot's file may then have the same name; else returns no name.
std::vector<std::string> possible_plot_name(const std::string& path) {
  const std::filesystem::path file{resolve_links(path)};
  const auto endings = plot_file_names({});
  if (std::ranges::find(endings, file.extension().string()) == endings.end()) return {};
  return {file.filename().string()};
}

/// Sets `is_complete` to false if the pictures could not be drawn although gnuplot is installed.
Result<void> write_report(const ReportOutputs& outputs, const DataFiles& files, Document& document,
                          const std::vector<Plot>& plots, bool& is_complete) {
  const std::string folder = data_folder(outputs);
  for (const auto& [name, content] : files)
    if (auto put = replace_file(path_inside(folder, name), content); !put) return put;
  if (auto put = write_plot_sources(plots, folder); !put) return put;
  if (auto drawn = draw_all(document, plots, folder); !drawn) {
    print_error(outputs.out + " has no pictures; their data is in " + folder + ": " +
                drawn.error().message);
    is_complete = !has_gnuplot();
  }
  if (auto put = replace_file(outputs.out, html_text(document)); !put) return put;
  if (outputs.markdown.empty()) return {};
  return write_page(document, outputs.markdown, outputs.page);
}

std::string outputs_text(const ReportOutputs& outputs) {
  std::string text = "report  " + outputs.out + "\ndata    " + data_folder(outputs) + "\n";
  if (!outputs.markdown.empty())
    text += "page    " + path_inside(outputs.markdown, outputs.page) + "\n";
  return text;
}

}  // namespace

Result<std::vector<ReportFolder>> prepare_report(const ReportOutputs& outputs,
                                                 const std::vector<std::string>& names) {
  const FileUse out{"--out", outputs.out};
  if (auto writable = check_writable(out.path); !writable)
    return std::move(writable).error().within(out.location);
  const std::vector<std::string> plots = possible_plot_name(outputs.out);
  std::vector<std::string> data = names;
  data.insert(data.end(), plots.begin(), plots.end());
  std::vector<std::pair<FileUse, std::vector<std::string>>> folders_and_names{
      {{"--data", data_folder(outputs)}, data}};
  if (!outputs.markdown.empty()) {
    folders_and_names.push_back({{"--markdown", outputs.markdown}, {outputs.page}});
    folders_and_names.push_back(
        {{"--markdown", path_inside(outputs.markdown, pictures_folder)}, plots});
  }
  std::vector<ReportFolder> folders;
  for (const auto& [folder, files] : folders_and_names) {
    auto prepared = ReportFolder::prepare(folder, files, std::span{&out, 1});
    if (!prepared) return std::move(prepared).error();
    folders.push_back(*std::move(prepared));
  }
  return folders;
}

Result<int> finish_report(const ReportOutputs& outputs, const DataFiles& files, Document& document,
                          const std::vector<Plot>& plots) {
  bool is_complete = true;
  if (auto written = write_report(outputs, files, document, plots, is_complete); !written) {
    print_error(written.error().message);
    return job_failed;
  }
  return write_stdout(outputs_text(outputs), is_complete ? done : job_failed);
}

}  // namespace starling::program
