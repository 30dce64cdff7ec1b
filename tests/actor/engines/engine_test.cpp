// Compares the results of engines with those of serial programs: sums, k-means, rows, PageRank.
#include "starling/actor/engines/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

namespace starling::actor {
namespace {

using barrier::parse;

/// Returns a number that differs for each worker, step and element. Sums of such numbers depend on
/// the order of the additions.
double inexact_number(std::uint64_t worker, std::uint64_t step, std::size_t i) {
  return Random::stream(7, worker, step, i).real(-1, 1);
}

class Workers : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(One2And7, Workers, testing::Values(1, 2, 7));

TEST_P(Workers, BspAddsExactlyLikeOneMachineInWorkerOrder) {
  constexpr std::size_t size = 5000;  // several ranges
  constexpr core::Step steps = 8;
  std::vector<double> serial(size, 1.0);
  for (core::Step step = 0; step < steps; ++step)
    for (std::size_t worker = 0; worker < GetParam(); ++worker)
      for (std::size_t i = 0; i < size; ++i) serial[i] += inexact_number(worker, step, i);

  auto engine = ParameterEngine<double>::make(
      {.workers = GetParam(), .shards = 2, .steps = steps},
      {{"sum", {size}, std::vector<double>(size, 1.0)}},
      {.push = [](auto& context) -> std::vector<Update<double>> {
        std::vector<double> mine(size);
        for (std::size_t i = 0; i < size; ++i)
          mine[i] = inexact_number(context.worker(), context.step(), i);
        return {{"sum", mine}};
      }});
  ASSERT_TRUE(engine) << engine.error().message;
  const Outcome outcome = engine->run();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(outcome.last.updates, steps * GetParam());
  EXPECT_EQ(engine->get("sum").value(), serial);
}

/// Points with whole coordinates, so that sums are exact in any order.
struct Points {
  static constexpr std::size_t clusters = 4;
  std::vector<std::array<double, 2>> all;

