/// Sums whose pieces are sent with the precision of bfloat16.
#include "starling/engine/exchange/allreduce/round_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/exchange/allreduce/sum_offsets.hpp"
#include "starling/engine/exchange/layout.hpp"

namespace starling::core {
namespace {

using collective::Rank;

constexpr std::size_t ranges = 3;
/// The elements of a range.
constexpr std::size_t elements = 500;

/// Workers that sum updates of ranges of whole numbers. All of them keep what they sum.
class RoundedSums {
 public:
  RoundedSums(std::string algorithm, std::size_t workers, std::uint64_t seed,
              bool shards_optimizer = false, std::size_t buckets = 1)
      : algorithm_(std::move(algorithm)),
        shards_optimizer_(shards_optimizer),
        random_(seed),
        layout_(std::make_shared<const Layout>(make_layout(
            std::vector(
                ranges,
                models::Parameter{.name = "w", .shape = {elements / 10, 10}, .row_sparse = true}),
            sizeof(float), 1))),
        applier_(merge_applier<float>(
            [](const MergeTarget&, std::span<float> value, std::span<const float> update) {
              std::ranges::transform(value, update, value.begin(), std::plus<float>{});
            })),
        buckets_(make_buckets(*layout_, buckets)),
        expected_(ranges * elements) {
    for (std::size_t i = 0; i < workers; ++i) {
      residuals_.push_back(std::make_shared<SumResidual>());
      auto& values = values_.emplace_back();
      for (std::size_t r = 0; r < ranges; ++r)
        values.push_back({.value = Buffer::zeros(elements, sizeof(float)),
                          .slots = Buffer::zeros(0, sizeof(float))});
    }
    begin_epoch();
  }

  /// All sum new updates, in messages that arrive in any order.
  void sum() {
    start(draw());
    while (!in_flight_.empty()) deliver_one();
    finish();
  }
  /// A sum is given up after some messages, and made again.
  void give_up_and_sum() {
    const auto updates = draw();
    start(updates);
    for (std::uint64_t i = random_.below(40); i > 0 && !in_flight_.empty(); --i) deliver_one();
    begin_epoch();
    start(updates);
    while (!in_flight_.empty()) deliver_one();
    finish();
  }
  /// A worker is gone, with its residual.
  void remove(std::size_t worker) {
    const auto at = static_cast<std::ptrdiff_t>(worker);
    subtract_errors(expected_, *residuals_[worker]);
    residuals_.erase(residuals_.begin() + at);
    values_.erase(values_.begin() + at);
    begin_epoch();
  }

  /// The values of all workers are equal, and add up with the residuals to all updates.
  void expect_exact() const {
    std::vector<float> all = expected_;
    for (const auto& residual : residuals_) subtract_errors(all, *residual);
    for (const auto& values_of_ranges : values_) {
      std::vector<float> values;
      for (const RangeValues& range : values_of_ranges)
        std::ranges::copy(std::as_const(*range.value).as<float>(), std::back_inserter(values));
      EXPECT_EQ(values, all);
    }
  }
  [[nodiscard]] bool has_residual() const {
    return std::ranges::any_of(residuals_, [](const auto& residual) {
      return std::ranges::any_of(residual->errors, [](float error) { return error != 0; });
    });
  }

 private:
  using Updates = std::vector<Update>;
  struct InFlight {
    Rank from;
    Rank to;
    RoundSum::Message message;
  };

