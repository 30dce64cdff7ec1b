#include "starling/tools/program/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace starling::program {
namespace {

TEST(Pieces, AreEachDoneOnceWithAnyNumberOfThreads) {
  for (const std::size_t threads : {1U, 2U, 7U}) {
    std::vector<std::atomic<int>> done(50);
    for_each_piece(
        done.size(), threads, [&](std::size_t i) { ++done[i]; }, [] {});
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(Pieces, AreNotDoneIfThereAreNone) {
  for_each_piece(
      0, 3, [](std::size_t) { FAIL(); }, [] {});
}

TEST(Pieces, ThrowOnTheCallersThread) {
  std::atomic<int> begun = 0;
  const auto fails = [&](std::size_t) {
    ++begun;
    throw std::runtime_error{"no"};
  };
  EXPECT_THROW(for_each_piece(1000, 2, fails, [] {}), std::runtime_error);
  EXPECT_LE(begun, 4) << "further pieces began after one had failed";
}

using Clock = ProgressEstimator::Clock;

/// Returns the time `number` seconds after the start of these tests' clock.
Clock::time_point second(int number) { return Clock::time_point{} + std::chrono::seconds{number}; }

TEST(ProgressEstimator, EstimatesNoTimeBeforeAPieceHasBegun) {
  ProgressEstimator pieces{{{0, 1}, {0, 1}}, 1};
  EXPECT_EQ(pieces.progress(second(0)).share, 0);
  EXPECT_FALSE(pieces.progress(second(0)).remaining_s);
  pieces.begin(0, second(0));
  EXPECT_FALSE(pieces.progress(second(5)).remaining_s);
}

TEST(ProgressEstimator, EstimatesPiecesThatHaveNotBegunByTheirKind) {
  ProgressEstimator pieces{{{0, 1}, {0, 1}, {1, 1}, {1, 1}}, 1};
  pieces.begin(0, second(0));
  pieces.set(0, 1, second(10));
  pieces.begin(2, second(10));
  pieces.set(2, 0.5, second(11));
  const auto done = pieces.progress(second(11));
  EXPECT_DOUBLE_EQ(done.remaining_s.value(), 10 + 1 + 2);
  EXPECT_DOUBLE_EQ(done.share, 11.0 / 24);
}

TEST(ProgressEstimator, EstimatesAnUnmeasuredKindByItsExpectedCost) {
  ProgressEstimator pieces{{{0, 1}, {1, 0.25}}, 1};
  pieces.begin(0, second(0));
  pieces.set(0, 0.5, second(4));
  EXPECT_DOUBLE_EQ(pieces.progress(second(4)).remaining_s.value(), 4 + 2);
}

TEST(ProgressEstimator, EndsNoSoonerThanTheLongestPiece) {
  ProgressEstimator pieces{{{0, 1}, {1, 1}}, 2};
  pieces.begin(0, second(0));
  pieces.begin(1, second(0));
  pieces.set(0, 1, second(2));
  pieces.set(1, 0.1, second(2));
  EXPECT_DOUBLE_EQ(pieces.progress(second(2)).remaining_s.value(), 18);
  EXPECT_DOUBLE_EQ(pieces.progress(second(10)).remaining_s.value(), 90)
      << "the second piece has made no progress";
}

TEST(ProgressEstimator, IsDoneOnceAllPiecesAreDone) {
  ProgressEstimator pieces{{{0, 1}}, 8};
  pieces.begin(0, second(0));
  pieces.set(0, 1, second(2));
  EXPECT_DOUBLE_EQ(pieces.progress(second(3)).remaining_s.value(), 0);
  EXPECT_DOUBLE_EQ(pieces.progress(second(3)).share, 1);
  EXPECT_EQ((ProgressEstimator{{}, 1}.progress().share), 1);
}

}  // namespace
}  // namespace starling::program
