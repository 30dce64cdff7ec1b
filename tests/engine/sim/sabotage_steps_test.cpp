/// Tests that the checker finds deliberately broken cores. In this file, barriers, workers and
/// coordinators use or report wrong steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>

#include "tests/engine/sim/sabotage.hpp"

namespace starling::sim {
namespace {

using core::Envelope;

/// A worker that is asked for its step counts as finished after 20 ms without an answer.
class SilenceCountsAsFinished : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    auto* node = world.node(envelope.to);
    if (node == nullptr || node->configuration() == nullptr) return true;
    const auto* query = payload_as<core::StepQuery>(envelope);
    if (query == nullptr) return true;
    // The requester receives no other answer, so it passes as if the worker had finished.
    world.forge_arrival(world.now() + std::chrono::milliseconds{20}, envelope.to, envelope.from,
                        core::StepAnswer{envelope.to, query->draw, barrier::finished});
    replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, BarriersThatIgnoreSilenceAreFound) {
  EXPECT_TRUE(seeds_until_found<SilenceCountsAsFinished>(1000, "passed the barrier"));
}

/// The same under barriers that tune themselves, which choose the step to be reached at each draw.
class SilenceCountsAsFinishedIfTuned : public SilenceCountsAsFinished {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    return !is_tuned_ || SilenceCountsAsFinished::on_arrival(world, envelope);
  }
  barrier::Barrier barrier_of_cores(const barrier::Barrier& of_scenario) override {
    is_tuned_ = barrier::is_tuned(of_scenario);
    return of_scenario;
  }

 private:
  bool is_tuned_ = false;
};

TEST(Sabotage, TunedBarriersThatIgnoreSilenceAreFound) {
  EXPECT_TRUE(seeds_until_found<SilenceCountsAsFinishedIfTuned>(1000, "passed the barrier"));
}

/// Workers answer that they have not begun, so no other worker waits for them.
class NeverBegun : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* query = payload_as<core::StepQuery>(envelope);
    if (query == nullptr) return true;
    world.forge_sending(world.now(), envelope.to, envelope.from,
                        core::StepAnswer{envelope.to, query->draw, core::not_begun});
    replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, WorkersThatDenyHavingBegunAreFound) {
  EXPECT_TRUE(seeds_until_found<NeverBegun>(20, "says that it has not begun"));
}

/// Workers answer with one step more than their own.
class OverstatedStep : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* query = payload_as<core::StepQuery>(envelope);
    auto* node = world.node(envelope.to);
    if (query == nullptr || node == nullptr || node->role<core::Training>().worker() == nullptr)
      return true;
    world.forge_sending(world.now(), envelope.to, envelope.from,
                        core::StepAnswer{envelope.to, query->draw,
                                         node->role<core::Training>().worker()->step() + 1});
    replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, WorkersThatOverstateTheirStepAreFound) {
  EXPECT_TRUE(seeds_until_found<OverstatedStep>(20, "says that it is at"));
}

/// The coordinator lets every worker proceed as soon as it arrives.
class HastyCoordinator : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* arrived = payload_as<core::Arrived>(envelope);
    if (arrived != nullptr)
      world.forge_sending(world.now(), envelope.to, envelope.from, core::Proceed{arrived->step});
    return true;
  }
};

TEST(Sabotage, CoordinatorsThatLetWorkersPassEarlyAreFound) {
  EXPECT_TRUE(seeds_until_found<HastyCoordinator>(50, "the coordinator lets worker"));
}

/// Workers proceed as soon as they arrive, without the coordinator's Proceed.
class DisobedientWorker : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* arrived = payload_as<core::Arrived>(envelope);
    if (arrived != nullptr)
      world.forge_arrival(world.now(), envelope.to, envelope.from, core::Proceed{arrived->step});
    return true;
  }
};

TEST(Sabotage, WorkersThatDoNotWaitForTheCoordinatorAreFound) {
  EXPECT_TRUE(seeds_until_found<DisobedientWorker>(50, "without the coordinator's permission"));
}

/// A coordinator that has taken over lets each waiting worker proceed when it receives the worker's
/// status, without awaiting the status of the others.
class HastySuccessor : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* status = payload_as<core::WorkerStatus>(envelope);
    if (status != nullptr && status->phase == core::WorkerStatus::Phase::waiting)
      world.forge_sending(world.now(), envelope.to, envelope.from, core::Proceed{status->step});
    return true;
  }
};

TEST(Sabotage, SuccessorsThatDoNotAwaitEveryStatusAreFound) {
  EXPECT_TRUE(seeds_until_found<HastySuccessor>(1000, "the coordinator lets worker"));
}

