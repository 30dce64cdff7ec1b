/// Tests that exact and plain sampling give the same distributions, with more workers and with
/// longer and more runs than steps_agree_test.cpp.
#include <gtest/gtest.h>

#include "tests/engine/sim/steps_agree.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

class ManyExactAndPlain : public testing::TestWithParam<Comparison> {};

TEST_P(ManyExactAndPlain, HaveTheSameDistributions) { expect_exact_equals_plain(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Policies, ManyExactAndPlain,
    testing::Values(Comparison{"pbsp:beta=10", "arrival", 50, 20s, 1000},
                    Comparison{"pssp:s=4,beta=10", "arrival", 50, 20s, 1000},
                    Comparison{"pbsp:beta=10", "arrival", 200, 10s, 100},
                    Comparison{"pssp:s=4,beta=10", "arrival", 200, 10s, 200, true},
                    Comparison{"pbsp:beta=10", "arrival", 1000, 2s, 50},
                    Comparison{"pssp:s=4,beta=10", "arrival", 1000, 4s, 50},
                    Comparison{"pbsp:beta=10", "notify", 50, 20s, 1000, true},
                    Comparison{"pssp:s=4,beta=10", "interval:auto", 50, 20s, 1000, true},
                    Comparison{"pbsp:beta=10", "notify+interval:auto", 200, 20s, 300}));

}  // namespace
}  // namespace starling::sim
