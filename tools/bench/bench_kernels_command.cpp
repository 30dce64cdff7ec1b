#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "starling/base/json_text.hpp"
#include "starling/tools/bench/bench_commands.hpp"
#include "starling/tools/bench/kernels.hpp"
#include "starling/tools/report/machine.hpp"
#include "starling/tools/report/statistics.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using models::KernelLibrary;

constexpr std::array libraries{KernelLibrary::onednn, KernelLibrary::eigen};
/// The processor time of one measurement, in seconds. It is much longer than reading the clock
/// takes, and so short that few measurements are disturbed by other programs.
constexpr double measurement_s = 0.01;

/// The measured speeds of one pass of a layer.
struct Row {
  const KernelLayer* layer = nullptr;
  KernelPass pass = KernelPass::forward;
  /// GFLOP/s by library; absent if this build lacks the library, or the library has no code for the
  /// pass.
  std::array<std::optional<double>, libraries.size()> gflops{};
  /// The library with which training computes this pass.
  KernelLibrary chosen = KernelLibrary::eigen;
};

/// Measures the libraries in turn, so that the load of other programs affects all of them alike.
Row measure_row(const KernelLayer& layer, KernelPass pass, const BenchKernelsOptions& options) {
  Row row{.layer = &layer, .pass = pass};
  row.chosen = make_kernel(layer, pass, 1, models::preferred_library()).library;
  std::array<std::optional<Kernel>, libraries.size()> kernels;
  std::array<std::vector<double>, libraries.size()> speeds;
  for (std::size_t i = 0; i < libraries.size(); ++i) {
    if (!models::is_present(libraries[i])) continue;
    Kernel kernel = make_kernel(layer, pass, options.batch, libraries[i]);
    if (kernel.library != libraries[i]) continue;
    kernel.run();  // warms up
    kernels[i] = std::move(kernel);
  }
  for (std::uint64_t r = 0; r < options.repeats; ++r)
    for (std::size_t i = 0; i < libraries.size(); ++i)
      if (kernels[i]) speeds[i].push_back(measure(*kernels[i], measurement_s) / 1e9);
  for (std::size_t i = 0; i < libraries.size(); ++i)
    if (kernels[i]) row.gflops[i] = median(speeds[i]);
  return row;
}

std::vector<Row> measure_all(const BenchKernelsOptions& options) {
  std::vector<Row> rows;
  for (const KernelLayer& layer : kernel_layers())
    for (const KernelPass pass : {KernelPass::forward, KernelPass::weights, KernelPass::input})
      if (pass != KernelPass::input || !layer.is_first)
        rows.push_back(measure_row(layer, pass, options));
  return rows;
}

std::string json_of(const std::vector<Row>& rows, const BenchKernelsOptions& options) {
  nlohmann::ordered_json json = program::json_of(this_machine());
  json["batch"] = options.batch;
  json["repeats"] = options.repeats;
  for (const Row& row : rows) {
    nlohmann::ordered_json kernel;
    kernel["net"] = row.layer->net;
    kernel["layer"] = print(*row.layer);
    kernel["pass"] = name(row.pass);
    for (std::size_t i = 0; i < libraries.size(); ++i)
      if (row.gflops[i]) kernel["gflops"][std::string{models::name(libraries[i])}] = *row.gflops[i];
    kernel["chosen"] = models::name(row.chosen);
    json["kernels"].push_back(std::move(kernel));
  }
  return json_text(json) + "\n";
}

std::string table_of(const std::vector<Row>& rows, const BenchKernelsOptions& options) {
  std::string text = print(this_machine());
  text +=
      fmt::format("batch       {}\nrepeats     {}\n\n{:<28}{:<9}{:>10}{:>10}   {}\n", options.batch,
                  options.repeats, "GFLOP/s", "pass", "oneDNN", "Eigen", "chosen");
  std::string net;
  for (const Row& row : rows) {
    if (net != row.layer->net) text += (net = row.layer->net) + "\n";
    text += fmt::format("  {:<26}{:<9}", print(*row.layer), name(row.pass));
    for (const auto& value : row.gflops)
      text += value ? fmt::format("{:>10.1f}", *value) : fmt::format("{:>10}", "-");
    text += fmt::format("   {}\n", models::name(row.chosen));
  }
  return text;
}

}  // namespace

Result<int> bench_kernels_command(const BenchKernelsOptions& options) {
  const auto rows = measure_all(options);
  return write_stdout(options.json ? json_of(rows, options) : table_of(rows, options), done);
}

}  // namespace starling::program
