#include "starling/models/optimizer/compression.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "starling/base/random.hpp"
#include "starling/models/optimizer/gradient_compression.hpp"

namespace starling::models {
namespace {

Compression rule(const std::string& text) { return parse_compression(text).value(); }

struct Compressed {
  std::vector<float> sent;
  std::vector<float> residual;
};

/// Compresses one gradient after a residual.
Compressed compress_once(const std::string& text, const std::vector<float>& g,
                         std::vector<float> residual) {
  std::vector<float> sent(g.size(), 99);
  compress(rule(text), g, residual, sent);
  return {sent, residual};
}

TEST(Compression, IsPrintedAsItIsRead) {
  for (const std::string text :
       {"none", "bf16", "topk:share=1%", "topk:share=0.1%", "topk:share=7%", "threshold:t=0.001",
        "threshold:t=0", "threshold:t=0.25,signs"})
    EXPECT_EQ(print(rule(text)), text);
  EXPECT_EQ(print(rule("topk")), "topk:share=1%");
  EXPECT_EQ(print(rule("topk:share=0.05")), "topk:share=5%");
  Random random{9};
  for (int i = 0; i < 1000; ++i) {
    const Compression top{TopK{random.real(1e-9, 1)}};
    EXPECT_EQ(rule(print(top)), top) << print(top);
  }
}

TEST(Compression, OfAnInvalidRuleIsRefused) {
  const auto error = [](const std::string& text) {
    const auto parsed = parse_compression(text);
    return parsed ? std::string{} : parsed.error().message;
  };
  EXPECT_NE(error("top").find("unknown compression 'top'; did you mean 'topk'?"),
            std::string::npos);
  for (const std::string share : {"0", "0%", "101%", "1.5", "-1%", "x", "nan"})
    EXPECT_NE(error("topk:share=" + share).find("share=" + share + " is not a share"),
              std::string::npos)
        << share;
  EXPECT_NE(error("threshold").find("needs t"), std::string::npos);
  EXPECT_NE(error("threshold:t=0,signs").find("t=0; valid: a threshold above 1e-45"),
            std::string::npos);
  EXPECT_NE(error("threshold:t=1e-50").find("t=1e-50 is 0 as a float; valid: 0, or a threshold"),
            std::string::npos);
  EXPECT_NE(error("threshold:t=-1").find("t=-1"), std::string::npos);
  EXPECT_NE(error("bf16:share=1%").find("share"), std::string::npos);
}

TEST(Compression, TopKSendsTheLargestResiduals) {
  const auto [sent, residual] = compress_once("topk:share=40%", {1, -5, 2, 0, -3}, {0, 0, 0, 4, 0});
  EXPECT_EQ(sent, (std::vector<float>{0, -5, 0, 4, 0}));
  EXPECT_EQ(residual, (std::vector<float>{1, 0, 2, 0, -3}));
}

TEST(Compression, TopKSendsTheFirstOfEqualElements) {
  const auto [sent, residual] = compress_once("topk:share=50%", {2, -2, 2, 3}, {0, 0, 0, 0});
  EXPECT_EQ(sent, (std::vector<float>{2, 0, 0, 3}));
  EXPECT_EQ(residual, (std::vector<float>{0, -2, 2, 0}));
}

TEST(Compression, TopKSendsAtLeastOneElement) {
  EXPECT_EQ(compress_once("topk:share=1%", {1, 3, 2}, {0, 0, 0}).sent,
            (std::vector<float>{0, 3, 0}));
}

TEST(Compression, TopKSendsExactlyItsShare) {
  for (int percent = 1; percent <= 100; ++percent) {
    std::vector<float> g(100);
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(i + 1);
    const std::string text = "topk:share=" + std::to_string(percent) + "%";
    const auto sent = compress_once(text, g, std::vector<float>(100)).sent;
    EXPECT_EQ(100 - std::ranges::count(sent, 0.0F), percent);
  }
}

TEST(Compression, ThresholdSendsWhatDevicesSend) {
  Random random{3};
  for (const std::string text : {"threshold:t=0.5", "threshold:t=0.5,signs"}) {
    std::vector<float> residual(500);
    std::vector<float> other_residual(500);
    for (int step = 0; step < 20; ++step) {
      std::vector<float> g(500);
      for (float& x : g) x = static_cast<float>(random.normal());
      std::vector<float> sent(500);
      compress(rule(text), g, residual, sent);
      const auto threshold = std::get<Threshold>(rule(text));
      std::vector<float> expanded(500);
      expand(threshold, compress(threshold, g, other_residual), expanded);
      ASSERT_EQ(sent, expanded);
      ASSERT_EQ(residual, other_residual);
    }
  }
}

TEST(Compression, Bf16RoundsToTheNearest) {
  // The numbers after 1 are 1 + 2^-7 and 1 + 2^-6.
  const float ulp = std::ldexp(1.0F, -7);
  const auto [sent, residual] = compress_once(
      "bf16", {1, 1 + ulp / 4, 1 + ulp / 2, 1 + 3 * ulp / 2, -1 - 3 * ulp / 4}, {0, 0, 0, 0, 0});
  EXPECT_EQ(sent, (std::vector<float>{1, 1, 1, 1 + 2 * ulp, -1 - ulp}));
  EXPECT_EQ(residual, (std::vector<float>{0, ulp / 4, ulp / 2, -ulp / 2, ulp / 4}));
}

TEST(Compression, Bf16HasNoLowerHalf) {
  Random random{5};
  for (int i = 0; i < 100'000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(x)) continue;
    const auto [sent, residual] = compress_once("bf16", {x}, {0});
    ASSERT_EQ(std::bit_cast<std::uint32_t>(sent[0]) & 0xFFFFU, 0U) << x;
    ASSERT_TRUE(std::isfinite(sent[0])) << x;
    ASSERT_EQ(sent[0] + residual[0], x);
  }
}

TEST(Compression, LosesNothingOfWholeNumbers) {
  for (const std::string text : {"none", "bf16", "topk:share=1%", "topk:share=100%",
                                 "threshold:t=40", "threshold:t=0", "threshold:t=32,signs"}) {
    SCOPED_TRACE(text);
    Random random{7};
    std::vector<float> sum(300);
    std::vector<float> received(300);
    std::vector<float> residual(300);
    for (int step = 0; step < 200; ++step) {
      std::vector<float> g(300);
      for (float& x : g) x = static_cast<float>(random.below(201)) - 100;
      std::vector<float> sent(300);
      compress(rule(text), g, residual, sent);
      for (std::size_t i = 0; i < g.size(); ++i) {
        sum[i] += g[i];
        received[i] += sent[i];
        ASSERT_EQ(received[i] + residual[i], sum[i]) << step;
      }
    }
    EXPECT_EQ(received == std::vector<float>(300), false);
  }
}

}  // namespace
}  // namespace starling::models
