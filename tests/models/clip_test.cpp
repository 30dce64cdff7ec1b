#include "starling/models/optimizer/clip.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace starling::models {
namespace {

Clip clip_of(const char* text) { return parse_clip(text).value(); }

TEST(Clip, NormScalesTheWholeGradient) {
  std::vector<float> g{3, -4};
  EXPECT_DOUBLE_EQ(apply<float>(clip_of("norm:10"), g), 5);
  EXPECT_EQ(g, (std::vector<float>{3, -4}));
  EXPECT_DOUBLE_EQ(apply<float>(clip_of("norm:1"), g), 5);
  EXPECT_FLOAT_EQ(g[0], 0.6F);
  EXPECT_FLOAT_EQ(g[1], -0.8F);
}

TEST(Clip, ValueClampsEachElement) {
  std::vector<double> g{3, -4, 0.25};
  EXPECT_DOUBLE_EQ(apply<double>(clip_of("value:0.5"), g), std::sqrt(25.0625));
  EXPECT_EQ(g, (std::vector<double>{0.5, -0.5, 0.25}));
}

TEST(Clip, NoneLeavesTheGradientUnchanged) {
  std::vector<double> g{3, -4};
  EXPECT_EQ(apply<double>(clip_of("none"), g), 0);
  EXPECT_EQ(g, (std::vector<double>{3, -4}));
}

TEST(Clip, LargeFloatsDoNotOverflowTheNorm) {
  std::vector<float> g{3e30F, -4e30F};
  EXPECT_NEAR(apply<float>(clip_of("norm:1"), g), 5e30, 1e24);
  EXPECT_FLOAT_EQ(g[0], 0.6F);
}

TEST(Clip, InfiniteGradientsHaveAnInfiniteNormAndAreNotScaled) {
  std::vector<float> g{std::numeric_limits<float>::infinity(), 1};
  EXPECT_TRUE(std::isinf(apply<float>(clip_of("norm:1"), g)));
  EXPECT_EQ(g[1], 1);
}

TEST(Clip, PrintsWhatItReads) {
  for (const char* text : {"none", "norm:1", "norm:0.125", "value:0.5"})
    EXPECT_EQ(print(clip_of(text)), text);
  EXPECT_EQ(print(clip_of("norm:1.0")), "norm:1");
}

TEST(Clip, EveryClipIsParsedAndNeverLengthensAGradient) {
  for_each_alternative<Clip>([]<class C>(const C& clip) {
    EXPECT_EQ(parse_clip(print(clip)).value(), Clip{clip});
    EXPECT_TRUE(std::holds_alternative<C>(clip_of(C::example.data()))) << C::example;
    std::vector<double> g{3, -4, 0.25};
    apply<double>(clip, g);
    EXPECT_LE(std::hypot(g[0], g[1], g[2]), std::hypot(3, 4, 0.25)) << C::name;
  });
  EXPECT_EQ(examples_of<Clip>(), "none | value:1 | norm:1");
}

TEST(Clip, RefusesInvalidTexts) {
  const auto message = [](const char* text) { return parse_clip(text).error().message; };
  EXPECT_EQ(message("nrm:1"), "unknown clip 'nrm'; did you mean 'norm'? valid: none, value, norm");
  EXPECT_EQ(message("norm"),
            "norm: the limit '' must be a number above 0 (at least 1e-45), e.g. norm:1");
  EXPECT_EQ(message("value:-1"),
            "value: the limit '-1' must be a number above 0 (at least 1e-45), e.g. value:1");
  EXPECT_EQ(message("norm:1e-50"),
            "norm: the limit '1e-50' must be a number above 0 (at least 1e-45), e.g. norm:1");
  EXPECT_EQ(message("norm:1,2"),
            "norm: '2' is one value too many; valid: at most 1 value without a key");
  EXPECT_EQ(message("none:1"), "none: takes no options, but '1' is given; valid: none");
}

}  // namespace
}  // namespace starling::models
