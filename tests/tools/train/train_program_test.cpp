/// Runs `starling train`: results as a table and as JSON, progress and metrics.
#include <sys/stat.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

TEST(Train, PrintsOneJsonObjectWithTheDocumentedKeys) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "train --data digits:n=300 --epochs 5 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  ASSERT_EQ(lines(ran.out).size(), 1U);
  const Json json = Json::parse(ran.out);
  for (const char* key :
       {"mode",          "barrier",       "workers", "seed",      "updates",    "updates_per_s",
        "wall_s",        "waiting_share", "spread",  "max_lag",   "train_loss", "test_loss",
        "test_accuracy", "model",         "data",    "optimizer", "batch",      "end",
        "version",       "draws",         "passes"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["mode"], "peer");
  EXPECT_EQ(json["barrier"], "pssp:s=4,beta=2");
  EXPECT_EQ(json["end"], "completed");
  // 240 training samples over 4 workers in batches of 32 are 2 steps per epoch for each worker.
  EXPECT_EQ(json["updates"], 40);
  EXPECT_EQ(json["spread"], (Json{{"min", 10}, {"median", 10}, {"max", 10}}));
  EXPECT_NEAR(json["updates_per_s"].get<double>() * json["wall_s"].get<double>(), 40, 1e-6);
  EXPECT_GE(json["waiting_share"], 0.0);
  EXPECT_LE(json["waiting_share"], 1.0);
}

TEST(Train, LearnsMoreThanALinearModelByDefault) {
  const Folder folder;
  const Json perceptron =
      Json::parse(starling(folder, "train --data digits:n=6000 --quiet --json").out);
  const Json linear = Json::parse(
      starling(folder, "train --data digits:n=6000 --quiet --json --model softmax").out);
  EXPECT_EQ(perceptron["model"], "mlp:784-128-10");
  EXPECT_GE(perceptron["test_accuracy"], 0.97);
  EXPECT_LE(linear["test_accuracy"].get<double>() + 0.03, perceptron["test_accuracy"]);
}

TEST(Train, FindsTheTruthOfLinearDataInEachMode) {
  const Folder folder;
  for (const std::string mode : {"central --barrier bsp", "hybrid", "peer"}) {
    const ProgramResult ran = starling(folder,
                                       "train --data linear:d=20,n=2000,noise=0.01 --epochs 40 "
                                       "--optimizer sgd:lr=0.05 --quiet --json --mode " +
                                           mode);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const Json json = Json::parse(ran.out);
    EXPECT_LT(json["normalised_error"], 0.05) << mode;
    EXPECT_TRUE(json.contains("test_mse"));
    EXPECT_FALSE(json.contains("test_accuracy"));
  }
}

TEST(Train, TakesAJobFileWhichFlagsOverride) {
  const Folder folder;
  folder.write("job.toml",
               "# a job\n"
               "data = \"digits:n=300\"\n"
               "model = \"softmax\"\n"
               "workers = 3\n"
               "epochs = 1\n"
               "holdout = 0.1\n"
               "mode = \"central\"\n"
               "barrier = \"bsp\"\n"
               "straggler = [\"1:2x\"]\n"
               "quiet = true\n"
               "json = true\n");
  const ProgramResult plain = starling(folder, "train job.toml");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.err, "");
  const Json json = Json::parse(plain.out);
  EXPECT_EQ(json["workers"], 3);
  EXPECT_EQ(json["test_samples"], 30);
  const ProgramResult over =
      starling(folder, "train job.toml --workers 2 --split 200 --barrier asp");
  ASSERT_EQ(over.code, 0) << over.err;
  EXPECT_EQ(Json::parse(over.out)["workers"], 2);
  EXPECT_EQ(Json::parse(over.out)["test_samples"], 100);
  EXPECT_EQ(Json::parse(over.out)["barrier"], "asp");
}