  Points() {
    Random random{3};
    for (std::size_t i = 0; i < 400; ++i) {
      const double x = static_cast<double>(i % 2) * 40;
      const double y = static_cast<double>(i / 2 % 2) * 40;
      all.push_back({x + std::round(9 * random.normal()), y + std::round(9 * random.normal())});
    }
  }
};

/// One row for each cluster: the sum of x, the sum of y, and the number of its points.
using Clusters = std::vector<double>;

/// Assigns every `stride`-th point, from the point `first` on, to its nearest centroid.
Clusters assign(std::span<const std::array<double, 2>> points, std::span<const double> centroids,
                std::size_t first, std::size_t stride) {
  Clusters mine(Points::clusters * 3);
  for (std::size_t i = first; i < points.size(); i += stride) {
    std::size_t best = 0;
    double nearest = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < Points::clusters; ++c) {
      const double distance =
          std::hypot(points[i][0] - centroids[2 * c], points[i][1] - centroids[2 * c + 1]);
      if (distance < nearest) best = c;
      nearest = std::min(nearest, distance);
    }
    mine[3 * best] += points[i][0];
    mine[3 * best + 1] += points[i][1];
    mine[3 * best + 2] += 1;
  }
  return mine;
}

/// Returns the means of the clusters. A cluster without points has its initial centroid.
std::vector<double> centroids_of(std::span<const double> clusters, const Points& points) {
  std::vector<double> centroids;
  for (std::size_t c = 0; c < Points::clusters; ++c)
    for (std::size_t d = 0; d < 2; ++d) {
      const double count = clusters[3 * c + 2];
      centroids.push_back(count > 0 ? clusters[3 * c + d] / count : points.all[c][d]);
    }
  return centroids;
}

TEST_P(Workers, KMeansMatchesLloyd) {
  constexpr core::Step steps = 12;
  const Points points;
  Clusters serial(Points::clusters * 3);
  for (core::Step step = 0; step < steps; ++step)
    serial = assign(points.all, centroids_of(serial, points), 0, 1);
  ASSERT_NE(serial, assign(points.all, centroids_of(Clusters(12), points), 0, 1)) << "no progress";

  std::vector<Clusters> before(GetParam(), Clusters(Points::clusters * 3));
  auto engine = ParameterEngine<double>::make(
      {.workers = GetParam(), .barrier = parse("bsp").value(), .steps = steps},
      {{"clusters", {Points::clusters, 3}}},
      {.push = [&](auto& context) -> std::vector<Update<double>> {
        const auto centroids = centroids_of(context.get("clusters"), points);
        Clusters mine = assign(points.all, centroids, context.worker(), context.workers());
        Clusters change = mine;
        Clusters& old = before[context.worker()];
        for (std::size_t i = 0; i < change.size(); ++i) change[i] -= old[i];
        old = std::move(mine);
        return {{"clusters", change}};
      }});
  ASSERT_TRUE(engine) << engine.error().message;
  ASSERT_EQ(engine->run().end, Outcome::End::completed);
  EXPECT_EQ(engine->get("clusters").value(), serial);
}

TEST_P(Workers, UpdatesOfRowsTouchTheirRowsOnly) {
  constexpr std::size_t rows = 300;
  constexpr std::size_t width = 33;
  constexpr core::Step steps = 6;
  std::vector<float> first(rows * width);
  std::iota(first.begin(), first.end(), 0.0F);
  // Worker w reads and changes rows 7w, 7w + 140 and 7w + 3, in this order.
  const auto mine = [](core::MemberId w) {
    return std::vector<std::uint32_t>{7 * w, 7 * w + 140, 7 * w + 3};
  };
  auto engine = PeerEngine<float>::make(
      {.workers = GetParam(), .barrier = parse("asp").value(), .steps = steps},
      {Tensor<float>::by_rows("t", {rows, width}, first), {"dense", {3}, {1, 2, 3}}},
      {.schedule =
           [&](auto& context) {
             return std::vector<Selection>{{"t", mine(context.worker())}};
           },
       .push = [&](auto& context) -> std::vector<Update<float>> {
         const auto order = mine(context.worker());
         EXPECT_EQ(context.get("t").size(), 3 * width);
         std::vector<float> values;
         for (const auto row : order) {
           const auto read = context.row("t", row);
           const float grown = static_cast<float>(row * width + context.step() * (row + 1));
           EXPECT_EQ(read.size(), width);
           EXPECT_EQ(read[0], grown);
           values.insert(values.end(), width, static_cast<float>(row + 1));
         }
         return {{"t", values, order}};
       }});
  ASSERT_TRUE(engine) << engine.error().message;
  const Outcome outcome = engine->run();
  ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  for (core::MemberId w = 0; w < GetParam(); ++w)
    for (const auto row : mine(w))
      for (std::size_t i = 0; i < width; ++i)
        first[row * width + i] += static_cast<float>(steps * (row + 1));
  EXPECT_EQ(engine->get("t").value(), first);
  EXPECT_EQ(engine->get("dense").value(), (std::vector<float>{1, 2, 3}));
}

/// Web pages with links: page i links to the pages 2i + 1 and i^2 + 3, modulo the number of pages.
struct Web {
  static constexpr std::uint32_t pages = 60;
  static constexpr double damping = 0.85;
  std::vector<std::vector<std::uint32_t>> linked_by{pages};

