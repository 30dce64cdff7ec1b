#include "starling/engine/exchange/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "starling/base/random.hpp"

namespace starling::core {
namespace {

using models::Parameter;

Parameter dense(std::vector<std::size_t> shape) { return {.name = "d", .shape = std::move(shape)}; }
Parameter rows(std::size_t count, std::size_t size) {
  return {.name = "r", .shape = {count, size}, .row_sparse = true};
}

/// Expects that each element of each parameter is in exactly one range, at the offset that its
/// segment gives.
void expect_complete_ranges(const Layout& layout) {
  std::size_t offset = 0;
  std::vector<std::size_t> covered(layout.parameters.size());
  for (const Range& range : layout.ranges) {
    EXPECT_EQ(range.offset, offset);
    EXPECT_GT(range.count, 0U);
    std::size_t offset_in_range = 0;
    for (const Segment& segment : range.segments) {
      EXPECT_EQ(segment.offset, offset_in_range);
      EXPECT_EQ(segment.parameter_offset, covered[segment.parameter]);
      EXPECT_EQ(layout.offsets[segment.parameter] + segment.parameter_offset,
                range.offset + segment.offset);
      offset_in_range += segment.count;
      covered[segment.parameter] += segment.count;
    }
    EXPECT_EQ(offset_in_range, range.count);
    offset += range.count;
  }
  EXPECT_EQ(offset, layout.size);
  for (std::size_t p = 0; p < covered.size(); ++p)
    EXPECT_EQ(covered[p], layout.parameters[p].size()) << "parameter " << p;
}

TEST(MakeLayout, PutsEveryElementIntoExactlyOneRange) {
  Random random{1};
  for (int job = 0; job < 300; ++job) {
    std::vector<Parameter> parameters;
    for (std::uint64_t p = random.below(6) + 1; p > 0; --p) {
      const std::size_t height = random.below(3) == 0 ? random.below(3) : random.below(400);
      const std::size_t width =
          random.below(4) == 0 ? 1 + random.below(40000) : 1 + random.below(9);
      parameters.push_back(random.below(2) == 0 ? dense({height, width}) : rows(height, width));
    }
    const std::size_t element_bytes = random.below(2) == 0 ? 4 : 8;
    const Layout layout = make_layout(parameters, element_bytes, 1 + random.below(40));
    expect_complete_ranges(layout);
    for (const Range& range : layout.ranges)
      EXPECT_LE(range.count * element_bytes, range_bytes_max);
  }
}

TEST(MakeLayout, MakesARangeForEachOwnerIfEachGets4KiB) {
  Random random{2};
  for (int job = 0; job < 2000; ++job) {
    const std::size_t owners = 1 + random.below(3000);
    const std::size_t size = owners * 1024 + random.below(owners * 4);
    const Layout layout = make_layout({dense({size / 3}), rows(size - size / 3, 1)}, 4, owners);
    ASSERT_GE(layout.ranges.size(), owners) << size << " elements";
  }
}

TEST(MakeLayout, MakesOneRangeForEachOwnerOfASmallModel) {
  for (const std::size_t owners : {1U, 2U, 3U, 4U, 7U})
    EXPECT_EQ(make_layout({dense({784, 10}), dense({10})}, 4, owners).ranges.size(), owners);
}

TEST(MakeLayout, KeepsRowsWhole) {
  const Layout layout =
      make_layout({dense({5}), rows(1000, 300), dense({7}), rows(3, 40000)}, 4, 64);
  expect_complete_ranges(layout);
  for (const Range& range : layout.ranges) {
    const Segment& first = range.segments.front();
    if (!layout.parameters[first.parameter].row_sparse) {
      EXPECT_EQ(range.row_size, 0U);
      continue;
    }
    const std::size_t row = layout.parameters[first.parameter].row_size();
    EXPECT_EQ(range.segments.size(), 1U) << "a range with rows holds another parameter too";
    EXPECT_EQ(range.row_size, row);
    EXPECT_EQ(range.count % row, 0U);
    EXPECT_EQ(first.parameter_offset % row, 0U);
  }
}

TEST(MakeLayout, SplitsARowThatIsLargerThanARangeLikeADenseParameter) {
  const Layout layout = make_layout({rows(2, 100000)}, 4, 1);
  expect_complete_ranges(layout);
  EXPECT_EQ(layout.ranges.size(), 4U);
  for (const Range& range : layout.ranges) EXPECT_EQ(range.row_size, 0U);
}

TEST(MakeLayout, MakesNoRangesOfNoElements) {
  EXPECT_TRUE(make_layout({}, 4, 3).ranges.empty());
  EXPECT_TRUE(make_layout({dense({0, 5}), rows(0, 5)}, 4, 3).ranges.empty());
}

TEST(MakeLayout, MakesARangeOfOneElementOfAScalar) {
  const Layout layout = make_layout({dense({})}, 8, 3);
  ASSERT_EQ(layout.ranges.size(), 1U);
  EXPECT_EQ(layout.ranges[0].count, 1U);
}

TEST(RangesOf, ReturnsTheRangesThatHoldTheParameter) {
  const Layout layout = make_layout(
      {dense({3000}), dense({0}), dense({100}), rows(50, 40), dense({}), dense({9000})}, 4, 5);
  for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
    const auto [from, to] = layout.ranges_of(p);
    for (RangeId r = 0; r < layout.ranges.size(); ++r) {
      const bool holds = std::ranges::count(layout.ranges[r].segments, p, &Segment::parameter) > 0;
      EXPECT_EQ(from <= r && r < to, holds) << "parameter " << p << ", range " << r;
    }
  }
}

class Assign : public testing::TestWithParam<std::pair<std::size_t, std::size_t>> {};

TEST_P(Assign, LoadsDifferByAtMostOneRange) {
  const auto [ranges, owners] = GetParam();
  const auto owner_of = assign_ranges(ranges, owners);
  ASSERT_EQ(owner_of.size(), ranges);
  std::vector<std::size_t> load(owners);
  for (const OwnerId owner : owner_of) ++load.at(owner);
  EXPECT_GE(*std::ranges::min_element(load), ranges / owners);
  EXPECT_LE(*std::ranges::max_element(load), (ranges + owners - 1) / owners);
}

TEST_P(Assign, MovesAtMostAFairShareToAJoiner) {
  const auto [ranges, owners] = GetParam();
  const auto before = assign_ranges(ranges, owners);
  const auto after = assign_ranges(ranges, owners + 1);
  std::size_t moved = 0;
  for (std::size_t r = 0; r < ranges; ++r) {
    if (before[r] == after[r]) continue;
    ++moved;
    EXPECT_EQ(after[r], owners) << "range " << r << " moved between owners that stayed";
  }
  EXPECT_LE(moved, ranges / (owners + 1));
}

INSTANTIATE_TEST_SUITE_P(RangesAndOwners, Assign,
                         testing::Values(std::pair{0, 3}, std::pair{1, 1}, std::pair{2, 5},
                                         std::pair{4, 3}, std::pair{9, 8}, std::pair{10, 4},
                                         std::pair{64, 8}, std::pair{100, 7}, std::pair{1000, 1},
                                         std::pair{1000, 300}, std::pair{2000, 1999}));

/// Neighbouring ranges often have load at the same time, such as the first rows of a table.
TEST(Assign, SpreadsNeighbouringRangesOverOwners) {
  const auto owner_of = assign_ranges(1000, 10);
  std::vector<std::size_t> of_first_hundred(10);
  for (std::size_t r = 0; r < 100; ++r) ++of_first_hundred[owner_of[r]];
  EXPECT_LT(*std::ranges::max_element(of_first_hundred), 25U);
}

}  // namespace
}  // namespace starling::core
