#include "starling/tools/report/report_folder.hpp"

#include <filesystem>

#include "starling/tools/files/file_output.hpp"

namespace starling::program {

std::vector<std::string> plot_file_names(const std::string& name) {
  return {name + ".dat", name + ".gp", name + ".svg"};
}

std::string path_inside(const std::string& folder, const std::string& name) {
  return (std::filesystem::path{folder} / name).string();
}

Result<ReportFolder> ReportFolder::make(const std::string& path) {
  std::error_code fault;
  if (std::filesystem::is_directory(path, fault)) return ReportFolder{{}};
  if (std::filesystem::exists(path, fault))
    return Error{path + ": is a file; valid: the name of a folder"};
  if (!std::filesystem::create_directory(path, fault))
    return Error{path + ": cannot be made: " + fault.message()};
  add_unfinished_folder(path);
  return ReportFolder{path};
}

Result<ReportFolder> ReportFolder::prepare(const FileUse& folder,
                                           std::span<const std::string> names,
                                           std::span<const FileUse> taken) {
  if (auto free = check_no_conflict(folder, taken); !free) return std::move(free).error();
  auto made = make(folder.path);
  if (!made) return std::move(made).error().within(folder.location);
  for (const std::string& name : names) {
    const FileUse use{folder.location, path_inside(folder.path, name)};
    if (auto free = check_no_conflict(use, taken); !free) return std::move(free).error();
    if (auto writable = check_writable(use.path); !writable)
      return std::move(writable).error().within(folder.location);
  }
  return made;
}

ReportFolder::~ReportFolder() {
  if (created_path_.empty()) return;
  std::error_code ignored;  // remove() fails if there are files in the folder, which then stays
  std::filesystem::remove(created_path_, ignored);
  forget_unfinished_folder(created_path_);
}

Result<void> write_plot_source(const std::string& folder, const Plot& plot) {
  if (auto put = replace_file(path_inside(folder, plot.name + ".dat"), plot_data(plot)); !put)
    return put;
  return replace_file(path_inside(folder, plot.name + ".gp"), plot_script(plot));
}

}  // namespace starling::program
