/// The program as a user sees it: help, results as a table and as JSON, metrics, evaluating and
/// predicting.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/tools/program.hpp"

namespace starling::app {
namespace {

using Json = nlohmann::json;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

TEST(Help, IsPrintedWithoutArguments) {
  const Folder folder;
  const Ran ran = starling(folder, "");
  EXPECT_EQ(ran.code, 0);
  for (const char* command : {"train", "sim", "twin", "repro", "chaos", "keys", "evaluate",
                              "predict", "inspect", "bench", "barriers", "models"})
    EXPECT_TRUE(holds(ran.out, std::string{"\n  "} + command + " ")) << ran.out;
  EXPECT_EQ(ran.out, starling(folder, "--help").out);
  EXPECT_EQ(ran.err, "");
}

TEST(Help, OfTrainNamesEveryKeyOfTheGrammar) {
  const Folder folder;
  const Ran ran = starling(folder, "train --help");
  EXPECT_EQ(ran.code, 0);
  for (const char* key : {"data",       "test",       "split",
                          "holdout",    "model",      "optimizer",
                          "l2",         "clip",       "schedule",
                          "batch",      "epochs",     "steps",
                          "seconds",    "until",      "workers",
                          "shards",     "mode",       "barrier",
                          "recheck",    "delay",      "straggler",
                          "seed",       "threads",    "attempts",
                          "eval-every", "checkpoint", "checkpoint-every",
                          "resume",     "save",       "metrics",
                          "json",       "quiet",      "dtype",
                          "copies",     "device",     "report"})
    EXPECT_TRUE(holds(ran.out, "\n  --" + std::string{key} + " ")) << key;
  for (const auto& line : lines(ran.out)) EXPECT_LE(line.size(), 110U) << line;
}

TEST(Help, OfSimNamesEveryKeyOfASimulation) {
  const Folder folder;
  const Ran ran = starling(folder, "sim --help");
  EXPECT_EQ(ran.code, 0);
  for (const char* key :
       {"workers", "step-time", "straggler", "horizon", "steps",  "seed",     "seeds",   "barrier",
        "mode",    "recheck",   "delay",     "seconds", "epochs", "sampling", "threads", "memory",
        "json",    "csv",       "plots",     "points",  "quiet",  "learn"})
    EXPECT_TRUE(holds(ran.out, "\n  --" + std::string{key} + " ")) << key;
  for (const auto& line : lines(ran.out)) EXPECT_LE(line.size(), 110U) << line;
}

TEST(Flags, MayStandBeforeTheJobFile) {
  const Folder folder;
  folder.write("job.toml", "workers = 2\ndata = \"digits:n=300\"\nepochs = 1\n");
  const Ran ran = starling(folder, "train --seed 3 job.toml --json --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["seed"], 3);
}

TEST(Help, ExistsForEachCommand) {
  const Folder folder;
  for (const char* command : {"train", "sim", "twin", "repro", "chaos", "keys", "evaluate",
                              "predict", "inspect", "bench", "barriers", "models"}) {
    const Ran ran = starling(folder, std::string{command} + " --help");
    EXPECT_EQ(ran.code, 0);
    EXPECT_TRUE(holds(ran.out, std::string{"Usage: starling "} + command)) << ran.out;
  }
}

TEST(Version, IsAThreePartNumber) {
  const Folder folder;
  const Ran ran = starling(folder, "--version");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.rfind("starling ", 0), 0U);
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '.'), 2);
}

TEST(Lists, NameBarriersAndModelsAndWhereTheyWork) {
  const Folder folder;
  const std::string barriers = starling(folder, "barriers").out;
  for (const char* row : {"bsp                central mode", "pbsp:beta=2        every mode",
                          "ssp:s=4            central mode", "pssp:s=4,beta=2    every mode",
                          "asp                every mode"})
    EXPECT_TRUE(holds(barriers, row)) << row << "\n" << barriers;
  EXPECT_FALSE(holds(barriers, "predicate"));
  const std::string models = starling(folder, "models").out;
  for (const char* name : {"linear", "logistic", "softmax", "svm", "mf", "mlp"})
    EXPECT_TRUE(holds(models, std::string{"\n  "} + name + " ")) << name;
}

