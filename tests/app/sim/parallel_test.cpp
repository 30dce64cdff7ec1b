#include "starling/app/sim/parallel.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace starling::app {
namespace {

TEST(Pieces, AreEachDoneOnceWhateverTheThreads) {
  for (const std::size_t threads : {1U, 2U, 7U}) {
    std::vector<std::atomic<int>> done(50);
    for_each_piece(
        done.size(), threads, [&](std::size_t i) { ++done[i]; }, [] {});
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(Pieces, MayBeNone) {
  for_each_piece(
      0, 3, [](std::size_t) { FAIL(); }, [] {});
}

TEST(Pieces, ThrowOnTheThreadThatAsked) {
  std::atomic<int> begun = 0;
  const auto fails = [&](std::size_t) {
    ++begun;
    throw std::runtime_error{"no"};
  };
  EXPECT_THROW(for_each_piece(1000, 2, fails, [] {}), std::runtime_error);
  EXPECT_LE(begun, 4) << "others were begun after the first had failed";
}

TEST(Shares, CountEveryPieceAlike) {
  Shares shares{4};
  EXPECT_EQ(shares.mean(), 0);
  shares.set(0, 1);
  shares.set(3, 0.5);
  EXPECT_DOUBLE_EQ(shares.mean(), 0.375);
}

}  // namespace
}  // namespace starling::app
