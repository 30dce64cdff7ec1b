/// Exchanges with rounds whose sums are sent with the precision of bfloat16.
#include <gtest/gtest.h>

#include <string>

#include "starling/engine/exchange/allreduce/allreduce.hpp"
#include "starling/engine/exchange/average/average.hpp"
#include "tests/engine/exchange/rounds_harness.hpp"

namespace starling::core {
namespace {

/// Each update adds a whole number, which a float holds exactly and bfloat16 does not.
template <class E>
class RoundedRounds : public RoundsHarness<E, float> {
 protected:
  using Base = RoundsHarness<E, float>;

  /// Workers join at any message, also when only some have completed the round. Rounding errors
  /// are sent later, so no part of an update is lost or counted twice.
  void expect_exact_sums(const std::string& name, std::uint64_t seed) {
    SCOPED_TRACE(name + ", seed " + std::to_string(seed));
    this->name_ = name;
    this->random_ = Random{seed};
    this->rounds_to_bf16_ = true;
    this->applier_ =
        merge_applier<float>([](const auto&, auto value, auto update) { value[0] += update[0]; });
    this->written_.clear();
    this->start(3, 2);
    double expected = 0;
    MemberId joiner = 10;
    for (Step step = 1; step <= 20; ++step) {
      // Steps without a change send what is left of the errors.
      const bool is_last = step > 12;
      const auto write = [&](MemberId id) {
        const double value = is_last ? 0 : static_cast<double>(this->random_.below(65'536));
        expected += value;
        this->write(id, step, value);
      };
      for (const Member& member : this->configuration_.members) write(member.id);
      for (std::uint64_t i = this->random_.below(40); i > 0 && !this->in_flight_.empty(); --i)
        this->deliver_one();
      if (!is_last && step % 2 == 0) {
        this->add(joiner);
        this->adopt(joiner);
        this->enter(joiner);
        this->deliver_all();
        this->adopt_all();
        this->deliver_all();
        if (this->exchange(joiner).synced_step() < step) write(joiner);
        ++joiner;
      }
      this->deliver_all();
      for (const Member& member : this->configuration_.members)
        ASSERT_EQ(this->exchange(member.id).synced_step(), step);
    }
    ASSERT_EQ(this->failure_, "");
    for (const Member& member : this->configuration_.members)
      for (RangeId r = 0; r < 3; ++r) EXPECT_EQ(this->sum(member.id, r), expected);
  }
};

using RoundedAllreduce = RoundedRounds<AllreduceExchange>;
using RoundedAverage = RoundedRounds<AverageExchange>;

TEST_F(RoundedAllreduce, LosesNothingWhenWorkersJoin) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const char* name : {"allreduce", "allreduce:ring", "allreduce:tree", "allreduce:parts",
                             "allreduce:ring,buckets=2"})
      expect_exact_sums(name, seed);
}

TEST_F(RoundedAverage, LosesNothingWhenWorkersJoin) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) expect_exact_sums("average:every=1", seed);
}

}  // namespace
}  // namespace starling::core