TEST(Train, PrintsOneJsonObjectWithTheDocumentedKeys) {
  const Folder folder;
  const Ran ran = starling(folder, "train --data digits:n=300 --epochs 5 --json");
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
  // 240 training samples over 4 workers in batches of 32: 2 steps an epoch of each.
  EXPECT_EQ(json["updates"], 40);
  EXPECT_EQ(json["spread"], (Json{{"min", 10}, {"median", 10}, {"max", 10}}));
  EXPECT_NEAR(json["updates_per_s"].get<double>() * json["wall_s"].get<double>(), 40, 1e-6);
  EXPECT_GE(json["waiting_share"], 0.0);
  EXPECT_LE(json["waiting_share"], 1.0);
}

TEST(Train, LearnsByDefaultAndMoreThanALinearModel) {
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
    const Ran ran = starling(folder,
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
  const Ran plain = starling(folder, "train job.toml");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.err, "");
  const Json json = Json::parse(plain.out);
  EXPECT_EQ(json["workers"], 3);
  EXPECT_EQ(json["test_samples"], 30);
  const Ran over = starling(folder, "train job.toml --workers 2 --split 200 --barrier asp");
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

/// The default barrier samples no more workers than there are others; the printed batch and shards
/// are those used.
TEST(Train, FitsItsDefaultsToTheJobAndSaysWhatItUses) {
  const Folder folder;
  const auto job = [&](const std::string& flags) {
    const Ran ran = starling(folder, "train --data linear:d=6,n=200 --epochs 1 --json " + flags);
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

TEST(Train, SaysWhereARecheckHasNoEffect) {
  const Folder folder;
  const std::string line = std::string{small_job} + "--epochs 1 --recheck notify";
  EXPECT_EQ(starling(folder, line).err, "");  // quiet
  const Ran ran =
      starling(folder, line.substr(0, line.find("--quiet")) + line.substr(line.find("--epochs")));
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(holds(ran.err, "--recheck: has no effect under bsp, which draws no one\n"))
      << ran.err;
  EXPECT_FALSE(holds(ran.out, "notify")) << ran.out;
}

TEST(Train, RepeatsExactlyUnderBsp) {
  const Folder folder;
  EXPECT_EQ(starling(folder, std::string{small_job} + "--epochs 2 --save a").code, 0);
  EXPECT_EQ(starling(folder, std::string{small_job} + "--epochs 2 --save b").code, 0);
  EXPECT_EQ(starling(folder, std::string{small_job} + "--epochs 2 --seed 2 --save c").code, 0);
  EXPECT_EQ(folder.read("a"), folder.read("b"));
  EXPECT_NE(folder.read("a"), folder.read("c"));
}

TEST(Train, ShowsPlainLinesWhereThereIsNoTerminal) {
  const Folder folder;
  const Ran ran =
      starling(folder, "train --data digits:n=300 --model softmax --seconds 2.5 --delay const:1ms");
  ASSERT_EQ(ran.code, 0) << ran.err;
  auto shown = lines(ran.err);
  ASSERT_GE(shown.size(), 2U);
  EXPECT_TRUE(shown[0].starts_with(
      "loading digits:n=300 ... 240 rows, 784 features, 10 classes; 60 to test on; "))
      << shown[0];
  EXPECT_TRUE(shown[0].ends_with("s")) << shown[0];
  shown.erase(shown.begin());
  for (const auto& line : shown) EXPECT_TRUE(holds(line, "steps ")) << line;
  for (const char* part : {"updates/s", "waiting "})
    EXPECT_TRUE(holds(shown.back(), part)) << shown.back();
  EXPECT_FALSE(holds(ran.err, "\r"));
}

TEST(Train, RewritesOneLineOnATerminal) {
  const Folder folder;
  if (std::system("script -qec true /dev/null > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "`script` is absent, or finds no terminal to make";
  const std::string command =
      "stty cols 60; exec " STARLING_PROGRAM " train --data digits:n=300 --seconds 2.5 > /dev/null";
  const Ran ran = run(folder, "/bin/sh", {"-c", "script -qec '" + command + "' /dev/null"});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  const auto loaded = ran.out.find("\r\n");
  ASSERT_TRUE(ran.out.starts_with("loading ")) << ran.out;
  std::istringstream shown{ran.out.substr(loaded + 2, ran.out.find_last_of('\r') - loaded - 2)};
  int times = 0;
  for (std::string line; std::getline(shown, line, '\r'); ++times) {
    EXPECT_FALSE(holds(line, "\n")) << line;
    if (times == 0) continue;  // what stands before the first \r
    EXPECT_TRUE(line.ends_with("\x1b[K")) << line;
    EXPECT_LE(line.size(), 59 + 3U) << line;
  }
  EXPECT_GE(times, 4);
}

TEST(Metrics, AreOneJsonObjectALine) {
  const Folder folder;
  const Ran ran =
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
    const Ran ran = run(folder, "/bin/sh",
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
  const Ran ran = run(folder, "/bin/sh", {"-c", line});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(holds(ran.err, "pipe: cannot be written: Broken pipe")) << ran.err;
  EXPECT_TRUE(Json::parse(lines(ran.out)[0]).contains("event"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"m", "pipe"}));
}

TEST(Evaluate, NeedsTheFileOnlyAndSaysWhatTrainSaid) {
  const Folder folder;
  const Json trained = Json::parse(
      starling(folder, std::string{small_job} + "--epochs 5 --save m.safetensors --json").out);
  const Ran ran = starling(folder, "evaluate m.safetensors --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["samples"], 60);
  EXPECT_EQ(json["accuracy"], trained["test_accuracy"]);
  EXPECT_NEAR(json["loss"], trained["test_loss"], 1e-12);
  const Ran other = starling(folder, "evaluate --model-file m.safetensors --data linear:n=5");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(holds(other.err, "is not a class; valid: whole numbers 0 to 9")) << other.err;
}

/// Generated data is of the seed that the model was trained with, but of rows it has not seen:
/// those that --test gives.
TEST(Evaluate, TakesGeneratedDataOfTheModelsOwnSeedThatItHasNotSeen) {
  const Folder folder;
  const std::string data = "linear:d=10,n=500";
  const Json trained =
      Json::parse(starling(folder, "train --seed 7 --data " + data + " --test " + data +
                                       " --optimizer sgd:lr=0.1 --quiet --json "
                                       "--save m")
                      .out);
  const auto loss = [&](const std::string& flags) {
    const Ran ran = starling(folder, "evaluate m --json --data " + data + flags);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(ran.out)["loss"].get<double>();
  };
  EXPECT_LT(trained["test_loss"], 0.1);
  EXPECT_NEAR(loss(""), trained["test_loss"], 1e-9);
  EXPECT_NEAR(loss(" --seed 7"), trained["test_loss"], 1e-9);
  EXPECT_GT(loss(" --seed 1"), 1);  // another truth
  const Ran alone = starling(folder, "evaluate m --seed 7");
  EXPECT_EQ(alone.code, 2);
  EXPECT_TRUE(holds(alone.err, "--seed: has no effect without --data")) << alone.err;
}

TEST(Evaluate, RefusesAModelThatIsNotFinite) {
  const Folder folder;
  ASSERT_EQ(starling(folder, std::string{small_job} + "--epochs 1 --save m").code, 0);
  folder.write("m", with_nan(folder.read("m"), "weights", 27));
  for (const char* command : {"evaluate m --trust-file", "predict m --trust-file"}) {
    const Ran ran = starling(folder, command);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(holds(ran.err, "m: tensor 'weights' holds nan at [2, 7]")) << ran.err;
  }
}

TEST(Predict, WritesLabelsAsTheDataHasThem) {
  const Folder folder;
  folder.write("train.csv", "x,y\n-3,1\n-2,1\n-1,1\n1,2\n2,2\n3,2\n");
  const Ran trained = starling(folder,
                               "train --data csv:train.csv --test csv:train.csv --model softmax "
                               "--workers 1 --barrier asp --epochs 50 --optimizer sgd:lr=0.5 "
                               "--quiet --save m.safetensors");
  ASSERT_EQ(trained.code, 0) << trained.err;
  folder.write("new.csv", "x,y\n5,2\n4,2\n-4,2\n");  // only class 2, and one wrong
  const Ran ran = starling(folder, "predict m.safetensors --data csv:new.csv --out p.csv");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(folder.read("p.csv"), "index,prediction,label\n0,2,2\n1,2,2\n2,1,2\n");
  const Ran shown = starling(folder, "predict m.safetensors --data csv:new.csv");
  EXPECT_EQ(shown.out, folder.read("p.csv"));
  const Json figures =
      Json::parse(starling(folder, "evaluate m.safetensors --data csv:new.csv --json").out);
  EXPECT_NEAR(figures["accuracy"], 2.0 / 3, 1e-12);
}

TEST(Inspect, DescribesDataAndModels) {
  const Folder folder;
  const Ran data = starling(folder, "inspect digits:n=50");
  EXPECT_EQ(data.code, 0);
  EXPECT_TRUE(holds(data.out, "50 rows, 784 features, 10 classes")) << data.out;
  ASSERT_EQ(starling(folder, std::string{small_job} + "--epochs 1 --save m").code, 0);
  const Ran model = starling(folder, "inspect m");
  EXPECT_TRUE(holds(model.out, "F32 [784, 10]")) << model.out;
  EXPECT_TRUE(holds(model.out, "model = softmax")) << model.out;
}

TEST(Memory, ThatDoesNotSufficeIsAnError) {
  const Folder folder;
  const std::string line = "ulimit -v 500000; exec " STARLING_PROGRAM " inspect digits:n=1000000";
  const Ran ran = run(folder, "/bin/sh", {"-c", line});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(ran.err.starts_with("starling: out of memory; valid: ")) << ran.err;
}

/// The parameters would fit, twice; what training makes of them would not.
TEST(Memory, ThatTrainingNeedsIsLookedAtBefore) {
  const Folder folder;
  const Ran ran =
      starling(folder, "train --data digits:n=50 --quiet --optimizer sgd:lr=0.1 --model " +
                           model_of_half_the_memory());
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(holds(ran.err, "starling: --model: mlp:784-")) << ran.err;
  EXPECT_TRUE(holds(ran.err, "with the state of sgd:lr=0.1")) << ran.err;
}

TEST(Dtype, Float64IsTrainedAndStored) {
  const Folder folder;
  ASSERT_EQ(starling(folder, std::string{small_job} + "--epochs 1 --dtype float64 --save m").code,
            0);
  EXPECT_TRUE(holds(starling(folder, "inspect m").out, "F64 [784, 10]"));
  EXPECT_EQ(starling(folder, "evaluate m").code, 0);
}

/// The library that defines the format reads what Starling writes, and the other way round: there,
/// tensors are laid out in another order.
TEST(Safetensors, AreReadAndWrittenByPythonsLibrary) {
  const Folder folder;
  const std::string probe = "python3 -c 'import numpy, safetensors.numpy' 2>/dev/null";
  if (std::system(probe.c_str()) != 0)
    GTEST_SKIP() << "python3 with safetensors and numpy is not installed (pip install both)";
  ASSERT_EQ(starling(folder, std::string{small_job} + "--epochs 1 --save m --checkpoint c").code,
            0);
  folder.write("read.py",
               "from safetensors import safe_open\n"
               "import numpy\n"
               "for name in ('m', 'c'):\n"
               "  with safe_open(name, framework='numpy') as f:\n"
               "    w = f.get_tensor('weights')\n"
               "    assert w.shape == (784, 10) and w.dtype == numpy.float32\n"
               "    assert f.get_tensor('bias').shape == (10,)\n"
               "    assert numpy.isfinite(w).all() and abs(w).max() > 0\n"
               "    assert f.metadata()['model'] == 'softmax'\n"
               "  if name == 'c':\n"
               "    with safe_open(name, framework='numpy') as f:\n"
               "      assert f.get_tensor('starling.ledger')[0, 0, 1] == 4\n"
               "    from safetensors.numpy import load_file, save_file\n"
               "    with safe_open(name, framework='numpy') as f:\n"
               "      save_file(load_file(name), 'again', metadata=f.metadata())\n"
               "print('read')\n");
  const Ran ran = run(folder, "/bin/sh", {"-c", "python3 read.py"});
  EXPECT_EQ(ran.out, "read\n") << ran.err;
  const Ran again = starling(folder, std::string{small_job} + "--epochs 2 --resume again");
  EXPECT_EQ(again.code, 0) << again.err;
}

}  // namespace
}  // namespace starling::app
