/// Runs a user's own program, which has all commands of `starling`, and the user's models, data and
/// barriers. Some of its jobs fail.
#include <nlohmann/json.hpp>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"
#include "tests/waiting.hpp"

namespace starling::program {
namespace {

class OwnProgram : public testing::Test {
 protected:
  /// Runs the program with the arguments in `line`.
  ProgramResult own(const std::string& line) const {
    return run(folder_, STARLING_OWN_PROGRAM, words(line));
  }
  Folder folder_;
};

TEST_F(OwnProgram, ListsWhatItContains) {
  EXPECT_TRUE(contains(own("models").out, "circle        a circle through points"));
  EXPECT_TRUE(contains(own("models").out, "softmax "));
  EXPECT_TRUE(contains(own("barriers").out, "phalf:beta=2               every mode"));
  const std::string help = own("train --help").out;
  EXPECT_TRUE(contains(help, "points on a circle: ring[:n=400,radius=2]"));
  EXPECT_TRUE(contains(help, "circle        a circle through points")) << help;
  EXPECT_TRUE(contains(help, "phalf:beta=2               every mode")) << help;
  EXPECT_TRUE(contains(help, "Usage: own_program train")) << help;
}

TEST_F(OwnProgram, TrainsAModelOverDataOfItsOwnInEachMode) {
  for (const std::string mode_flags :
       {"--mode central --barrier half", "--mode hybrid --barrier asp",
        "--mode peer --barrier phalf:beta=2"}) {
    const ProgramResult ran =
        own("train --model circle --data ring:radius=2 --optimizer adam:lr=0.05 "
            "--epochs 300 --quiet --json --save m " +
            mode_flags);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["test_samples"], 80);
    EXPECT_EQ(json["dtype"], "float64");
    EXPECT_LT(json["test_loss"], 0.01) << mode_flags;
  }
  const ProgramResult evaluated = own("evaluate m --data ring:n=50,radius=3 --json");
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NEAR(nlohmann::json::parse(evaluated.out)["loss"], 1, 0.05);
}

TEST_F(OwnProgram, TrainsAModelOverTables) {
  const ProgramResult ran =
      own("train --model mean --data linear:d=3,n=500 --epochs 20 --quiet --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(nlohmann::json::parse(ran.out).contains("test_error"));
  EXPECT_TRUE(contains(own("predict none").err, "no such file"));
}

TEST_F(OwnProgram, RefusesDataAndModelsThatDoNotFit) {
  EXPECT_TRUE(contains(own("train --model circle --data digits:n=300").err,
                       "--model: model circle learns from data of another type; valid: mean, "));
  EXPECT_TRUE(contains(own("train --model softmax --data ring").err,
                       "--model: model softmax learns from data of another type; valid: circle\n"));
  EXPECT_TRUE(
      contains(own("train --data ring").err,
               "own_program: --model: is needed for data of its own type; valid: circle\n"));
  EXPECT_TRUE(contains(own("train --data ring:m=3 --model circle").err,
                       "--data: ring: unknown option 'm'"));
  EXPECT_TRUE(
      contains(own("train --model circle:x=1 --data ring").err, "circle: takes no options"));
  EXPECT_TRUE(contains(own("train --model circle --data ring --dtype float32").err,
                       "model circle does not compute in float32; valid: float64"));
  EXPECT_TRUE(contains(own("train --model circel --data ring").err, "did you mean 'circle'?"));
  EXPECT_TRUE(contains(own("train --barrier half").err, "peer mode"));
  EXPECT_TRUE(contains(own("train --barrier bsp").err, "; also valid: phalf:beta=2\n"));
  EXPECT_TRUE(contains(own("train --wrokers 2").err, "`own_program train --help` lists"));
  EXPECT_TRUE(contains(own("evaluate").err, "valid: own_program evaluate FILE"));
}

TEST_F(OwnProgram, RefusesParametersThatNoFileCanHold) {
  for (const auto& [names, error_part] : std::vector<std::pair<std::string, std::string>>{
           {"first=w,second=w", "--model: parameter 'w' is given twice"},
           {"first=__metadata__", "--model: parameter '__metadata__': no tensor of a file"},
           {"second=starling.slots", "--model: parameter 'starling.slots': no tensor of a file"},
           {"second=\xff", "--model: parameter '\\xff': no tensor of a file"}}) {
    const ProgramResult ran = own(
        "train --data linear:d=3,n=100 --save m --checkpoint c --metrics x --model named:" + names);
    EXPECT_EQ(ran.code, 2) << names;
    EXPECT_TRUE(contains(ran.err, error_part)) << ran.err;
    EXPECT_TRUE(folder_.names().empty()) << names;
  }
}

TEST_F(OwnProgram, OpensOnlyModelsThatItContains) {
  ASSERT_EQ(own("train --model circle --data ring --epochs 1 --quiet --save m").code, 0);
  const ProgramResult ran = starling(folder_, "evaluate m --data digits:n=10");
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "m: unknown model 'circle'")) << ran.err;
}

