/// `starling twin`, run as a program.
#include <nlohmann/json.hpp>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

constexpr const char* job = R"(
data    = "linear:d=5,n=400"
model   = "linear"
batch   = 4
workers = 8
barrier = "asp"
delay   = "exp:20ms"
seconds = 1
save    = "model.safetensors"
metrics = "figures.jsonl"
report  = "page.html"
)";

/// On a loaded machine the live run may not agree with its simulations. This test checks only that
/// the conclusion is consistent with the figures.
TEST(Twin, ComparesALiveRunWithItsSimulationsAndWritesNoFiles) {
  const Folder folder;
  folder.write("job.toml", job);
  const ProgramResult ran = starling(folder, "twin job.toml --seeds 100 --json --quiet");
  EXPECT_EQ(ran.err, "");
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["mode"], "peer");
  EXPECT_EQ(json["barrier"], "asp");
  EXPECT_EQ(json["workers"], 8);
  EXPECT_EQ(json["seeds"], 100);
  EXPECT_GE(json["live_s"], 1.0);
  EXPECT_GT(json["overhead_s"], 0.0);
  bool all_inside = true;
  for (const char* name :
       {"updates", "steps_min", "steps_median", "steps_max", "max_lag", "waiting_share"}) {
    const Json& figure = json["figures"].at(name);
    EXPECT_LE(figure["low"], figure["median"]) << name;
    EXPECT_LE(figure["median"], figure["high"]) << name;
    const bool is_inside =
        figure["allowed"][0] <= figure["live"] && figure["live"] <= figure["allowed"][1];
    EXPECT_EQ(figure["inside"], is_inside) << name;
    all_inside = all_inside && is_inside;
  }
  EXPECT_GT(json["figures"]["updates"]["live"], 8);
  EXPECT_EQ(json["inside"], all_inside);
  EXPECT_EQ(ran.code, all_inside ? 0 : 1);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"job.toml"});
}

TEST(Twin, PrintsValidJsonForANameThatIsNoUtf8) {
  const Folder folder;
  folder.write("job.toml", job);
  folder.write("\xff.txt", "20ms\n30ms\n");
  const ProgramResult ran =
      starling(folder, "twin job.toml --delay trace:\xff.txt --seeds 100 --json --quiet");
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(Json::parse(ran.out)["workers"], 8);
}

/// With almost no delay, a step is all overhead. The simulated workers all take the same time and
/// stay together; live workers do not, because asp never makes them wait.
TEST(Twin, FailsIfTheLiveRunIsNotAsSimulated) {
  const Folder folder;
  folder.write("job.toml", job);
  const ProgramResult ran = starling(folder, "twin job.toml --delay const:1us --seeds 100 --quiet");
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_TRUE(contains(ran.out, "asp, 8 workers, peer, delay const:1us: ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "NO\n")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "figures of the live run are not as simulated\n")) << ran.out;
}

TEST(Twin, ComparesTheTimeOfAJobThatMakesAllItsSteps) {
  const Folder folder;
  folder.write("job.toml", job);
  const ProgramResult ran =
      starling(folder, "twin job.toml --seconds 1h --steps 10 --seeds 100 --json --quiet");
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["completed"], true);
  EXPECT_EQ(json["figures"].size(), 3U);
  EXPECT_EQ(json["figures"]["elapsed_s"]["live"], json["live_s"]);
}

/// At this learning rate, the test loss stays the same but for rounding, and soon no better one
/// comes.
TEST(Twin, EndsTheLiveRunWhenPatienceIsOver) {
  const Folder folder;
  folder.write("job.toml", job);
  const ProgramResult ran =
      starling(folder,
               "twin job.toml --seconds 30 --optimizer sgd:lr=0.000000001 --eval-every 2 "
               "--patience 2 --seeds 100 --json --quiet");
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["completed"], false);
  EXPECT_LT(json["live_s"], 15.0);
}

/// Gives most flags that `twin` has, in three jobs, because some exclude each other.
TEST(Twin, AcceptsEveryFlagOfAJob) {
  const std::string common =
      "twin --delay exp:10ms --seconds 0.3 --quiet --json --data linear:d=3,n=200 --seed 3 --model "
      "linear --dtype float64 --optimizer sgd:lr=0.01 --l2 1e-4 --clip value:1 --schedule constant "
      "--batch 4 --steps 100000 --until mse<=1e-12 --workers 4 --mode central --shards 2 --barrier "
      "pbsp:beta=1 --recheck arrival --straggler 1:2x --threads 2 --attempts 2 --eval-every 50 "
      "--seeds 100 ";
  for (const std::string more :
       {"--holdout 0.3", "--split 100", "--test linear:d=3,n=50 --epochs 1000"}) {
    const Folder folder;
    const ProgramResult ran = starling(folder, common + more);
    EXPECT_EQ(ran.err, "") << more;
    ASSERT_TRUE(Json::accept(ran.out)) << more;
    EXPECT_EQ(Json::parse(ran.out)["recheck"], "arrival");
    EXPECT_EQ(Json::parse(ran.out)["straggler"], Json{"1:2x"});
  }
}

TEST(Twin, RefusesJobsThatCannotBeSimulated) {
  const Folder folder;
  folder.write("job.toml", job);
  folder.write("resumed.toml", std::string{job} + "resume = \"state\"\n");
  const auto refusal = [&](const std::string& line) {
    const ProgramResult ran = starling(folder, "twin " + line);
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_EQ(ran.out, "") << line;
    return ran.err;
  };
  EXPECT_EQ(refusal("job.toml --delay none"),
            "starling: --delay: is the time of a simulated step, and must not be 0; valid: "
            "exp:20ms and the like\n");
  EXPECT_EQ(
      refusal("resumed.toml"),
      "starling: resumed.toml:12: resume: a simulation begins at step 0; valid: a job from its "
      "start\n");
  EXPECT_EQ(
      refusal("job.toml --exchange average:every=8"),
      "starling: --exchange: average:every=8: is itself the barrier, which simulated steps do "
      "not have; valid: owners, gossip and others at which workers do not wait for each "
      "other\n");
  EXPECT_TRUE(contains(refusal("job.toml --seeds 0"), "--seeds: '0' must be a whole number >= 1"));
  EXPECT_TRUE(contains(refusal("job.toml --save model"), "unknown flag '--save'"));
  EXPECT_TRUE(contains(refusal("job.toml --report page.html"), "unknown flag '--report'"));
  EXPECT_TRUE(contains(refusal("job.toml --barrier bsp"), "needs to see every worker's step"));
}

}  // namespace
}  // namespace starling::program