TEST(Train, EndsAtTheFirstLimit) {
  const Folder folder;
  const auto job = [&](const std::string& limits) {
    return Json::parse(starling(folder, std::string{small_job} + "--json " + limits).out);
  };
  EXPECT_EQ(job("--steps 7 --epochs 100")["updates"], 14);
  EXPECT_EQ(job("--steps 700 --epochs 1")["updates"], 8);  // 240 / 2 / 32 rounded up
  EXPECT_GE(job("--seconds 50ms --steps 100000000")["wall_s"], 0.05);
  const Json timed = job("--seconds 0.2 --steps 100000000");
  EXPECT_EQ(timed["end"], "reached");
  EXPECT_GE(timed["wall_s"], 0.2);
  const Json target = job("--until accuracy=0.3 --steps 100000 --eval-every 1");
  EXPECT_EQ(target["end"], "reached");
  EXPECT_GE(target["test_accuracy"], 0.3);
  EXPECT_LT(target["updates"], 200000);
}

/// The sample size of the default barrier is at most the number of other workers. The printed batch
/// and shards are those that the job uses.
TEST(Train, FitsItsDefaultsToTheJobAndPrintsThem) {
  const Folder folder;
  const auto job = [&](const std::string& flags) {
    const ProgramResult ran =
        starling(folder, "train --data linear:d=6,n=200 --epochs 1 --json " + flags);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(ran.out);
  };
  EXPECT_EQ(job("--workers 1")["barrier"], "pssp:s=4,beta=0");
  EXPECT_EQ(job("--workers 2")["barrier"], "pssp:s=4,beta=1");
  EXPECT_EQ(job("--workers 3")["barrier"], "pssp:s=4,beta=2");
  EXPECT_EQ(job("--batch 1000000")["batch"], 40);  // of 160 rows each of 4 workers has 40
  EXPECT_EQ(job("--mode hybrid --shards 1000")["shards"], 1);
  EXPECT_EQ(job("--mode hybrid --workers 16")["shards"], 1);
}

TEST(Train, WarnsOfARecheckThatHasNoEffect) {
  const Folder folder;
  const std::string line = std::string{small_job} + "--epochs 1 --recheck notify";
  EXPECT_EQ(starling(folder, line).err, "");  // quiet
  const ProgramResult ran =
      starling(folder, line.substr(0, line.find("--quiet")) + line.substr(line.find("--epochs")));
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(contains(ran.err, "--recheck: has no effect under bsp, which draws no workers\n"))
      << ran.err;
  EXPECT_FALSE(contains(ran.out, "notify")) << ran.out;
}

TEST(Train, RepeatsExactlyUnderBsp) {
  const Folder folder;
  EXPECT_EQ(starling(folder, std::string{small_job} + "--epochs 2 --save a").code, 0);
  EXPECT_EQ(starling(folder, std::string{small_job} + "--epochs 2 --save b").code, 0);
  EXPECT_EQ(starling(folder, std::string{small_job} + "--epochs 2 --seed 2 --save c").code, 0);
  EXPECT_EQ(folder.read("a"), folder.read("b"));
  EXPECT_NE(folder.read("a"), folder.read("c"));
}

TEST(Train, ShowsPlainLinesWithoutATerminal) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, "train --data digits:n=300 --model softmax --seconds 2.5 --delay const:1ms");
  ASSERT_EQ(ran.code, 0) << ran.err;
  auto shown = lines(ran.err);
  ASSERT_GE(shown.size(), 2U);
  EXPECT_TRUE(shown[0].starts_with(
      "loading digits:n=300 ... 240 rows, 784 features, 10 classes; 60 to test on; "))
      << shown[0];
  EXPECT_TRUE(shown[0].ends_with("s")) << shown[0];
  shown.erase(shown.begin());
  for (const auto& line : shown) EXPECT_TRUE(contains(line, "steps ")) << line;
  for (const char* part : {"updates/s", "waiting "})
    EXPECT_TRUE(contains(shown.back(), part)) << shown.back();
  EXPECT_FALSE(contains(ran.err, "\r"));
}

