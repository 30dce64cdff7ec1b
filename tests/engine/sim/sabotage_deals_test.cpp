/// Tests that the checker finds broken dealing of samples within 1,000 seeds.
#include <gtest/gtest.h>

#include "tests/engine/sim/sabotage.hpp"

namespace starling::sim {
namespace {

/// A worker's report leaves out the last step that it has begun.
class StepNotReported : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* report = payload_as<core::DealReport>(envelope);
    if (report == nullptr || report->taken.value_or(0) == 0) return true;
    core::DealReport altered = *report;
    --*altered.taken;
    replace_payload(envelope, altered);
    return true;
  }
};

TEST(Sabotage, SamplesOfAnUnreportedStepAreFound) {
  EXPECT_TRUE(seeds_until_found<StepNotReported>(1000, "was taken twice"));
}

/// Nobody reports the updates of workers that have died.
class DeadNotReported : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* report = payload_as<core::DealReport>(envelope);
    if (report == nullptr) return true;
    core::DealReport altered = *report;
    altered.progress.clear();
    replace_payload(envelope, altered);
    return true;
  }
};

TEST(Sabotage, SamplesOfUnreportedDeadWorkersAreFound) {
  EXPECT_TRUE(seeds_until_found<DeadNotReported>(1000, "was taken twice"));
}

/// A worker reports many steps that it has not begun.
class TooManyStepsReported : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* report = payload_as<core::DealReport>(envelope);
    if (report == nullptr || !report->taken) return true;
    core::DealReport altered = *report;
    *altered.taken += 20;
    replace_payload(envelope, altered);
    return true;
  }
};

TEST(Sabotage, SamplesThatNobodyTakesAreFound) {
  EXPECT_TRUE(seeds_until_found<TooManyStepsReported>(1000, "were lost"));
}

/// Nobody but the dealer learns what was taken before a deal.
class DealWithoutPast : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, core::Envelope& envelope) override {
    const auto* next = payload_as<core::NewDeal>(envelope);
    if (next == nullptr) return true;
    core::NewDeal altered = *next;
    altered.deal.former.clear();
    replace_payload(envelope, altered);
    return true;
  }
};

TEST(Sabotage, WorkersThatDealDifferentlyAreFound) {
  EXPECT_TRUE(seeds_until_found<DealWithoutPast>(1000, "was taken twice"));
}

}  // namespace
}  // namespace starling::sim
