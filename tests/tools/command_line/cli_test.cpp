/// Runs the program's help, its lists, `inspect`, and a command that runs out of memory.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

TEST(Help, IsPrintedWithoutArguments) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "");
  EXPECT_EQ(ran.code, 0);
  for (const char* command :
       {"train", "sim", "twin", "repro", "chaos", "keys", "evaluate", "predict", "inspect", "bench",
        "barriers", "models", "advise", "collective"})
    EXPECT_TRUE(contains(ran.out, std::string{"\n  "} + command + " ")) << ran.out;
  EXPECT_EQ(ran.out, starling(folder, "--help").out);
  EXPECT_EQ(ran.err, "");
}

TEST(Help, ForTrainNamesEveryKey) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "train --help");
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
                          "copies",     "device",     "report",
                          "trace",      "compression"})
    EXPECT_TRUE(contains(ran.out, "\n  --" + std::string{key} + " ")) << key;
  for (const auto& line : lines(ran.out)) EXPECT_LE(line.size(), 110U) << line;
}

TEST(Help, ForSimNamesEveryKey) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "sim --help");
  for (const char* list : {"\nSources of data:\n", "\nModels:\n"})
    EXPECT_TRUE(contains(ran.out, list)) << list;
  EXPECT_EQ(ran.code, 0);
  for (const char* key :
       {"workers", "step-time", "straggler", "horizon", "steps",  "seed",     "seeds",   "barrier",
        "mode",    "recheck",   "delay",     "seconds", "epochs", "sampling", "threads", "memory",
        "json",    "csv",       "plots",     "points",  "quiet",  "learn"})
    EXPECT_TRUE(contains(ran.out, "\n  --" + std::string{key} + " ")) << key;
  for (const auto& line : lines(ran.out)) EXPECT_LE(line.size(), 110U) << line;
}

TEST(Flags, MayStandBeforeTheJobFile) {
  const Folder folder;
  folder.write("job.toml", "workers = 2\ndata = \"digits:n=300\"\nepochs = 1\n");
  const ProgramResult ran = starling(folder, "train --seed 3 job.toml --json --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["seed"], 3);
}

TEST(Flags, OfTrueOrFalseOverrideTheJobFileBothWays) {
  const Folder folder;
  folder.write("job.toml", "data = \"linear:d=5,n=200\"\nsteps = 3\njson = true\nquiet = false\n");
  const ProgramResult table = starling(folder, "train job.toml --json=false --quiet=true");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(contains(table.out, "ended       completed")) << table.out;
  EXPECT_EQ(table.err, "");
  const ProgramResult json = starling(folder, "train job.toml --quiet");
  EXPECT_TRUE(json.out.starts_with('{')) << json.out;
  const ProgramResult bad = starling(folder, "train job.toml --json=maybe");
  EXPECT_EQ(bad.code, 2);
  EXPECT_TRUE(contains(bad.err, "--json: 'maybe' must be true or false")) << bad.err;
}

TEST(Flags, AreNotEndedByTwoDashes) {
  const Folder folder;
  for (const char* line : {"train -- job.toml", "train -- ", "inspect linear -- x"}) {
    const ProgramResult ran = starling(folder, line);
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_TRUE(contains(ran.err, "'--' does not end the flags; valid: ./NAME")) << ran.err;
  }
}

TEST(Flags, NameAMissingCheckpointBeforeDataAreLoaded) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "train --data digits:n=300 --resume nowhere");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "starling: --resume: nowhere: no such file\n");
}

TEST(Help, ExistsForEachCommand) {
  const Folder folder;
  for (const char* command :
       {"train", "sim", "twin", "repro", "chaos", "keys", "evaluate", "predict", "inspect", "bench",
        "barriers", "models", "advise", "collective"}) {
    const ProgramResult ran = starling(folder, std::string{command} + " --help");
    EXPECT_EQ(ran.code, 0);
    EXPECT_TRUE(contains(ran.out, std::string{"Usage: starling "} + command)) << ran.out;
  }
}

TEST(Version, IsAThreePartNumber) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "--version");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.rfind("starling ", 0), 0U);
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '.'), 2);
}

TEST(Lists, NameBarriersAndModelsAndWhereTheyWork) {
  const Folder folder;
  const std::string barriers = starling(folder, "barriers").out;
  for (const char* row :
       {"bsp                        central mode", "pbsp:beta=2                every mode",
        "ssp:s=4                    central mode", "pssp:s=4,beta=2            every mode",
        "asp                        every mode", "pdssp:low=3,high=15,beta=2 every mode",
        "pfluent:s=4,p=0.5,beta=2   every mode"})
    EXPECT_TRUE(contains(barriers, row)) << row << "\n" << barriers;
  EXPECT_FALSE(contains(barriers, "predicate"));
  const std::string models = starling(folder, "models").out;
  for (const char* name : {"linear", "logistic", "softmax", "svm", "mf", "mlp"})
    EXPECT_TRUE(contains(models, std::string{"\n  "} + name + " ")) << name;
}

TEST(Inspect, DescribesDataAndModels) {
  const Folder folder;
  const ProgramResult data = starling(folder, "inspect digits:n=50");
  EXPECT_EQ(data.code, 0);
  EXPECT_TRUE(contains(data.out, "50 rows, 784 features, 10 classes")) << data.out;
  ASSERT_EQ(starling(folder, std::string{small_job} + "--epochs 1 --save m").code, 0);
  const ProgramResult model = starling(folder, "inspect m");
  EXPECT_TRUE(contains(model.out, "F32 [784, 10]")) << model.out;
  EXPECT_TRUE(contains(model.out, "model = softmax")) << model.out;
}

TEST(Memory, RefusesATableThatDoesNotFit) {
  const Folder folder;
  const std::string line = "ulimit -v 500000; exec " STARLING_PROGRAM " inspect digits:n=1000000";
  const ProgramResult ran = run(folder, "/bin/sh", {"-c", line});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(ran.err.starts_with("starling: out of memory; valid: ")) << ran.err;
}

/// Python's `safetensors` reads files of Starling, and Starling reads files of `safetensors`, which
/// lays out the tensors in another order.
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
  const ProgramResult ran = run(folder, "/bin/sh", {"-c", "python3 read.py"});
  EXPECT_EQ(ran.out, "read\n") << ran.err;
  const ProgramResult again =
      starling(folder, std::string{small_job} + "--epochs 2 --resume again");
  EXPECT_EQ(again.code, 0) << again.err;
}

}  // namespace
}  // namespace starling::program