TEST(Train, RewritesOneLineOnATerminal) {
  const Folder folder;
  if (std::system("script -qec true /dev/null > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "`script` is absent, or finds no terminal to make";
  const std::string command =
      "stty cols 60; exec " STARLING_PROGRAM " train --data digits:n=300 --seconds 2.5 > /dev/null";
  const ProgramResult ran =
      run(folder, "/bin/sh", {"-c", "script -qec '" + command + "' /dev/null"});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  const auto loaded = ran.out.find("\r\n");
  ASSERT_TRUE(ran.out.starts_with("loading ")) << ran.out;
  std::istringstream shown{ran.out.substr(loaded + 2, ran.out.find_last_of('\r') - loaded - 2)};
  int times = 0;
  for (std::string line; std::getline(shown, line, '\r'); ++times) {
    EXPECT_FALSE(contains(line, "\n")) << line;
    if (times == 0) continue;  // what stands before the first \r
    EXPECT_TRUE(line.ends_with("\x1b[K")) << line;
    EXPECT_LE(line.size(), 59 + 3U) << line;
  }
  EXPECT_GE(times, 4);
}

TEST(Metrics, AreOneJsonObjectALine) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, std::string{small_job} + "--seconds 1 --eval-every 50 --metrics m.jsonl");
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::map<std::string, int> events;
  double last = 0;
  for (const auto& line : lines(folder.read("m.jsonl"))) {
    const Json json = Json::parse(line);
    ++events[json["event"]];
    if (!json.contains("elapsed_s")) continue;
    EXPECT_EQ(json["updates"].get<double>(), 2 * json["step"].get<double>()) << line;
    EXPECT_GE(json["elapsed_s"], last);
    last = json["elapsed_s"];
  }
  EXPECT_GE(events["progress"], 1);
  EXPECT_GE(events["evaluation"], 1);
  EXPECT_EQ(events["end"], 1);
  EXPECT_EQ(events.size(), 3U);
}

TEST(Metrics, GoToStdoutBesideTheSummary) {
  const Folder folder;
  for (const std::string to : {"", " | cat", " > out; cat out"}) {
    const ProgramResult ran = run(folder, "/bin/sh",
                                  {"-c", STARLING_PROGRAM " " + std::string{small_job} +
                                             "--epochs 1 --json --metrics /dev/stdout" + to});
    EXPECT_EQ(ran.code, 0) << ran.err;
    const auto shown = lines(ran.out);
    ASSERT_GE(shown.size(), 2U) << ran.out;
    for (const auto& line : shown) EXPECT_FALSE(Json::parse(line, nullptr, false).is_discarded());
    EXPECT_EQ(Json::parse(shown[shown.size() - 2])["event"], "end");
    EXPECT_FALSE(Json::parse(shown.back()).contains("event"));
  }
}

TEST(Metrics, GoThroughAPipeWhoseReaderMayLeave) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  const std::string line = std::string{STARLING_PROGRAM} + " " + small_job +
                           "--seconds 100 --metrics pipe --save m & head -n 1 < pipe; wait $!";
  const ProgramResult ran = run(folder, "/bin/sh", {"-c", line});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.err, "pipe: cannot be written: Broken pipe")) << ran.err;
  EXPECT_TRUE(Json::parse(lines(ran.out)[0]).contains("event"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"m", "pipe"}));
}

/// The parameters fit twice into the memory, but training needs more.
TEST(Memory, IsCheckedBeforeTraining) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, "train --data digits:n=50 --quiet --optimizer sgd:lr=0.1 --model " +
                           model_of_half_the_memory());
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "starling: --model: mlp:784-")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "with the state of sgd:lr=0.1")) << ran.err;
}

TEST(Dtype, Float64IsTrainedAndStored) {
  const Folder folder;
  ASSERT_EQ(starling(folder, std::string{small_job} + "--epochs 1 --dtype float64 --save m").code,
            0);
  EXPECT_TRUE(contains(starling(folder, "inspect m").out, "F64 [784, 10]"));
  EXPECT_EQ(starling(folder, "evaluate m").code, 0);
}

}  // namespace
}  // namespace starling::program