  Web() {
    for (std::uint32_t i = 0; i < pages; ++i) {
      linked_by[(2 * i + 1) % pages].push_back(i);
      linked_by[(i * i + 3) % pages].push_back(i);
    }
  }
  /// Returns the rank of a page if `rank_of(page)` are the ranks of the pages that link to it.
  template <class Rank>
  [[nodiscard]] double rank(std::uint32_t page, Rank rank_of) const {
    double sum = 0;
    for (const auto from : linked_by[page]) sum += rank_of(from) / 2;
    return (1 - damping) / pages + damping * sum;
  }
};

/// Each worker computes the ranks of its share of the pages from the ranks of the pages that link
/// to them.
Hooks<double> page_rank(const Web& web) {
  return {.schedule =
              [&](auto& context) {
                std::vector<std::uint32_t> rows;
                for (auto page = context.worker(); page < Web::pages; page += context.workers())
                  rows.insert(rows.end(), web.linked_by[page].begin(), web.linked_by[page].end());
                std::ranges::sort(rows);
                rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
                return std::vector<Selection>{{"rank", rows}};
              },
          .push = [&](auto& context) -> std::vector<Update<double>> {
            Update<double> update{"rank", {}, std::vector<std::uint32_t>{}};
            for (auto page = context.worker(); page < Web::pages; page += context.workers()) {
              update.rows->push_back(page);
              update.values.push_back(
                  web.rank(page, [&](auto p) { return context.row("rank", p)[0]; }));
            }
            return {update};
          },
          .pull = [](const KeySlice&, auto value,
                     auto update) { std::ranges::copy(update, value.begin()); }};
}

TEST_P(Workers, PageRankConvergesOnPeersUnderSampledBarriers) {
  const Web web;
  std::vector<double> serial(Web::pages, 1.0 / Web::pages);
  for (int sweep = 0; sweep < 300; ++sweep) {
    const auto old = serial;
    for (std::uint32_t page = 0; page < Web::pages; ++page)
      serial[page] = web.rank(page, [&](auto p) { return old[p]; });
  }
  Hooks<double> hooks = page_rank(web);
  hooks.stop = [&](const Progress&, const Tensors<double>& tensors) {
    const auto ranks = tensors.get("rank");
    double residual = 0;
    for (std::uint32_t page = 0; page < Web::pages; ++page)
      residual += std::abs(ranks[page] - web.rank(page, [&](auto p) { return ranks[p]; }));
    return residual < 1e-12;
  };
  auto engine = PeerEngine<double>::make(
      {.workers = GetParam()},
      {Tensor<double>::by_rows("rank", {Web::pages}, std::vector(Web::pages, 1.0 / Web::pages))},
      hooks);
  ASSERT_TRUE(engine) << engine.error().message;
  const Outcome outcome = engine->run();
  EXPECT_EQ(outcome.end, Outcome::End::reached) << outcome.error;
  const auto ranks = engine->get("rank").value();
  EXPECT_NEAR(std::accumulate(ranks.begin(), ranks.end(), 0.0), 1, 1e-9);
  for (std::uint32_t page = 0; page < Web::pages; ++page)
    EXPECT_NEAR(ranks[page], serial[page], 1e-10) << page;
}

/// The example in engine.hpp.
TEST(Engine, PeersAverageTheirNumbers) {
  const std::vector<double> numbers{1, 2, 3, 6};
  auto engine = PeerEngine<double>::make(
      {.workers = 4, .barrier = parse("pssp:s=4,beta=2").value(), .steps = 500}, {{"mean", {1}}},
      {.push = [&](auto& context) -> std::vector<Update<double>> {
        const double mine = numbers[context.worker()];
        return {{"mean", {0.01 * (mine - context.get("mean")[0])}}};
      }});
  ASSERT_TRUE(engine) << engine.error().message;
  const Outcome outcome = engine->run();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  // The last worker may make steps when the others have ended, and moves the mean to its own
  // number.
  EXPECT_GT(engine->get("mean").value()[0], 1);
  EXPECT_LT(engine->get("mean").value()[0], 6);
}

TEST(Engine, MergesByTheUsersFunction) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::atomic<int> wrong_slices{0};
  auto engine = ParameterEngine<double>::make(
      {.workers = 3, .barrier = parse("ssp:s=1").value(), .steps = 10},
      {{"largest", {2}}, {"smallest", {2}, {infinity, infinity}}, {"beside", {2}, {5, 5}}},
      {.push = [infinity](auto& context) -> std::vector<Update<double>> {
         const double x = 100 * context.worker() + static_cast<double>(context.step());
         return {{"largest", {x, -x}}, {"smallest", {x, infinity}}};
       },
       .pull =
           [&](const KeySlice& slice, auto value, auto update) {
             if (slice.offset != 0 || value.size() != 2 || update.size() != 2) ++wrong_slices;
             for (std::size_t i = 0; i < value.size(); ++i)
               value[i] = slice.key == "largest" ? std::max(value[i], update[i])
                                                 : std::min(value[i], update[i]);
           }});
  ASSERT_TRUE(engine) << engine.error().message;
  ASSERT_EQ(engine->run().end, Outcome::End::completed);
  EXPECT_EQ(engine->get("largest").value(), (std::vector<double>{209, 0}));
  EXPECT_EQ(engine->get("smallest").value(), (std::vector<double>{0, infinity}));
  EXPECT_EQ(engine->get("beside").value(), (std::vector<double>{5, 5}));
  EXPECT_EQ(wrong_slices, 0);
}

