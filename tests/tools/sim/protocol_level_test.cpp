/// `starling sim --level protocol`, which simulates every message of a job that learns.
#include <nlohmann/json.hpp>

#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// The command line of a job of four workers that learn a linear model.
const std::string protocol_job =
    "sim --level protocol --data linear:d=10,n=400,noise=0.1 --model linear --optimizer sgd:lr=0.1 "
    "--batch 10 --workers 4 --step-time exp:50ms --horizon 8s --points 8 --quiet ";

TEST(ProtocolLevel, LearnsOverANetworkThatLosesPackets) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, protocol_job +
                           "--json --mode peer --barrier pssp:s=2,beta=2 --barrier "
                           "asp --latency exp:1ms --loss 30% --bandwidth 10MB");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json by_barrier = Json::parse(ran.out);
  ASSERT_EQ(by_barrier.size(), 2U);
  for (const Json& one : by_barrier) {
    EXPECT_EQ(one["level"], "protocol");
    EXPECT_EQ(one["network"]["loss"], 0.3);
    EXPECT_EQ(one["network"]["bytes_per_s"], 1e7);
    EXPECT_LT(one["figures"]["loss"], 0.05);
    EXPECT_LT(one["figures"]["error"], 0.1);
    EXPECT_GT(one["packets"]["lost"], one["packets"]["sent"].get<double>() / 4);
    // A worker pushes each update to the owners of all ranges, but sends no message to itself.
    EXPECT_GE(one["traffic"]["push"]["messages"], one["updates"].get<double>() / 2);
    EXPECT_GT(one["traffic"]["push"]["bytes"], one["traffic"]["ack"]["bytes"]);
  }
  EXPECT_GT(by_barrier[0]["traffic"]["query"]["messages"], 0);
  EXPECT_FALSE(by_barrier[1]["traffic"].contains("query"));
}

TEST(ProtocolLevel, PrintsTheSameBytesOnAnyNumberOfThreads) {
  const Folder folder;
  const std::string command_line =
      protocol_job + "--mode central --barrier bsp --barrier asp --seeds 2 --loss 0.1 ";
  const ProgramResult one = starling(folder, command_line + "--threads 1");
  const ProgramResult two = starling(folder, command_line + "--threads 2");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, two.out);
  EXPECT_NE(one.out.find("loss"), std::string::npos) << one.out;
}

TEST(ProtocolLevel, SimulatesAJobFile) {
  const Folder folder;
  folder.write("job.toml",
               "data = \"linear:d=10,n=400\"\nmodel = \"linear\"\noptimizer = \"sgd:lr=0.1\"\n"
               "mode = \"central\"\nbarrier = \"bsp\"\nworkers = 2\nepochs = 2\n"
               "[sim]\nlevel = \"protocol\"\nlatency = \"const:1ms\"\n");
  const ProgramResult ran = starling(folder, "sim job.toml --json --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json one = Json::parse(ran.out)[0];
  EXPECT_EQ(one["level"], "protocol");
  // 320 of 400 rows train; 2 workers at batch 32 take 5 steps an epoch.
  EXPECT_EQ(one["steps_limit"], 10);
  EXPECT_EQ(one["steps"]["min"], 10);
  EXPECT_EQ(one["max_lag"], 1);
}

TEST(ProtocolLevel, DescribesTheLearningAndTheNetwork) {
  const Folder folder;
  const std::string line =
      "sim --level protocol --data linear:d=5,n=200 --model linear --steps 5 --quiet --mode hybrid "
      "--shards 2 --latency exp:1ms --held-up 10% --held-up-by exp:3ms ";
  const ProgramResult table = starling(folder, line);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("\nlevel protocol: linear:d=5,n=200, linear, adam:lr=0.02, batch 32, 1 "
                           "shard; latency exp:1ms, held up 10 % by exp:3ms\n"),
            std::string::npos)
      << table.out;
  const ProgramResult json = starling(folder, line + "--json");
  const Json one = Json::parse(json.out)[0];
  EXPECT_EQ(one["data"], "linear:d=5,n=200");
  EXPECT_EQ(one["model"], "linear");
  EXPECT_EQ(one["optimizer"], "adam:lr=0.02");
  EXPECT_EQ(one["batch"], 32);
  EXPECT_EQ(one["shards"], 1) << "the model has one range";
  EXPECT_TRUE(one["network"]["bytes_per_s"].is_null());
  EXPECT_EQ(one["network"]["held_up_by"], "exp:3ms");
}

TEST(ProtocolLevel, RefusesBadSettings) {
  const Folder folder;
  const auto refusal = [&](const std::string& command_line) {
    const ProgramResult ran = starling(folder, command_line);
    EXPECT_EQ(ran.code, 2);
    return ran.err;
  };
  EXPECT_NE(refusal(protocol_job + "--loss 150%")
                .find("'150%' must be a share of at least 0 and below 1"),
            std::string::npos);
  EXPECT_NE(refusal(protocol_job + "--loss 1")
                .find("--loss: '1' must be a share of at least 0 and below 1"),
            std::string::npos);
  EXPECT_NE(refusal("sim --level protocol --data linear:d=10,n=400 --model softmax")
                .find("softmax needs 2 or more classes"),
            std::string::npos);
  EXPECT_NE(refusal("sim --level all").find("valid: step, protocol"), std::string::npos);
  EXPECT_NE(refusal("sim --loss 0.1").find("--loss: has an effect only at the protocol level"),
            std::string::npos);
  EXPECT_NE(refusal("sim --model linear").find("--model: has an effect only at the protocol level"),
            std::string::npos);
}

/// Simulates a job in central mode, and returns what is said of its only barrier.
Json json_of_central_job(const std::string& flags) {
  const Folder folder;
  const ProgramResult ran = starling(
      folder, "sim --level protocol --model linear --mode central --json --quiet " + flags);
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Json all = Json::parse(ran.out, nullptr, false);
  return all.is_array() ? all[0] : Json::object();
}

TEST(ProtocolLevel, EndsAfterTheStepsOrTheEpochsWhicheverComeFirst) {
  const std::string job =
      "--data linear:d=2,n=2000 --step-time const:10ms --epochs 5 --steps 10 --barrier ";
  for (const char* rest : {"absp", "bsp --batch dynamic:total=64"})
    EXPECT_EQ(json_of_central_job(job + rest)["steps"]["max"], 10) << rest;
}

TEST(ProtocolLevel, CountsTheLastStepInTheLargestLag) {
  Json one = json_of_central_job(
      "--data linear:d=2,n=100 --workers 2 --barrier asp --steps 5 --step-time const:20ms "
      "--straggler 1:8x");
  EXPECT_EQ(one["max_lag"], 5);
}

TEST(ProtocolLevel, SaysThatTheSamplesOfTheEpochsEndDynamicBatches) {
  const std::string job =
      "--data linear:d=2,n=400 --barrier asp --batch dynamic:total=40 --epochs 3 --step-time "
      "const:10ms";
  Json one = json_of_central_job(job);
  EXPECT_FALSE(one.contains("steps_limit"));
  EXPECT_EQ(one["epochs"], 3);
  Json limited = json_of_central_job(job + " --steps 5");
  EXPECT_EQ(limited["steps_limit"], 5) << "it ends the run before the samples";
}

TEST(ProtocolLevel, HasAtMostOneServerForEachRange) {
  Json one = json_of_central_job(
      "--data linear:d=4,n=100 --barrier asp --shards 300 --steps 3 --step-time const:10ms");
  EXPECT_EQ(one["shards"], 1);
}

}  // namespace
}  // namespace starling::program
