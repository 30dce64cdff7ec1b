#include "starling/engine/core/compact.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "starling/base/random.hpp"

namespace starling::core {
namespace {

constexpr std::size_t sizes[]{1, 2, 3, 31, 63, 64, 65, 127, 128, 1000};

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Returns random elements of which this share is not 0. Some are NaN, infinite or -0.
std::vector<float> draw(Random& random, std::size_t size, double share, bool has_halves) {
  std::vector<float> elements(size);
  for (float& element : elements)
    if (random.real() < share)
      element = std::bit_cast<float>(static_cast<std::uint32_t>(random()) &
                                     (has_halves ? 0xFFFF0000U : UINT32_MAX));
  return elements;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& elements) {
  std::vector<std::uint32_t> all;
  for (const float element : elements) all.push_back(bits(element));
  return all;
}

TEST(Compact, KeepsEveryBit) {
  Random random{1};
  for (const std::size_t size : sizes)
    for (const double share : {0.0, 0.01, 0.3, 0.97, 1.0})
      for (const bool has_halves : {false, true}) {
        SCOPED_TRACE(std::to_string(size) + " elements, " + std::to_string(share));
        const auto elements = draw(random, size, share, has_halves);
        const CompactForm form = compact_form(elements);
        const auto bytes = to_compact(form, elements);
        EXPECT_EQ(bytes.size(), compact_size(form, size));
        EXPECT_LE(bytes.size(), 4 * size);
        std::vector<float> out(size, 7);
        ASSERT_TRUE(from_compact(form, bytes, out));
        EXPECT_EQ(bits_of(out), bits_of(elements));
      }
}

TEST(Compact, CountsMinusZeroAsAnElement) {
  const std::vector<float> elements{-0.0F, 0, 0, 0};
  EXPECT_TRUE(compact_form(elements).has_halves);
  std::vector<float> out(4);
  const CompactForm form = compact_form(elements);
  ASSERT_TRUE(from_compact(form, to_compact(form, elements), out));
  EXPECT_EQ(bits_of(out), bits_of(elements));
}

TEST(Compact, TakesAFewPercentOfSparseElementsAndHalfOfHalves) {
  std::vector<float> elements(10'000);
  for (std::size_t i = 0; i < elements.size(); i += 100) elements[i] = 0.1F;
  EXPECT_LE(compact_size(compact_form(elements), elements.size()), 4 * elements.size() * 42 / 1000);
  std::ranges::fill(elements, 0.5F);
  EXPECT_EQ(compact_size(compact_form(elements), elements.size()), 2 * elements.size());
}

TEST(Compact, IsRefusedIfAnyBitIsDamaged) {
  Random random{2};
  for (const std::size_t size : {3U, 65U}) {
    for (const double share : {0.02, 1.0}) {
      const auto elements = draw(random, size, share, true);
      const CompactForm form = compact_form(elements);
      const auto bytes = to_compact(form, elements);
      for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        auto damaged = bytes;
        damaged[bit / 8] ^= std::byte{1} << bit % 8;
        std::vector<float> out(size);
        if (!from_compact(form, damaged, out)) continue;
        // An accepted vector is another one, in its own shortest form.
        EXPECT_NE(bits_of(out), bits_of(elements));
        EXPECT_EQ(to_compact(form, out), damaged);
      }
    }
  }
}

TEST(Compact, IsRefusedInAFormThatIsNotTheShortest) {
  const std::vector<float> elements(128);
  const CompactForm whole{false, false, 128};
  std::vector<float> out(128);
  EXPECT_FALSE(from_compact(whole, std::vector<std::byte>(compact_size(whole, 128)), out));
  const CompactForm too_many{true, true, 129};
  EXPECT_FALSE(from_compact(too_many, std::vector<std::byte>(compact_size(too_many, 128)), out));
  const CompactForm too_few{true, false, 127};
  EXPECT_FALSE(from_compact(too_few, std::vector<std::byte>(compact_size(too_few, 128)), out));
}

}  // namespace
}  // namespace starling::core
