/// Jobs in which every worker has the whole model on three nodes, of which one dies, and which
/// another one joins; and a job whose workers keep what they read.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

/// The parameter is the exchange.
class WholeModels : public Nodes, public testing::WithParamInterface<const char*> {};
using Cache = Nodes;

INSTANTIATE_TEST_SUITE_P(Exchanges, WholeModels,
                         testing::Values("broadcast", "gossip", "allreduce", "average:every=3"));

/// Member 0, which answers for the model, is on node a.
TEST_P(WholeModels, GoesOnIfTheNodeThatAnswersForTheModelIsKilled) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 job_of_three(1, "--exchange " + std::string{GetParam()} +
                                     " --steps 200 --json --quiet --save m")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  const std::string shown = status();
  EXPECT_NE(shown.find(", " + std::string{GetParam()} + "\n"), std::string::npos) << shown;
  // No range has owners; each member holds all ranges.
  EXPECT_NE(shown.find("configuration 1, 3 ranges, 3 members\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("\n  3 of 3 workers hold the whole model\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find(", holds 3 ranges\n"), std::string::npos) << shown;
  processes_[0]->signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["spread"]["min"], 200) << ran.out;
  EXPECT_EQ(json["workers_lost"], 1) << ran.out;
  EXPECT_GT(json["test_accuracy"], 0.7) << ran.out;
  EXPECT_EQ(starling(other, "evaluate m").code, 0);
}

TEST_P(WholeModels, GivesAJoiningNodeACopy) {
  const Folder other;
  Process submit{
      other, STARLING_PROGRAM,
      job_of_three(2, "--exchange " + std::string{GetParam()} + " --steps 300 --json --quiet")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  const Folder folder;
  Process joiner{folder, STARLING_PROGRAM,
                 words("node --name d --workers 2 --listen 127.0.0.1:* --join " + addresses_[0])};
  EXPECT_TRUE(wait_until([&] {
    const auto json = nlohmann::json::parse(starling(work_, "status --json" + to(1)).out);
    return !json["jobs"].empty() &&
           std::ranges::count_if(json["jobs"][0]["members"], [](const auto& member) {
             return member["node"] == "d" && member["state"] == "running" && member["step"] > 0;
           }) == 2;
  })) << status();
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["spread"]["min"], 300) << ran.out;
  joiner.signal(SIGKILL);
}

TEST_P(WholeModels, IsRefusedWhereThereAreServers) {
  for (const std::string& command : {std::string{"train "}, "submit" + to(0)}) {
    const ProgramResult ran =
        starling(work_, command + "--exchange " + std::string{GetParam()} + " --mode central");
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find("--exchange: " + std::string{GetParam()} +
                           " does not work in central mode; valid: mode peer, or another exchange"),
              std::string::npos)
        << ran.err;
  }
}

TEST_F(Cache, UnknownExchangesAreRefused) {
  const ProgramResult unknown = starling(work_, "train --exchange brodcast");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--exchange: 'brodcast' is unknown; did you mean 'broadcast'?"),
            std::string::npos)
      << unknown.err;
}

TEST_F(Cache, AllreduceIsTheBarrierBsp) {
  const ProgramResult refused =
      starling(work_, "train --exchange allreduce:ring --barrier asp --steps 3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(
      refused.err.find("--barrier: barrier asp: exchange allreduce:ring itself makes all workers "
                       "wait for each other, as barrier bsp does; valid: barrier bsp, or another "
                       "exchange"),
      std::string::npos)
      << refused.err;
  const ProgramResult ran = starling(
      work_,
      "train --exchange allreduce --data digits:n=1000 --workers 3 --steps 5 --json --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["barrier"], "bsp");
  EXPECT_EQ(json["updates"], 15);
}

/// All steps are of one round, which is not complete when the workers have made them.
TEST_F(Cache, ResultOfAverageContainsTheLastSteps) {
  const ProgramResult ran =
      starling(work_,
               "train --exchange average:every=1000 --data digits:n=2000 --workers 3 --steps 150 "
               "--optimizer sgd:lr=0.5 --json --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["updates"], 450);
  EXPECT_GT(json["test_accuracy"], 0.6) << ran.out;
}

TEST_F(Cache, MeansAfterNoStepAreRefused) {
  const ProgramResult refused = starling(work_, "train --exchange average:every=0 --steps 3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--exchange: average: every: '0'"), std::string::npos) << refused.err;
}

TEST_F(Cache, SavesReadsAlsoIfANodeIsKilled) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 job_of_three(1,
                              "--mode central --barrier ssp:s=4 --cache --optimizer sgd:lr=0.5 "
                              "--steps 200 --json --quiet --save m")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  processes_[2]->signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["spread"]["min"], 200) << ran.out;
  EXPECT_GE(json["reads"], 400) << ran.out;
  EXPECT_LT(json["pulls"], json["reads"]) << ran.out;
  EXPECT_GT(json["test_accuracy"], 0.7) << ran.out;
  EXPECT_EQ(starling(other, "evaluate m").code, 0);
}

}  // namespace
}  // namespace starling::program
