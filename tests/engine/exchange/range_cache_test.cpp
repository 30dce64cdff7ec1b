/// Tests which rows a worker's cache keeps, for how long, and with which updates.
#include "starling/engine/exchange/ownership/range_cache.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

namespace starling::core {
namespace {

using Elements = std::vector<float>;

Rows rows(std::vector<std::uint32_t> all) {
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(all));
}

Slice slice(const Elements& elements, Rows of_rows = nullptr) {
  return {Buffer::copy_of(std::span{elements}), 0, elements.size(), std::move(of_rows)};
}

Elements elements(const Slice& slice) {
  const auto all = slice.as<float>();
  return {all.begin(), all.end()};
}

/// Range 0 has three elements and no rows; range 1 has four rows of two elements.
class RangeCacheTest : public testing::Test {
 protected:
  RangeCacheTest() {
    auto layout = std::make_shared<Layout>();
    layout->parameters = {{.name = "dense", .shape = {3}}, {.name = "rows", .shape = {4, 2}}};
    layout->offsets = {0, 3};
    layout->ranges = {{0, 3, 0, {{0, 0, 0, 3}}}, {3, 8, 2, {{1, 0, 0, 8}}}};
    layout->size = 11;
    cache_.emplace(std::move(layout),
                   gradient_applier<float>(
                       {.optimizer = models::Sgd{.lr = 1}, .schedule = {}, .l2 = 0, .batch = 2}));
  }
  /// Returns the missing rows of range 1; empty if none is missing.
  [[nodiscard]] std::vector<std::uint32_t> missing(const Rows& wanted, Step oldest) const {
    const auto found = cache_->missing(1, wanted, oldest);
    if (!found) return {};
    EXPECT_TRUE(*found) << "the whole range";
    return **found;
  }

  std::optional<RangeCache> cache_;
};

TEST_F(RangeCacheTest, LacksWhatWasNotReadAndWhatIsTooOld) {
  EXPECT_EQ(cache_->missing(0, nullptr, 0), Rows{}) << "the whole range";
  cache_->put(0, slice({1, 2, 3}), 5);
  EXPECT_EQ(cache_->missing(0, nullptr, 5), std::nullopt);
  EXPECT_EQ(cache_->missing(0, nullptr, 6), Rows{});
  EXPECT_EQ(elements(cache_->read(0, nullptr)), (Elements{1, 2, 3}));
}

TEST_F(RangeCacheTest, LacksOnlySomeRows) {
  cache_->put(1, slice({1, 1, 3, 3}, rows({1, 3})), 5);
  cache_->put(1, slice({2, 2}, rows({2})), 8);
  EXPECT_EQ(missing(rows({0, 1, 2, 3}), 5), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(missing(rows({1, 2, 3}), 6), (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(cache_->missing(1, rows({1, 2, 3}), 5), std::nullopt);
  EXPECT_EQ(elements(cache_->read(1, rows({1, 2, 3}))), (Elements{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(missing(nullptr, 5), (std::vector<std::uint32_t>{0})) << "of the whole range";
}

TEST_F(RangeCacheTest, LacksNothingOfAReadWithoutRows) {
  EXPECT_EQ(cache_->missing(1, rows({}), 9), std::nullopt);
  EXPECT_TRUE(cache_->read(1, rows({})).empty());
}

/// A push of 4 samples in a job of 2 workers with batch 2 has the weight 1.
TEST_F(RangeCacheTest, ShowsTheWorkersOwnUpdates) {
  cache_->put(0, slice({1, 2, 3}), 5);
  cache_->apply(0, slice({1, 1, 1}), 4, 2, 0, 0);
  cache_->apply(0, slice({0, 0, 2}), 4, 2, 1, 4);
  EXPECT_EQ(elements(cache_->read(0, nullptr)), (Elements{0, 1, 0}));
  cache_->put(1, slice({1, 1}, rows({1})), 5);
  cache_->apply(1, slice({1, 2, 3, 4}, rows({0, 1})), 4, 2, 0, 0);
  EXPECT_EQ(elements(cache_->read(1, rows({1}))), (Elements{-2, -3}));
  EXPECT_EQ(missing(rows({0, 1}), 0), (std::vector<std::uint32_t>{0})) << "row 0 was not read";
  EXPECT_EQ(cache_->missing(0, nullptr, 6), Rows{}) << "own updates make nothing newer";
}

TEST_F(RangeCacheTest, ReplacesOwnUpdatesByWhatAnOwnerSends) {
  cache_->put(0, slice({1, 2, 3}), 5);
  cache_->apply(0, slice({1, 1, 1}), 4, 2, 0, 0);
  cache_->put(0, slice({7, 8, 9}), 6);
  EXPECT_EQ(elements(cache_->read(0, nullptr)), (Elements{7, 8, 9}));
}

TEST_F(RangeCacheTest, DoesNotChangeWhatAReaderHolds) {
  cache_->put(0, slice({1, 2, 3}), 5);
  const Slice held = cache_->read(0, nullptr);
  cache_->apply(0, slice({1, 1, 1}), 4, 2, 0, 0);
  cache_->put(0, slice({7, 8, 9}), 6);
  EXPECT_EQ(elements(held), (Elements{1, 2, 3}));
}

}  // namespace
}  // namespace starling::core
