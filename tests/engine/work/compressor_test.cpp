#include "starling/engine/work/compressor.hpp"

#include <gtest/gtest.h>

#include "starling/base/random.hpp"

namespace starling::core {
namespace {

/// Two ranges of three elements; the last two elements belong to a parameter that is not trained.
std::shared_ptr<const Layout> make_partly_trained_ranges() {
  Layout layout;
  layout.parameters = {{.name = "a", .shape = {4}}, {.name = "b", .shape = {2}}};
  layout.parameters[1].trained = false;
  layout.offsets = {0, 4};
  layout.ranges = {{0, 3, 0, {{0, 0, 0, 3}}}, {3, 3, 0, {{0, 0, 3, 1}, {1, 1, 0, 2}}}};
  layout.size = 6;
  return std::make_shared<const Layout>(std::move(layout));
}

UpdateCompressor compressor(const std::string& rule) {
  return {models::parse_compression(rule).value(), make_partly_trained_ranges()};
}

Update update_of(std::vector<float> g, std::uint32_t samples = 4) {
  const auto buffer = Buffer::copy_of<float>(std::span<const float>{g});
  return {{{0, {buffer, 0, 3, nullptr}}, {1, {buffer, 3, 3, nullptr}}}, samples};
}

/// Returns what is sent of a gradient.
std::vector<float> sent(UpdateCompressor& compressor, std::vector<float> g,
                        std::uint32_t samples = 4) {
  Update update = update_of(std::move(g), samples);
  compressor.compress(update);
  std::vector<float> all;
  for (const Update::Part& part : update.parts) {
    EXPECT_TRUE(part.values.is_compact);
    const auto values = part.values.as<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(UpdateCompressor, SendsTheLargestElementsOfAllRanges) {
  auto top = compressor("topk:share=50%");
  EXPECT_EQ(sent(top, {1, 2, 5, 4, 0, 0}), (std::vector<float>{0, 0, 5, 4, 0, 0}));
  EXPECT_EQ(sent(top, {1, 0, 0, 0, 0, 0}), (std::vector<float>{2, 2, 0, 0, 0, 0}));
  EXPECT_EQ(top.residual(), std::vector<float>(4));
}

TEST(UpdateCompressor, SendsWhatIsNotTrainedWhole) {
  auto top = compressor("threshold:t=10");
  for (int step = 0; step < 3; ++step)
    EXPECT_EQ(sent(top, {1, 1, 1, 1, 7, -0.5}), (std::vector<float>{0, 0, 0, 0, 7, -0.5}));
  EXPECT_EQ(top.residual(), (std::vector<float>{3, 3, 3, 3}));
}

/// The share is one of trained elements, so one of four is sent.
TEST(UpdateCompressor, CountsOnlyTrainedElementsInAShare) {
  auto top = compressor("topk:share=25%");
  EXPECT_EQ(sent(top, {1, 2, 4, 3, 100, 200}), (std::vector<float>{0, 0, 4, 0, 100, 200}));
}

/// Else one running mean would make a whole range travel with all bits.
TEST(UpdateCompressor, RoundsWhatIsNotTrainedToo) {
  auto rounding = compressor("bf16");
  const float ulp = 1.0F / 128;
  EXPECT_EQ(sent(rounding, {0, 0, 0, 0, 1 + ulp / 4, 0}), (std::vector<float>{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(rounding.residual(), (std::vector<float>{0, 0, 0, 0, ulp / 4, 0}));
}

TEST(UpdateCompressor, KeepsTheGradientOfEachSampleIfTheirNumberChanges) {
  auto top = compressor("threshold:t=10");
  (void)sent(top, {8, 0, 0, 0, 0, 0}, 4);
  // The sum over 4 samples was 32; in a mean over 2 it counts 16.
  EXPECT_EQ(sent(top, {1, 0, 0, 0, 0, 0}, 2), (std::vector<float>{17, 0, 0, 0, 0, 0}));
}

TEST(UpdateCompressor, KeepsItsResidualInAStepWithoutSamples) {
  auto top = compressor("threshold:t=10");
  (void)sent(top, {8, 0, 0, 0, 0, 0});
  (void)sent(top, {0, 0, 0, 0, 0, 0}, 0);
  EXPECT_EQ(top.residual()[0], 8);
}

TEST(UpdateCompressor, ChangesNoOtherHolderOfTheGradient) {
  auto top = compressor("topk:share=1%");
  Update update = update_of({1, 2, 3, 4, 5, 6});
  const Update before = update;
  top.compress(update);
  EXPECT_EQ(before.parts[0].values.as<float>()[0], 1);
}

}  // namespace
}  // namespace starling::core