TEST(Engine, ReadsLongKeysWholeThroughScheduleAndFetch) {
  constexpr std::size_t size = 200'000;  // four ranges of floats at least
  std::vector<float> first(size);
  std::iota(first.begin(), first.end(), 0.0F);
  std::atomic<int> wrong_reads{0};
  auto engine = ParameterEngine<float>::make(
      {.workers = 2, .shards = 3, .steps = 2}, {{"long", {size}, first}, {"idle", {4, 2}}},
      {.schedule = [](auto&) { return std::vector<Selection>{{"long"}}; },
       .push = [&](auto& context) -> std::vector<Update<float>> {
         if (!std::ranges::equal(context.get("long"), first)) ++wrong_reads;
         const auto fetched = context.fetch({"long"});
         if (!fetched || *fetched != first) ++wrong_reads;
         return {};
       }});
  ASSERT_TRUE(engine) << engine.error().message;
  ASSERT_EQ(engine->run().end, Outcome::End::completed);
  EXPECT_EQ(wrong_reads, 0);
  EXPECT_EQ(engine->get("long").value(), first);
}

TEST(Engine, SetsAndGetsBetweenRuns) {
  auto engine =
      ParameterEngine<float>::make({.workers = 2, .steps = 3}, {{"b", {2}}, {"a", {}, {4}}},
                                   {.push = [](auto&) -> std::vector<Update<float>> {
                                     return {{"a", {1}}};
                                   }});
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(engine->keys(), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(engine->workers(), 2U);
  EXPECT_EQ(engine->get("b").value(), (std::vector<float>{0, 0}));
  EXPECT_TRUE(engine->set("b", {7, 8}));
  EXPECT_EQ(engine->run().end, Outcome::End::completed);
  EXPECT_EQ(engine->get("a").value(), std::vector<float>{10});
  EXPECT_TRUE(engine->set("a", {0}));
  EXPECT_EQ(engine->run().end, Outcome::End::completed);
  EXPECT_EQ(engine->get("a").value(), std::vector<float>{6});
  EXPECT_EQ(engine->get("b").value(), (std::vector<float>{7, 8}));
}

TEST(Engine, StartsAndStops200Times) {
  auto engine = PeerEngine<float>::make({.workers = 3, .steps = 2}, {{"x"}},
                                        {.push = [](auto&) -> std::vector<Update<float>> {
                                          return {{"x", {1}}};
                                        }});
  ASSERT_TRUE(engine) << engine.error().message;
  for (int cycle = 1; cycle <= 200; ++cycle) {
    ASSERT_EQ(engine->run().end, Outcome::End::completed);
    ASSERT_EQ(engine->get("x").value()[0], static_cast<float>(6 * cycle));
  }
}

TEST(Engine, StopsOnAStopRequest) {
  std::stop_source source;
  auto engine = ParameterEngine<float>::make(
      {.workers = 2, .time = std::chrono::hours{1}, .stop = source.get_token()}, {{"x"}},
      {.push = [&](auto& context) -> std::vector<Update<float>> {
        if (context.step() == 5) source.request_stop();
        return {{"x", {1}}};
      }});
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(engine->run().end, Outcome::End::stopped);
  EXPECT_GE(engine->get("x").value()[0], 10);
}

TEST(Engine, DrawsTheSameNumbersWhenAStepIsTriedAgain) {
  std::atomic<int> calls{0};
  std::uint64_t drawn = 0;
  auto engine =
      ParameterEngine<float>::make({.workers = 1, .steps = 1}, {{"x"}},
                                   {.push = [&](auto& context) -> std::vector<Update<float>> {
                                     const std::uint64_t number = context.random()();
                                     if (calls++ == 0) {
                                       drawn = number;
                                       throw std::runtime_error{"once"};
                                     }
                                     EXPECT_EQ(number, drawn);
                                     context.report(4);
                                     return {};
                                   }});
  ASSERT_TRUE(engine) << engine.error().message;
  const Outcome outcome = engine->run();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(outcome.last.loss, 4);
}

TEST(Engine, TellsTheHookStopTheReportedLoss) {
  auto engine = ParameterEngine<float>::make(
      {.workers = 2, .steps = 50}, {{"x"}},
      {.push = [](auto& context) -> std::vector<Update<float>> {
         context.report(4);
         return {};
       },
       .stop = [](const Progress& progress, const auto&) { return progress.loss != 4; }});
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(engine->run().end, Outcome::End::completed);
}

}  // namespace
}  // namespace starling::actor
