/// Jobs in which every worker has the whole model on three nodes, of which one dies, and which
/// another one joins; a job whose workers keep what they read; elastic averaging; and jobs that
/// compress gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

using namespace std::string_literals;

/// The parameter is the exchange.
class WholeModels : public Nodes, public testing::WithParamInterface<const char*> {};
using Topologies = Nodes;
using Cache = Nodes;
using Elastic = Nodes;
using Compression = Nodes;

INSTANTIATE_TEST_SUITE_P(Exchanges, WholeModels,
                         testing::Values("broadcast", "gossip", "gossip:lag=1", "allreduce",
                                         "allreduce:trees:0-1+1-2", "allreduce:doubling",
                                         "allreduce:ring,overlap", "average:every=3",
                                         "leader:every=2,group=2,pull=0.2"));

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
  const std::string exchange = GetParam();
  if (exchange.starts_with("allreduce") || exchange.starts_with("average"))
    EXPECT_EQ(json["equal_copies"], true) << ran.out;
  else
    EXPECT_FALSE(json.contains("equal_copies")) << ran.out;
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

/// The nodes have no such file.
TEST_F(Topologies, OfAFileAreSentToTheNodes) {
  const Folder other;
  other.write("links.txt", "0 1 2\n1 2\n");
  Process submit{other, STARLING_PROGRAM,
                 job_of_three(1, "--exchange allreduce:trees:links.txt --steps 60 --json --quiet")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  EXPECT_NE(status().find(", allreduce:trees:0-1x2+1-2\n"), std::string::npos) << status();
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["spread"]["min"], 60) << ran.out;
  const ProgramResult refused =
      starling(other, "submit" + to(0) + " --exchange allreduce:trees:gone.txt");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--exchange: "), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("gone.txt"), std::string::npos) << refused.err;
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

/// Gradients travel between nodes in a compact form, from which no bit is lost.
TEST_F(Compression, GivesOnNodesTheModelOfOneProcess) {
  for (const std::string& flags :
       {"--exchange allreduce --compression topk:share=2%"s,
        "--exchange allreduce:ring --compression bf16"s,
        "--exchange average:every=4 --compression bf16"s,
        "--mode central --shards 1 --barrier bsp --compression threshold:t=0.002,signs"s,
        "--mode central --shards 1 --barrier bsp --compression bf16"s}) {
    SCOPED_TRACE(flags);
    const std::string job =
        "--data digits:n=1000 --model softmax --workers 3 --steps 40 "
        "--optimizer sgd:lr=0.3 --json --quiet " +
        flags;
    const auto loss_of = [&](const std::string& command) {
      const ProgramResult ran = starling(work_, command + " " + job);
      EXPECT_EQ(ran.code, 0) << ran.err;
      return nlohmann::json::parse(ran.out)["test_loss"].get<double>();
    };
    EXPECT_EQ(loss_of("submit" + to(0)), loss_of("train"));
  }
}

/// The center has copies on other nodes, so it outlives the node.
TEST_F(Elastic, GoesOnIfANodeIsKilled) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 job_of_three(1,
                              "--exchange elastic:every=4,pull=0.2 --optimizer sgd:lr=0.5 "
                              "--steps 400 --json --quiet --save m")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  processes_[0]->signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["spread"]["min"], 400) << ran.out;
  EXPECT_EQ(json["workers_lost"], 1) << ran.out;
  EXPECT_GT(json["test_accuracy"], 0.7) << ran.out;
  EXPECT_EQ(starling(other, "evaluate m").code, 0);
}

/// A checkpoint has the center, from which workers of any exchange go on, and back.
TEST_F(Elastic, CheckpointIsResumedUnderAnotherExchange) {
  const std::string job = "--data digits:n=2000 --optimizer sgd:lr=0.2 --json --quiet ";
  const ProgramResult first = starling(
      work_, "train --exchange elastic:every=4 --workers 3 --steps 50 --checkpoint c " + job);
  ASSERT_EQ(first.code, 0) << first.err;
  const ProgramResult second = starling(
      work_, "train --resume c --workers 5 --mode central --steps 100 --checkpoint d " + job);
  ASSERT_EQ(second.code, 0) << second.err;
  const auto after_owners = nlohmann::json::parse(second.out);
  EXPECT_LT(after_owners["test_loss"], nlohmann::json::parse(first.out)["test_loss"]);
  const ProgramResult third =
      starling(work_,
               "train --resume d --workers 2 --exchange elastic:every=2,pull=0.3 --steps 320 "
               "--checkpoint e " +
                   job);
  ASSERT_EQ(third.code, 0) << third.err;
  EXPECT_LT(nlohmann::json::parse(third.out)["test_loss"], after_owners["test_loss"]);
  const ProgramResult fourth =
      starling(work_, "train --resume e --workers 3 --exchange elastic --steps 260 " + job);
  EXPECT_EQ(fourth.code, 0) << fourth.err;
}

