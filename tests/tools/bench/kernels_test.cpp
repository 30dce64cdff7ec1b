/// Checks that `bench kernels` counts the operations correctly and uses the requested library.
#include "starling/tools/bench/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/report/machine.hpp"

namespace starling::program {
namespace {

using models::KernelLibrary;

/// Returns the layer of `bench kernels` that prints as `text`.
const KernelLayer& layer_of(std::string_view text) {
  const auto found =
      std::ranges::find(kernel_layers(), text, [](const auto& l) { return print(l); });
  EXPECT_NE(found, kernel_layers().end()) << text;
  return *found;
}

TEST(Kernels, CountTwoOperationsForEachMultiplication) {
  const auto& dense = layer_of("dense 784 -> 128");
  EXPECT_EQ(make_kernel(dense, KernelPass::forward, 64, KernelLibrary::eigen).flops,
            2.0 * 64 * 784 * 128);
  const auto& convolution = layer_of("conv2d 14x14x6 -> 16, 5x5");
  EXPECT_EQ(make_kernel(convolution, KernelPass::weights, 3, KernelLibrary::eigen).flops,
            2.0 * 3 * (10 * 10 * 16) * (5 * 5 * 6));
}

TEST(Kernels, RunOnTheRequestedLibrary) {
  for (const KernelLayer& layer : kernel_layers())
    EXPECT_EQ(make_kernel(layer, KernelPass::forward, 1, KernelLibrary::eigen).library,
              KernelLibrary::eigen)
        << print(layer);
  const double speed = measure(
      make_kernel(layer_of("dense 120 -> 84"), KernelPass::input, 2, KernelLibrary::eigen), 1e-3);
  EXPECT_GT(speed, 0);
}

/// The layers of a net together have as many parameters as the net.
TEST(Kernels, HaveTheShapesOfTheNetsLayers) {
  const Registry registry = with_built_in({});
  const auto data = load_source(registry, "digits:n=20", 1);
  ASSERT_TRUE(data);
  std::set<std::string> nets;
  for (const KernelLayer& layer : kernel_layers()) nets.insert(layer.net);
  EXPECT_EQ(nets.size(), 4U);
  for (const std::string& net : nets) {
    std::size_t counted = 0;
    for (const KernelLayer& layer : kernel_layers()) {
      if (layer.net != net) continue;
      if (const auto* dense = std::get_if<DenseShape>(&layer.shape))
        counted += (dense->inputs + 1) * dense->outputs;
      else if (const auto* image = std::get_if<models::ConvolutionShape>(&layer.shape))
        counted += (image->window() + 1) * image->outputs;
    }
    const auto model = make_model(registry, net, *data);
    ASSERT_TRUE(model) << net;
    EXPECT_EQ(counted, models::total_size((*model)->parameters())) << net;
  }
}

TEST(Machine, NamesProcessorAndLibraries) {
  const Machine machine = this_machine();
  EXPECT_GE(machine.processors, 1U);
  ASSERT_FALSE(machine.libraries.empty());
  EXPECT_EQ(machine.libraries.back().first, "Eigen");
  EXPECT_EQ(print(machine).find("processor   " + machine.processor), 0U);
  EXPECT_GT(peak_memory_bytes(), 1'000'000U);
}

}  // namespace
}  // namespace starling::program
