/// Short drills: `starling` on a few nodes under faults, each in seconds. The long drills are in
/// *_drill.cpp.
#include "tests/hosts/forwarder.hpp"
#include "tests/tools/cluster/drills.hpp"

namespace starling::program {
namespace {

const JobMode bsp{"central", "bsp"};
const JobMode peer{"peer", "pssp:s=4,beta=2"};

class FleetProgram : public Drill {};

TEST_F(FleetProgram, ThreeNodesUnderBspMakeTheModelThatOneProcessMakes) {
  ASSERT_NO_FATAL_FAILURE(begin_here(3));
  const std::string job =
      "--data digits:n=600 --model mlp:784-32-10 --optimizer sgd:lr=0.1 --batch 8 --epochs 1 "
      "--workers 6 --quiet --json --save m.safetensors " +
      flags(bsp);
  const Folder folder;
  const Ran local = run(folder, STARLING_PROGRAM, words("train " + job));
  ASSERT_EQ(local.code, 0) << local.err;
  fleet_->submit(1, job);
  const Ran remote = fleet_->finish();
  ASSERT_EQ(remote.code, 0) << remote.err;
  EXPECT_LE(distance(elements(fleet_->work().read("m.safetensors")),
                     elements(folder.read("m.safetensors"))),
            1e-5);
  EXPECT_EQ(figure(remote.out, "updates"), figure(local.out, "updates"));
}

TEST_F(FleetProgram, AFrozenNodeJoinsAgainAndTheModelIsGood) {
  ASSERT_NO_FATAL_FAILURE(begin_here(3));
  ASSERT_NO_FATAL_FAILURE(submit(peer, 400));
  fleet_->freeze(2);
  ASSERT_TRUE(fleet_->watch(15s, [&] { return fleet_->ask(0)->states["n2"] == "dead"; }));
  fleet_->watch(1s);
  fleet_->thaw(2);
  expect_good_model(60s);
  EXPECT_NE(fleet_->log(2).find("declared dead; joining again"), std::string::npos);
}

TEST_F(FleetProgram, TwoNodesMayDieAtOnceWithThreeCopies) {
  ASSERT_NO_FATAL_FAILURE(begin_here(5));
  ASSERT_NO_FATAL_FAILURE(submit(peer, 300, "--copies 3"));
  fleet_->kill(3);
  fleet_->kill(4);
  fleet_->watch(4s);
  EXPECT_TRUE(fleet_->is_training());
  expect_good_model(60s);
}

TEST_F(FleetProgram, ANewNodeAtTheAddressOfADeadOneIsFollowed) {
  ASSERT_NO_FATAL_FAILURE(begin_here(3));
  ASSERT_NO_FATAL_FAILURE(submit(peer, 250));
  const std::string address = fleet_->address(0);
  fleet_->kill(0);
  const std::size_t next = fleet_->start(0, "--listen " + address.substr(6));
  EXPECT_EQ(fleet_->address(next), address);
  ASSERT_TRUE(fleet_->watch(15s, [&] {
    const auto seen = fleet_->ask(next);
    return seen && seen->text.find(", running") != std::string::npos;
  }));
  EXPECT_TRUE(fleet_->is_training());
  expect_good_model(60s);
}

TEST_F(FleetProgram, ANodeBehindABadNetworkTrains) {
  hosts::Forwarder weather;
  weather.forward_to(hosts::free_port());
  ASSERT_NO_FATAL_FAILURE(begin_here(2));
  fleet_->start(0, "--listen 127.0.0.1:" + std::to_string(weather.target()) +
                       " --advertise 127.0.0.1:" + std::to_string(weather.port()));
  ASSERT_TRUE(fleet_->agree(20s));
  weather.set({.delay = 5ms, .jitter = 10ms, .breaking = 0.002});
  ASSERT_NO_FATAL_FAILURE(submit(peer, 200));
  weather.break_all();
  fleet_->watch(500ms);
  weather.set({.silent = true});
  fleet_->watch(700ms);
  weather.set({.delay = 5ms, .bytes_per_s = 2'000'000});
  expect_good_model(60s);
  EXPECT_GT(weather.broken(), 0U);
}

TEST_F(FleetProgram, ANodeThatIsPartitionedOffSaysThatItWaitsAndJoinsAgain) {
  ASSERT_NO_FATAL_FAILURE(begin(3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(peer, 500));
  for (const std::size_t other : {0U, 1U}) fleet_->hosts().cut(2, other);
  const auto logs = [&](const char* text) {
    return [this, text] { return fleet_->log(2).find(text) != std::string::npos; };
  };
  EXPECT_TRUE(fleet_->watch(
      10s, logs(": waits: no majority: of the 3 members that decide only 1 answers")));
  EXPECT_TRUE(fleet_->watch(10s, [&] {
    const auto seen = fleet_->ask(0);
    return seen && seen->states.at("n2") == "dead";
  }));
  fleet_->hosts().heal();
  // The nodes declared it dead. Depending on a moment, its job did too before the partition healed.
  const auto is_back = [&] {
    return logs("declared dead; joining again")() || logs(": goes on")();
  };
  EXPECT_TRUE(fleet_->watch(10s, is_back));
  EXPECT_TRUE(fleet_->agree(10s));
  expect_good_model(60s);
}

}  // namespace
}  // namespace starling::program