/// Waiting workers proceed when they learn of a new coordinator.
class PassesAtCoordinatorChange : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* next = payload_as<core::ConfigurationPtr>(envelope);
    auto* node = world.node(envelope.to);
    if (next == nullptr || node == nullptr || node->role<core::Training>().worker() == nullptr)
      return true;
    if ((*next)->epoch > node->configuration()->epoch &&
        node->role<core::Training>().worker()->is_waiting() && (*next)->coordinator &&
        !(*next)->has_same_coordinator_as(*node->configuration()))
      world.forge_arrival(world.now(), *(*next)->coordinator, envelope.to,
                          core::Proceed{node->role<core::Training>().worker()->step()});
    return true;
  }
};

TEST(Sabotage, WorkersThatPassBecauseTheCoordinatorChangedAreFound) {
  EXPECT_TRUE(
      seeds_until_found<PassesAtCoordinatorChange>(200, "without the coordinator's permission"));
}

/// Workers report to a new coordinator one step more than their own.
class OverstatedStatus : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* status = payload_as<core::WorkerStatus>(envelope);
    if (status == nullptr || status->phase != core::WorkerStatus::Phase::waiting) return true;
    core::WorkerStatus altered = *status;
    ++altered.step;
    world.forge_sending(world.now(), envelope.from, envelope.to, altered);
    replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, WorkersThatOverstateTheirStepToANewCoordinatorAreFound) {
  EXPECT_TRUE(seeds_until_found<OverstatedStatus>(1000, "says to the coordinator that it is at"));
}

/// New coordinators do not receive the status of the workers.
class StatusDropped : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    if (payload_as<core::WorkerStatus>(envelope) != nullptr) replace_by_probe(envelope);
    return true;
  }
};

TEST(Sabotage, CoordinatorsThatNeverTakeOverAreFound) {
  EXPECT_TRUE(seeds_until_found<StatusDropped>(200, "stuck: "));
}

/// New coordinators do not receive the steps that owners hold of members that are gone.
class HeldStepsDropped : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* status = payload_as<core::WorkerStatus>(envelope);
    if (status == nullptr || status->held == 0) return true;
    core::WorkerStatus altered = *status;
    altered.held = 0;
    replace_payload(envelope, altered);
    return true;
  }
};

/// After the first coordinator has crashed, the only worker is the coordinator too. Then this
/// member crashes and restarts, so that only the owners know how many rounds there were.
TEST(Sabotage, CoordinatorsThatDoNotAskTheOwnersAreFound) {
  using std::chrono::milliseconds;
  Scenario scenario;
  scenario.mode = core::Mode::central;
  scenario.barrier = {barrier::Bsp{}, std::nullopt};
  scenario.workers = 1;
  scenario.servers = 4;
  scenario.steps = 30;
  scenario.compute = milliseconds{20};
  const auto crash = [&](NodeId node, milliseconds at) {
    scenario.faults.push_back(
        {.kind = Fault::Kind::crash, .node = node, .at = at, .lasts = milliseconds{50}});
  };
  crash(scenario.coordinator(), milliseconds{20});
  crash(0, milliseconds{500});
  const auto report = run_chaos(scenario);
  EXPECT_EQ(report.violation, "");
  EXPECT_EQ(report.faults[static_cast<std::size_t>(Fault::Kind::crash)], 2U);
  HeldStepsDropped saboteur;
  EXPECT_NE(run_chaos(scenario, &saboteur).violation.find("was acknowledged"), std::string::npos);
}

/// Workers run three steps further than the coordinator permits.
class LongRuns : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* proceed = payload_as<core::Proceed>(envelope);
    if (proceed != nullptr)
      replace_payload(
          envelope, core::Proceed{proceed->step, std::max(proceed->until, proceed->step + 1) + 3});
    return true;
  }
};

TEST(Sabotage, WorkersThatRunFurtherThanPermittedAreFound) {
  EXPECT_TRUE(seeds_until_found<LongRuns>(50, "goes on without the coordinator's permission"));
}

/// Gates that decide by another barrier than the scenario's. Only barriers that promise no floor
/// are altered, so that nothing but the gates' decisions can be found wrong.
class OtherBarrierOfGates : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope&) override { return true; }
  barrier::Barrier barrier_of_cores(const barrier::Barrier& of_scenario) override {
    barrier::Barrier altered = of_scenario;
    if (altered.sample && !barrier::promised_floor(altered, 1)) alter(altered.rule);
    return altered;
  }
  virtual void alter(barrier::AnyRule& rule) = 0;
};

