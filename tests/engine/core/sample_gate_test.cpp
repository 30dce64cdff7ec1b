/// Tests of SampleGate that would be too long for transcripts.
#include "starling/engine/core/worker/sample_gate.hpp"

#include <gtest/gtest.h>

namespace starling::core {
namespace {

/// If no member of a draw has begun, the next draw is twice as large, up to all members.
TEST(SampleGate, JoinerDrawsAgainAsLongAsNoOtherWorkerHasBegun) {
  const auto members =
      std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1, 2});
  SampleGate gate{barrier::sampled(barrier::Bsp{}, 1), barrier::Recheck::distributed(), 2, members};
  Random random{1};
  Effects out;
  Time now{};
  ASSERT_FALSE(gate.enter({now, random, out}));
  for (std::uint64_t round = 1; round <= 200; ++round) {
    const Effects queries = std::exchange(out, {});
    std::size_t asked = 0;
    for (const Effect& effect : queries) {
      const auto* send = std::get_if<Send>(&effect);
      if (send == nullptr) continue;
      ++asked;
      const MemberId other = std::get<ToMember>(send->to).id;
      ASSERT_FALSE(gate.on({now, random, out}, StepAnswer{other, round, not_begun}));
    }
    ASSERT_EQ(asked, round == 1 ? 1U : 2U) << "round " << round;
    now += std::chrono::seconds{2};
    ASSERT_FALSE(gate.on_timer({now, random, out}));
  }
}

}  // namespace
}  // namespace starling::core