  void subtract_errors(std::vector<float>& from, const SumResidual& residual) const {
    const auto offsets = SumOffsets::in_order(*layout_, all_ranges(*layout_), 1).errors;
    for (std::size_t r = 0; r < ranges && !residual.errors.empty(); ++r)
      for (std::size_t i = 0; i < elements; ++i)
        from[r * elements + i] -= residual.errors[offsets[r] + i];
  }
  void begin_epoch() {
    ++epoch_;
    in_flight_.clear();
    sums_.clear();
    for (std::size_t i = 0; i < values_.size(); ++i)
      sums_.push_back(make_round_sum({.layout = layout_,
                                      .applier = applier_,
                                      .algorithm = algorithm_,
                                      .buckets = buckets_,
                                      .epoch = epoch_,
                                      .workers = values_.size(),
                                      .self = static_cast<Rank>(i),
                                      .residual = residuals_[i],
                                      .shards = shards()}));
  }
  [[nodiscard]] std::shared_ptr<const OptimizerShards> shards() const {
    if (!shards_optimizer_) return nullptr;
    Configuration configuration;
    for (MemberId id = 0; id < values_.size(); ++id)
      configuration.members.push_back({id, 1, true, true});
    return std::make_shared<const OptimizerShards>(configuration);
  }
  Updates draw() {
    Updates updates;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      Update& update = updates.emplace_back(Update{.parts = {}, .samples = 70'001});
      for (RangeId r = 0; r < ranges; ++r) {
        auto buffer = Buffer::make<float>(elements);
        for (std::size_t e = 0; e < elements; ++e) {
          const float value = static_cast<float>(random_.below(65'536)) - 32'768;
          buffer->as<float>()[e] = value;
          expected_[r * elements + e] += value;
        }
        update.parts.push_back({r, {std::move(buffer), 0, elements, nullptr}});
      }
    }
    return updates;
  }
  void start(const Updates& updates) {
    updates_ = updates;
    for (Rank i = 0; i < sums_.size(); ++i) go_on(i);
  }
  /// Starts what the worker can start.
  void go_on(Rank i) {
    while (!sums_[i]->is_complete() && sums_[i]->can_start())
      run(i, [&](auto& out) { sums_[i]->start(out, &updates_[i], 60'000, values_[i]); });
  }
  void run(Rank from, const std::function<void(RoundSum::Sends&)>& event) {
    RoundSum::Sends sends;
    event(sends);
    for (auto& [to, message] : sends) {
      const auto* piece = std::get_if<SumPiece>(&message);
      const bool is_rounded = piece && !(shards_optimizer_ && piece->move_round == values_round);
      if (is_rounded && !piece->values.empty()) {
        EXPECT_TRUE(piece->values.travels_compact());
        for (const float value : piece->values.as<float>())
          EXPECT_EQ(std::bit_cast<std::uint32_t>(value) & 0xFFFFU, 0U) << value;
      }
      in_flight_.push_back({from, to, std::move(message)});
    }
  }
  void deliver_one() {
    const auto at = static_cast<std::ptrdiff_t>(random_.below(in_flight_.size()));
    const InFlight sent = std::move(in_flight_[static_cast<std::size_t>(at)]);
    in_flight_.erase(in_flight_.begin() + at);
    run(sent.to, [&](auto& out) {
      std::visit([&](const auto& m) { sums_[sent.to]->on(out, sent.from, m); }, sent.message);
    });
    go_on(sent.to);
  }
  void finish() {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      ASSERT_TRUE(sums_[i]->is_complete());
      for (const auto& part : sums_[i]->contributions()) {
        ASSERT_TRUE(part.has_value());
        EXPECT_EQ(part->steps, 60'000U);
        EXPECT_EQ(part->samples, 70'001U);
      }
      residuals_[i]->commit();
      sums_[i]->apply(values_[i]);
    }
  }

  std::string algorithm_;
  bool shards_optimizer_;
  Random random_;
  std::shared_ptr<const Layout> layout_;
  ApplierPtr applier_;
  std::vector<Bucket> buckets_;
  Epoch epoch_ = 0;
  std::vector<std::shared_ptr<SumResidual>> residuals_;
  std::vector<std::vector<RangeValues>> values_;
  std::vector<std::unique_ptr<RoundSum>> sums_;
  Updates updates_;
  std::vector<InFlight> in_flight_;
  /// The sum of all updates, without what is lost with workers.
  std::vector<float> expected_;
};

TEST(RoundSum, ThatRoundsWhatItSendsLosesNothing) {
  for (const char* algorithm : {"", "ring", "tree", "double-tree", "halving", "parts", "groups:2",
                                "bcube:k=2", "trees:0-1+1-2+2-3x2"})
    for (std::size_t workers = 1; workers <= 9; ++workers) {
      SCOPED_TRACE(std::string{algorithm} + ", " + std::to_string(workers) + " workers");
      RoundedSums sums{algorithm, workers, workers};
      for (int round = 0; round < 4; ++round) sums.sum();
      sums.expect_exact();
      EXPECT_EQ(sums.has_residual(), workers > 1);
    }
}

TEST(RoundSum, InBucketsLosesNothing) {
  for (const char* algorithm : {"", "ring", "double-tree", "halving"})
    for (std::size_t workers = 1; workers <= 6; ++workers)
      for (const bool shards_optimizer : {false, true})
        for (std::size_t buckets = 2; buckets <= ranges; ++buckets) {
          RoundedSums sums{algorithm, workers, workers, shards_optimizer, buckets};
          for (int round = 0; round < 4; ++round) sums.sum();
          sums.expect_exact();
          EXPECT_EQ(sums.has_residual(), workers > 1);
        }
}

TEST(RoundSum, WithShardsRoundsUpdatesAndNotValues) {
  for (std::size_t workers = 1; workers <= 9; ++workers) {
    SCOPED_TRACE(workers);
    RoundedSums sums{"", workers, workers, true};
    for (int round = 0; round < 4; ++round) sums.sum();
    sums.expect_exact();
    EXPECT_EQ(sums.has_residual(), workers > 1);
  }
}

TEST(RoundSum, ThatIsMadeAgainAfterADeathKeepsItsResidual) {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    RoundedSums sums{"", 6, seed, seed % 2 == 1, 1 + seed % 3};
    for (std::size_t workers = 6; workers > 2; --workers) {
      sums.sum();
      sums.give_up_and_sum();
      sums.expect_exact();
      sums.remove(seed % workers);
      sums.sum();
      sums.expect_exact();
    }
  }
}

}  // namespace
}  // namespace starling::core