/// The model `mean` accepts any table.
TEST_F(OwnProgram, RefusesTestDataWithRowsOfAnotherShape) {
  ASSERT_EQ(own("train --data linear:d=3,n=100 --model mean --epochs 1 --quiet --save m").code, 0);
  folder_.write("s.svm", "1 1:2 3:1\n0 2:1\n");
  for (const auto& [data, error_part] : std::vector<std::pair<std::string, std::string>>{
           {"linear:d=2,n=50", ": has 2 features, but the training data has 3"},
           {"linear:d=5,n=50", ": has 5 features, but the training data has 3"},
           {"libsvm:s.svm", ": has sparse rows, but the training data has dense ones"}}) {
    const ProgramResult ran = own("evaluate m --data " + data);
    EXPECT_EQ(ran.code, 2) << data;
    EXPECT_TRUE(contains(ran.err, error_part)) << ran.err;
  }
  EXPECT_EQ(own("evaluate m --data linear:d=3,n=50").code, 0);
}

TEST_F(OwnProgram, KeepsTheLastGoodModelIfTheLossIsNotFinite) {
  folder_.write("x.csv", "0,2.5\n0,2.5\n0,2.5\n0,2.5\n0,2.5\n");
  const ProgramResult ran =
      own("train --data csv:x.csv,task=value --model fragile:limit=1 --workers 2 "
          "--barrier asp --optimizer sgd:lr=0.1 --steps 1000 --quiet --json --save m");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.err, "worker ")) << ran.err;
  EXPECT_TRUE(contains(ran.err, ", step ")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "the loss is ")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "the last good model is in m")) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["end"], "failed");
  EXPECT_TRUE(contains(json["error"], "the loss is"));
  // The job failed once the mean was above 1, before the mean reached the labels' 2.5.
  const ProgramResult model = own("evaluate m --data csv:x.csv,task=value --json");
  ASSERT_EQ(model.code, 0) << model.err;
  const double error = nlohmann::json::parse(model.out)["error"];
  EXPECT_LT(error, 1.5);
  EXPECT_GT(error, 1.0);
}

TEST_F(OwnProgram, ReportsTheExceptionOfAModel) {
  const ProgramResult ran =
      own("train --data linear:d=3,n=100 --model throwing --attempts 2 --quiet "
          "--save m");
  EXPECT_EQ(ran.code, 1);
  EXPECT_FALSE(folder_.has("m")) << "an untrained model is not a good one";
  EXPECT_TRUE(contains(ran.err, "failed 2 times at step 1: no gradient today")) << ran.err;
}

/// With one worker, the step that fails and the model before it are always the same.
TEST_F(OwnProgram, SavesNothingIfTheFirstGradientIsNotFinite) {
  folder_.write("m", "of an earlier job");
  const ProgramResult ran =
      own("train --data linear:d=3,n=100 --model fragile:limit=-1,gradient --workers 1 "
          "--barrier asp --eval-every 0 --quiet --json --save m --checkpoint c");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.err, "worker 0, step 1: the gradient is not finite")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "m: is as it was, there is no good model to save")) << ran.err;
  EXPECT_EQ(folder_.read("m"), "of an earlier job");
  EXPECT_TRUE(contains(ran.err, "c: was not written\n")) << ran.err;
  EXPECT_FALSE(folder_.has("c")) << "nobody goes on from an untrained model";
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["end"], "failed");
  EXPECT_EQ(json["updates"], 0);
  EXPECT_FALSE(json.contains("saved")) << ran.out;
}

TEST_F(OwnProgram, SavesTheModelBeforeTheGradientThatIsNotFinite) {
  folder_.write("x.csv", "0,2.5\n0,2.5\n0,2.5\n0,2.5\n0,2.5\n");
  const ProgramResult ran =
      own("train --data csv:x.csv,task=value --model fragile:limit=0,gradient --workers 1 "
          "--barrier asp --optimizer sgd:lr=0.1 --eval-every 0 --batch 4 --quiet --save m");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.err, "worker 0, step 2: the gradient is not finite")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "the last good model is in m")) << ran.err;
  const ProgramResult model = own("evaluate m --data csv:x.csv,task=value --json");
  ASSERT_EQ(model.code, 0) << model.err;
  // One step with rate 0.1 from a mean of 0 towards 2.5.
  EXPECT_NEAR(nlohmann::json::parse(model.out)["error"], 2.25, 1e-6);
}

TEST_F(OwnProgram, SavesNothingIfNoModelWasGood) {
  const ProgramResult ran =
      own("train --data linear:d=10,n=500 --workers 1 --barrier asp "
          "--optimizer sgd:lr=1000 --quiet --save m");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.err, "m: was not written, there is no good model to save")) << ran.err;
  EXPECT_FALSE(folder_.has("m"));
}

/// Before the first step there is nothing to save.
TEST_F(OwnProgram, CanBeInterruptedWhileItsModelIsInitialised) {
  folder_.write("hang", "");
  Process process{folder_, STARLING_OWN_PROGRAM,
                  words("train --data linear:d=2,n=100,noise=0 --model slow --save m")};
  ASSERT_TRUE(wait_until([&] { return folder_.has("hanging"); }))
      << "the model is not initialised: " << process.err();
  const auto start = std::chrono::steady_clock::now();
  process.signal(SIGTERM);
  const ProgramResult ran = process.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{1});
  EXPECT_EQ(ran.code, 130);
  EXPECT_TRUE(contains(ran.err, "interrupted, nothing was saved")) << ran.err;
  EXPECT_FALSE(folder_.has("m"));
}

}  // namespace
}  // namespace starling::program
