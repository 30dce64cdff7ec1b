/// Sums whose pieces are sent with the precision of bfloat16.
#include "starling/engine/exchange/allreduce/round_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/exchange/layout.hpp"

namespace starling::core {
namespace {

using collective::Rank;

constexpr std::size_t elements = 500;

/// Workers that sum updates of one range of whole numbers. All of them keep what they sum.
class RoundedSums {
 public:
  RoundedSums(std::string algorithm, std::size_t workers, std::uint64_t seed)
      : algorithm_(std::move(algorithm)),
        random_(seed),
        layout_(std::make_shared<const Layout>(
            make_layout({{.name = "w", .shape = {elements}}}, sizeof(float), 1))),
        applier_(merge_applier<float>(
            [](const MergeTarget&, std::span<float> value, std::span<const float> update) {
              std::ranges::transform(value, update, value.begin(), std::plus<float>{});
            })),
        expected_(elements) {
    for (std::size_t i = 0; i < workers; ++i) {
      residuals_.push_back(std::make_shared<SumResidual>());
      values_.push_back({{.value = Buffer::zeros(elements, sizeof(float)),
                          .slots = Buffer::zeros(0, sizeof(float))}});
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
    for (std::size_t i = 0; i < residuals_[worker]->errors.size() && i < elements; ++i)
      expected_[i] -= residuals_[worker]->errors[i];
    residuals_.erase(residuals_.begin() + at);
    values_.erase(values_.begin() + at);
    begin_epoch();
  }

  /// The values of all workers are equal, and add up with the residuals to all updates.
  void expect_exact() const {
    std::vector<float> all = expected_;
    for (const auto& residual : residuals_)
      for (std::size_t i = 0; i < residual->errors.size() && i < elements; ++i)
        all[i] -= residual->errors[i];
    for (const auto& ranges : values_) {
      const auto values = std::as_const(*ranges.front().value).as<float>();
      EXPECT_EQ((std::vector<float>{values.begin(), values.end()}), all);
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

  void begin_epoch() {
    ++epoch_;
    in_flight_.clear();
    sums_.clear();
    for (std::size_t i = 0; i < values_.size(); ++i)
      sums_.push_back(make_round_sum({.layout = layout_,
                                      .applier = applier_,
                                      .algorithm = algorithm_,
                                      .epoch = epoch_,
                                      .workers = values_.size(),
                                      .self = static_cast<Rank>(i),
                                      .residual = residuals_[i]}));
  }
  Updates draw() {
    Updates updates;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      auto buffer = Buffer::make<float>(elements);
      for (std::size_t e = 0; e < elements; ++e) {
        const float value = static_cast<float>(random_.below(65'536)) - 32'768;
        buffer->as<float>()[e] = value;
        expected_[e] += value;
      }
      updates.push_back(
          {.parts = {{0, {std::move(buffer), 0, elements, nullptr}}}, .samples = 70'001});
    }
    return updates;
  }
  void start(const Updates& updates) {
    for (Rank i = 0; i < sums_.size(); ++i)
      run(i, [&](auto& out) { sums_[i]->start(out, &updates[i], 60'000); });
  }
  void run(Rank from, const std::function<void(RoundSum::Sends&)>& event) {
    RoundSum::Sends sends;
    event(sends);
    for (auto& [to, message] : sends) {
      if (const auto* piece = std::get_if<SumPiece>(&message); piece && !piece->values.empty()) {
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
  }
  void finish() {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      ASSERT_TRUE(sums_[i]->is_complete());
      for (const auto& part : sums_[i]->parts()) {
        ASSERT_TRUE(part.has_value());
        EXPECT_EQ(part->steps, 60'000U);
        EXPECT_EQ(part->samples, 70'001U);
      }
      residuals_[i]->commit();
      sums_[i]->apply(values_[i]);
    }
  }

  std::string algorithm_;
  Random random_;
  std::shared_ptr<const Layout> layout_;
  ApplierPtr applier_;
  Epoch epoch_ = 0;
  std::vector<std::shared_ptr<SumResidual>> residuals_;
  std::vector<std::vector<RangeValues>> values_;
  std::vector<std::unique_ptr<RoundSum>> sums_;
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

TEST(RoundSum, ThatIsMadeAgainAfterADeathKeepsItsResidual) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    RoundedSums sums{"", 6, seed};
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
