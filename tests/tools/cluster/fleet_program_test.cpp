/// Short drills, which take seconds: a few nodes of `starling` under faults. The long drills are in
/// *_drill.cpp.
#include "tests/hosts/forwarder.hpp"
#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

const JobMode central_bsp{"central", "bsp"};
const JobMode peer_pssp{"peer", "pssp:s=4,beta=2"};

class FleetProgram : public Drill {};

TEST_F(FleetProgram, ThreeNodesUnderBspMakeTheModelThatOneProcessMakes) {
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(3));
  const std::string job =
      "--data digits:n=600 --model mlp:784-32-10 --optimizer sgd:lr=0.1 --batch 8 --epochs 1 "
      "--workers 6 --quiet --json --save m.safetensors " +
      flags(central_bsp);
  const Folder folder;
  const ProgramResult local = run(folder, STARLING_PROGRAM, words("train " + job));
  ASSERT_EQ(local.code, 0) << local.err;
  fleet_->submit(1, job);
  const ProgramResult remote = fleet_->finish();
  ASSERT_EQ(remote.code, 0) << remote.err;
  EXPECT_LE(relative_distance(elements(fleet_->work_folder().read("m.safetensors")),
                              elements(folder.read("m.safetensors"))),
            1e-5);
  EXPECT_EQ(number_in(remote.out, "updates"), number_in(local.out, "updates"));
}

TEST_F(FleetProgram, AFrozenNodeJoinsAgainAndTheModelIsGood) {
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(3));
  ASSERT_NO_FATAL_FAILURE(submit(peer_pssp, 400));
  fleet_->freeze(2);
  ASSERT_TRUE(fleet_->watch(15s, [&] { return fleet_->status_of(0)->states["n2"] == "dead"; }));
  fleet_->watch(1s);
  fleet_->thaw(2);
  expect_good_model(60s);
  EXPECT_NE(fleet_->log(2).find("declared dead; joining again"), std::string::npos);
}

TEST_F(FleetProgram, TwoNodesMayDieAtOnceWithThreeCopies) {
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(5));
  ASSERT_NO_FATAL_FAILURE(submit(peer_pssp, 300, "--copies 3"));
  fleet_->kill(3);
  fleet_->kill(4);
  fleet_->watch(4s);
  EXPECT_TRUE(fleet_->is_training());
  expect_good_model(60s);
}

TEST_F(FleetProgram, ANewNodeAtTheAddressOfADeadOneJoinsTheJob) {
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(3));
  ASSERT_NO_FATAL_FAILURE(submit(peer_pssp, 250));
  const std::string address = fleet_->address(0);
  fleet_->kill(0);
  const std::size_t successor = fleet_->start(0, "--listen " + address.substr(6));
  EXPECT_EQ(fleet_->address(successor), address);
  ASSERT_TRUE(fleet_->watch(15s, [&] {
    const auto status = fleet_->status_of(successor);
    return status && status->text.find(", running") != std::string::npos;
  }));
  EXPECT_TRUE(fleet_->is_training());
  expect_good_model(60s);
}

TEST_F(FleetProgram, ANodeBehindABadNetworkTrains) {
  hosts::Forwarder bad_network;
  bad_network.forward_to(hosts::free_port());
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(2));
  fleet_->start(0, "--listen 127.0.0.1:" + std::to_string(bad_network.target()) +
                       " --advertise 127.0.0.1:" + std::to_string(bad_network.port()));
  ASSERT_TRUE(fleet_->wait_until_members_agree(20s));
  bad_network.set({.delay = 5ms, .jitter = 10ms, .breaking = 0.002});
  ASSERT_NO_FATAL_FAILURE(submit(peer_pssp, 200));
  bad_network.break_all();
  fleet_->watch(500ms);
  bad_network.set({.silent = true});
  fleet_->watch(700ms);
  bad_network.set({.delay = 5ms, .bytes_per_s = 2'000'000});
  expect_good_model(60s);
  EXPECT_GT(bad_network.broken(), 0U);
}

TEST_F(FleetProgram, ANodeThatIsPartitionedOffSaysThatItWaitsAndJoinsAgain) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(peer_pssp, 800));
  for (const std::size_t other : {0U, 1U}) fleet_->hosts().cut(2, other);
  const auto logs = [&](const char* text) {
    return [this, text] { return fleet_->log(2).find(text) != std::string::npos; };
  };
  EXPECT_TRUE(fleet_->watch(
      10s, logs(": waits: no majority: of the 3 members that decide only 1 answers")));
  EXPECT_TRUE(fleet_->watch(10s, [&] {
    const auto status = fleet_->status_of(0);
    return status && status->states.at("n2") == "dead";
  }));
  fleet_->hosts().heal();
  // The other nodes have declared n2 dead. If the job had also declared the members on n2 dead
  // before the partition healed, they join again; otherwise they go on.
  const auto is_back = [&] {
    return logs("declared dead; joining again")() || logs(": goes on")();
  };
  EXPECT_TRUE(fleet_->watch(10s, is_back));
  EXPECT_TRUE(fleet_->wait_until_members_agree(10s));
  expect_good_model(60s);
}

}  // namespace
}  // namespace starling::program