/// A copy counts its own worker's updates, and its ledger the steps of all.
TEST_F(Elastic, CheckpointOfAWorkersCopyIsResumedUnderAnyExchange) {
  for (const std::string exchange : {"gossip", "leader:every=4"}) {
    for (const std::string optimizer : {"sgd:lr=0.2", "adam:lr=0.01"}) {
      SCOPED_TRACE(exchange + ", " + optimizer);
      const Folder folder;
      const std::string job =
          "train --data digits:n=2000 --model softmax --quiet --json --optimizer " + optimizer +
          " ";
      const auto expect_resumed = [&](const std::string& flags) {
        const ProgramResult ran = starling(folder, job + flags);
        EXPECT_EQ(ran.code, 0) << flags << "\n" << ran.err;
      };
      expect_resumed("--workers 3 --steps 64 --checkpoint a --exchange " + exchange);
      expect_resumed("--workers 3 --steps 100 --resume a --checkpoint b --exchange " + exchange);
      expect_resumed("--workers 5 --steps 300 --resume b --checkpoint c --exchange " + exchange);
      expect_resumed("--workers 4 --steps 600 --resume c --checkpoint d --mode central");
      expect_resumed("--workers 4 --steps 700 --resume d --checkpoint e --mode central");
      expect_resumed("--workers 2 --steps 2000 --resume e --exchange " + exchange);
    }
  }
}

/// The file counts the steps up to the last moves of the center, which are behind the workers.
TEST_F(Elastic, CheckpointDuringARunIsResumed) {
  for (const std::string workers : {"1", "3"}) {
    const std::string job =
        "train --exchange elastic:every=16 --data digits:n=500 --model softmax --delay exp:2ms "
        "--quiet --json --workers " +
        workers;
    const std::string file = "c" + workers;
    Process killed{work_, STARLING_PROGRAM,
                   words(job + " --steps 100000 --checkpoint-every 7 --checkpoint " + file)};
    ASSERT_TRUE(wait_until([&] { return !work_.read(file).empty(); })) << killed.err();
    killed.signal(SIGKILL);
    (void)killed.wait();
    const ProgramResult resumed = starling(work_, job + " --steps 400 --resume " + file);
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    const auto json = nlohmann::json::parse(resumed.out);
    EXPECT_EQ(json["spread"]["min"], 400) << resumed.out;
  }
}

TEST_F(Elastic, BspIsRefused) {
  const ProgramResult refused =
      starling(work_, "train --exchange elastic --mode central --barrier bsp --steps 3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("barrier bsp: exchange elastic has no rounds; valid: ssp:s=1"),
            std::string::npos)
      << refused.err;
}

/// Owners would begin with the steps of a worker that has made many steps, and no state of adam.
TEST_F(Elastic, CheckpointHasNoStateOfOptimizers) {
  const std::string job =
      "--data digits:n=500 --model softmax --optimizer adam:lr=0.01 --json --quiet ";
  const ProgramResult first =
      starling(work_, "train --exchange elastic --workers 3 --steps 20 --checkpoint c " + job);
  ASSERT_EQ(first.code, 0) << first.err;
  const ProgramResult refused = starling(work_, "train --resume c --steps 40 " + job);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("c: was saved under exchange elastic, under which only workers have "
                             "the state of adam:lr=0.01; valid: that exchange, or init in place "
                             "of resume"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(starling(work_, "train --resume c --exchange elastic --steps 40 " + job).code, 0);
}

TEST_F(Elastic, PullBeyondTheBoundIsRefused) {
  const ProgramResult refused =
      starling(work_, "train --exchange elastic:every=4,pull=0.6 --steps 3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--exchange: elastic: pull=0.6 must be a number from 0 to 0.5"),
            std::string::npos)
      << refused.err;
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
