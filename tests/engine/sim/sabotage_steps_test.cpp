/// Deliberately broken cores, broken from outside: here barriers, workers and coordinators go wrong
/// about who has made which step.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>

#include "tests/engine/sim/sabotage.hpp"

namespace starling::sim {
namespace {

using core::Envelope;

/// A worker that is asked for its step counts as finished after 20 ms without an answer.
class PatientlyIgnored : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    auto* node = world.node(envelope.to);
    if (node == nullptr || node->configuration() == nullptr) return true;
    const auto* query = peer_message<core::StepQuery>(envelope);
    if (query == nullptr) return true;
    // The requester receives no other answer: it takes the silence for consent.
    world.whisper(world.now() + std::chrono::milliseconds{20}, envelope.to, envelope.from,
                  core::StepAnswer{envelope.to, query->draw, barrier::finished});
    blank(envelope);
    return true;
  }
};

TEST(Sabotage, BarriersThatIgnoreSilenceAreFound) {
  EXPECT_TRUE(found_after<PatientlyIgnored>(1000, "passed the barrier"));
}

/// Workers answer that they have not begun, and so hold no other worker back.
class NeverBegun : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* query = peer_message<core::StepQuery>(envelope);
    if (query == nullptr) return true;
    world.inject(world.now(), envelope.to, envelope.from,
                 core::StepAnswer{envelope.to, query->draw, core::not_begun});
    blank(envelope);
    return true;
  }
};

TEST(Sabotage, WorkersThatDenyHavingBegunAreFound) {
  EXPECT_TRUE(found_after<NeverBegun>(20, "says that it has not begun"));
}

/// Workers answer that they are a step further than they are.
class Boaster : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* query = peer_message<core::StepQuery>(envelope);
    auto* node = world.node(envelope.to);
    if (query == nullptr || node == nullptr || node->worker() == nullptr) return true;
    world.inject(world.now(), envelope.to, envelope.from,
                 core::StepAnswer{envelope.to, query->draw, node->worker()->step() + 1});
    blank(envelope);
    return true;
  }
};

TEST(Sabotage, WorkersThatClaimMoreThanTheyDidAreFound) {
  EXPECT_TRUE(found_after<Boaster>(20, "says that it is at"));
}

/// The coordinator lets every worker that arrives proceed.
class HastyCoordinator : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* arrived = peer_message<core::Arrived>(envelope);
    if (arrived != nullptr)
      world.inject(world.now(), envelope.to, envelope.from, core::Proceed{arrived->step});
    return true;
  }
};

TEST(Sabotage, WorkersThatAreLetGoEarlyAreFound) {
  EXPECT_TRUE(found_after<HastyCoordinator>(50, "the coordinator lets worker"));
}

/// Workers take it that they were let go when they were not.
class DisobedientWorker : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* arrived = peer_message<core::Arrived>(envelope);
    if (arrived != nullptr)
      world.whisper(world.now(), envelope.to, envelope.from, core::Proceed{arrived->step});
    return true;
  }
};

TEST(Sabotage, WorkersThatDoNotWaitForTheCoordinatorAreFound) {
  EXPECT_TRUE(found_after<DisobedientWorker>(50, "without the coordinator's word"));
}

/// A coordinator that has taken over lets every worker that waits proceed, without the status of
/// the others.
class HastySuccessor : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* standing = peer_message<core::WorkerStatus>(envelope);
    if (standing != nullptr && standing->phase == core::WorkerStatus::Phase::waiting)
      world.inject(world.now(), envelope.to, envelope.from, core::Proceed{standing->step});
    return true;
  }
};

TEST(Sabotage, SuccessorsThatDoNotAwaitEveryonesWordAreFound) {
  EXPECT_TRUE(found_after<HastySuccessor>(1000, "the coordinator lets worker"));
}

/// Workers that wait proceed when they learn of a new coordinator.
class TakesChangeForConsent : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* next = peer_message<core::ConfigurationPtr>(envelope);
    auto* node = world.node(envelope.to);
    if (next == nullptr || node == nullptr || node->worker() == nullptr) return true;
    if ((*next)->epoch > node->configuration()->epoch && node->worker()->waiting() &&
        (*next)->coordinator && !(*next)->keeps_coordinator_of(*node->configuration()))
      world.whisper(world.now(), *(*next)->coordinator, envelope.to,
                    core::Proceed{node->worker()->step()});
    return true;
  }
};

TEST(Sabotage, WorkersThatTakeANewCoordinatorForConsentAreFound) {
  EXPECT_TRUE(found_after<TakesChangeForConsent>(200, "without the coordinator's word"));
}

/// Workers report a step too many to a new coordinator.
class BoastfulStanding : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, Envelope& envelope) override {
    const auto* standing = peer_message<core::WorkerStatus>(envelope);
    if (standing == nullptr || standing->phase != core::WorkerStatus::Phase::waiting) return true;
    core::WorkerStatus further = *standing;
    ++further.step;
    world.inject(world.now(), envelope.from, envelope.to, further);
    blank(envelope);
    return true;
  }
};

TEST(Sabotage, WorkersThatTellANewCoordinatorMoreThanTheyDidAreFound) {
  EXPECT_TRUE(found_after<BoastfulStanding>(1000, "says to the coordinator that it is at"));
}

/// New coordinators do not receive the status of the workers.
class NoStanding : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    if (peer_message<core::WorkerStatus>(envelope) != nullptr) blank(envelope);
    return true;
  }
};

TEST(Sabotage, CoordinatorsThatNeverTakeOverAreFound) {
  EXPECT_TRUE(found_after<NoStanding>(200, "stuck: "));
}

/// New coordinators do not receive the steps of members that are gone.
class NothingHeld : public Sabotage {
 public:
  bool on_arrival(ChaosWorld&, Envelope& envelope) override {
    const auto* standing = peer_message<core::WorkerStatus>(envelope);
    if (standing == nullptr || standing->held == 0) return true;
    core::WorkerStatus less = *standing;
    less.held = 0;
    replace(envelope, less);
    return true;
  }
};

/// The only worker keeps the steps too, after the first coordinator has died and come back; then it
/// dies and comes back itself. Only the owners know how many rounds there were.
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
  NothingHeld saboteur;
  EXPECT_NE(run_chaos(scenario, &saboteur).violation.find("was acknowledged"), std::string::npos);
}

}  // namespace
}  // namespace starling::sim
