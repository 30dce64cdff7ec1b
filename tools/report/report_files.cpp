#include "starling/tools/report/report_files.hpp"

#include <map>

#include "starling/tools/files/file_output.hpp"
#include "starling/tools/report/report_folder.hpp"

namespace starling::program {

Result<void> write_plot_sources(const std::vector<Plot>& plots, const std::string& folder) {
  for (const Plot& plot : plots)
    if (auto put = write_plot_source(folder, plot); !put) return put;
  return {};
}

Result<void> draw_all(Document& document, const std::vector<Plot>& plots,
                      const std::string& folder) {
  std::map<std::string, std::string> drawn;
  for (const Plot& plot : plots) {
    auto svg = draw(plot);
    if (!svg) return std::move(svg).error();
    if (auto put = replace_file(path_inside(folder, plot.name + ".svg"), *svg); !put) return put;
    drawn[plot.name] = *std::move(svg);
  }
  for (Section& section : document.sections)
    for (Block& block : section.blocks)
      if (auto* picture = std::get_if<Picture>(&block)) picture->svg = drawn.at(picture->name);
  return {};
}

Result<void> write_page(const Document& document, const std::string& folder,
                        const std::string& name) {
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks) {
      const auto* picture = std::get_if<Picture>(&block);
      if (picture == nullptr || picture->svg.empty()) continue;
      const std::string file =
          path_inside(path_inside(folder, pictures_folder), picture->name + ".svg");
      if (auto put = replace_file(file, picture->svg); !put) return put;
    }
  return replace_file(path_inside(folder, name), markdown_text(document, pictures_folder));
}

}  // namespace starling::program