/// Runs do not end, as if the gate forgot how long they may be.
class EndlessRuns : public OtherBarrierOfGates {
  void alter(barrier::AnyRule& rule) override {
    if (auto* dssp = std::get_if<barrier::Dssp>(&rule)) dssp->high = 1000;
  }
};

TEST(Sabotage, RunsThatDoNotEndAreFound) {
  EXPECT_TRUE(seeds_until_found<EndlessRuns>(1000, "to run to step"));
}

/// Gates let workers get three steps further ahead than their barrier does.
class LowFloor : public OtherBarrierOfGates {
  void alter(barrier::AnyRule& rule) override {
    if (auto* fluent = std::get_if<barrier::Fluent>(&rule)) fluent->staleness += 3;
    if (auto* dssp = std::get_if<barrier::Dssp>(&rule)) {
      dssp->low += 3;
      dssp->high += 3;
    }
  }
};

TEST(Sabotage, GatesWithAWrongFloorAreFound) {
  EXPECT_TRUE(seeds_until_found<LowFloor>(1000, "has passed the barrier"));
}

/// Workers receive the paces of others with one field altered.
enum class PaceField { interval, duration, waits };
template <PaceField field>
class AlteredPaces : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* answer = payload_as<core::StepAnswer>(envelope);
    if (answer == nullptr || !answer->pace) return true;
    core::StepAnswer altered = *answer;
    if (field == PaceField::interval) altered.pace->interval_ns = 2 * answer->pace->interval_ns + 1;
    if (field == PaceField::duration) altered.pace->duration_ns = 2 * answer->pace->duration_ns + 1;
    if (field == PaceField::waits) altered.pace->waits = !answer->pace->waits;
    replace_payload(envelope, altered);
    return true;
  }
};

TEST(Sabotage, GatesThatChangePacesAreFound) {
  constexpr const char* expected = "by a pace that no worker of its draw";
  EXPECT_TRUE(seeds_until_found<AlteredPaces<PaceField::interval>>(200, expected));
  EXPECT_TRUE(seeds_until_found<AlteredPaces<PaceField::duration>>(200, expected));
  EXPECT_TRUE(seeds_until_found<AlteredPaces<PaceField::waits>>(200, expected));
}

/// A worker that joins receives the steps of others, or the step that the coordinator tells it,
/// raised by 3.
template <class Message>
class LateEntry : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* told = payload_as<Message>(envelope);
    auto* node = world.node(envelope.to);
    if (told == nullptr || node == nullptr || told->step >= barrier::finished) return true;
    const core::Worker* worker = node->template role<core::Training>().worker();
    if (worker != nullptr && worker->begun()) return true;
    Message altered = *told;
    altered.step += 3;
    replace_payload(envelope, altered);
    return true;
  }
};

TEST(Sabotage, WorkersThatJoinAtAWrongStepAreFound) {
  EXPECT_TRUE(seeds_until_found<LateEntry<core::StepAnswer>>(50, "which nobody has told it"));
  EXPECT_TRUE(seeds_until_found<LateEntry<core::Proceed>>(200, "which nobody has told it"));
}

/// A quorum of one worker suffices, over samples or over all workers.
template <bool is_sampled>
class SmallQuorum : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& /*world*/, Envelope& /*envelope*/) override { return true; }
  barrier::Barrier barrier_of_cores(const barrier::Barrier& of_scenario) override {
    barrier::Barrier altered = of_scenario;
    auto* quorum = std::get_if<barrier::Quorum>(&altered.rule);
    if (quorum != nullptr && altered.sample.has_value() == is_sampled) quorum->share = 0.01;
    return altered;
  }
};

TEST(Sabotage, QuorumsThatAreTooSmallAreFound) {
  EXPECT_TRUE(seeds_until_found<SmallQuorum<true>>(100, "against its rule"));
  EXPECT_TRUE(seeds_until_found<SmallQuorum<false>>(1000, "against its rule"));
}

/// Workers are told to stop after their third step, though nobody stops the job.
class EarlyStop : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* arrived = payload_as<core::Arrived>(envelope);
    if (arrived != nullptr && arrived->step == 3)
      world.forge_sending(world.now(), envelope.to, envelope.from, core::Stop{});
    return true;
  }
};

TEST(Sabotage, WorkersThatEndEarlyAreFound) {
  EXPECT_TRUE(seeds_until_found<EarlyStop>(50, "has ended after"));
}

}  // namespace
}  // namespace starling::sim
