/// Runs the program with `--eval-every`, `--patience`, `--keep`, `--until` and `--init`.
#include <nlohmann/json.hpp>
#include <random>

#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// Returns a CSV file with `rows` rows of 20 features and a class. The class depends on the first
/// feature and on `noise`. With the default noise, a model that trains for long overfits.
std::string noisy(std::size_t rows, unsigned seed, double noise = 2) {
  std::mt19937 random{seed};
  std::normal_distribution<double> normal;
  std::ostringstream out;
  for (std::size_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int c = 0; c < 20; ++c) {
      const double x = normal(random);
      if (c == 0) sum += x;
      out << x << ',';
    }
    out << (sum + noise * normal(random) > 0 ? 1 : 0) << '\n';
  }
  return out.str();
}

class EarlyStop : public testing::Test {
 protected:
  EarlyStop() {
    folder_.write("a.csv", noisy(60, 1));
    folder_.write("b.csv", noisy(200, 2));
    folder_.write("clear.csv", noisy(400, 3, 0.1));
  }
  /// Runs a job that overfits, and that gives the same model in each run.
  [[nodiscard]] ProgramResult train(const std::string& more_flags) const {
    return starling(folder_,
                    "train --data csv:a.csv --test csv:b.csv --mode central --barrier bsp "
                    "--workers 2 --batch 8 --optimizer adam:lr=0.05 --l2 0 --quiet " +
                        more_flags);
  }
  /// Runs a job that learns well, and returns its JSON output.
  [[nodiscard]] Json learned(const std::string& more_flags) const {
    const ProgramResult ran = starling(folder_,
                                       "train --data csv:clear.csv --quiet --json --mode central "
                                       "--barrier bsp --workers 2 --schedule constant " +
                                           more_flags);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(ran.out, nullptr, false);
  }
  /// Runs train() and returns its JSON output.
  [[nodiscard]] Json json(const std::string& more_flags) const {
    const ProgramResult ran = train(more_flags + " --json");
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(ran.out, nullptr, false);
  }
  /// Returns the lines of a file of --metrics that have this event.
  [[nodiscard]] std::vector<Json> lines(const std::string& file, const std::string& event) const {
    std::istringstream in{folder_.read(file)};
    std::vector<Json> found;
    for (std::string line; std::getline(in, line);)
      if (Json one = Json::parse(line); one["event"] == event) found.push_back(std::move(one));
    return found;
  }
  /// Returns what `evaluate` prints about a saved model.
  [[nodiscard]] Json evaluated(const std::string& model) const {
    return Json::parse(starling(folder_, "evaluate " + model + " --json").out, nullptr, false);
  }

  Folder folder_;
};

TEST_F(EarlyStop, EndsAJobWhoseTestLossStopsFalling) {
  const Json all = json("--steps 2000 --eval-every 10");
  EXPECT_EQ(all["end"], "completed");
  EXPECT_EQ(all["kept"], "last");
  const Json early = json("--steps 2000 --eval-every 10 --patience 5 --save m --metrics f");
  EXPECT_EQ(early["end"], "stopped early");
  EXPECT_EQ(early["patience"], 5);
  EXPECT_LT(early["updates"], all["updates"]);
  EXPECT_EQ(early["kept"], "best");
  EXPECT_EQ(early["kept_step"], early["best_step"]);
  EXPECT_LT(early["test_loss"], all["test_loss"]);
  EXPECT_DOUBLE_EQ(evaluated("m")["loss"], early["test_loss"]);
  // The kept model is the best of all that were evaluated.
  double least = 1e9;
  for (const Json& line : lines("f", "evaluation"))
    least = std::min(least, line["test_loss"].get<double>());
  EXPECT_DOUBLE_EQ(early["test_loss"], least);
}

TEST_F(EarlyStop, SaysWhyItEndedAndWhichModelIsKept) {
  const ProgramResult ran = train("--steps 2000 --eval-every 10 --patience 5");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("stopped early: no better test loss for 5 evaluations, best at step "),
            std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("chosen by its loss on the test data"), std::string::npos) << ran.out;
}

TEST_F(EarlyStop, WorksInEveryMode) {
  for (const std::string mode :
       {"--mode peer --barrier pssp:s=4,beta=1", "--mode hybrid --barrier asp",
        "--mode central --barrier ssp:s=2", "--mode peer --barrier pbsp:beta=1"}) {
    const ProgramResult ran =
        starling(folder_,
                 "train --data csv:a.csv --test csv:b.csv --workers 2 --batch 8 --l2 0 "
                 "--optimizer adam:lr=0.05 --steps 1000000 --eval-every 10 --patience "
                 "5 --quiet --json " +
                     mode);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(Json::parse(ran.out)["end"], "stopped early") << mode;
  }
}

TEST_F(EarlyStop, KeepsTheModelThatKeepNames) {
  const std::string job = "--steps 1000 --eval-every 10 ";
  const Json best = json(job + "--keep best --save best");
  const Json last = json(job + "--keep last --save last");
  const Json early = json(job + "--patience 5 --keep last --save early");
  EXPECT_EQ(best["end"], "completed");
  EXPECT_EQ(best["kept"], "best");
  EXPECT_LT(best["test_loss"], last["test_loss"]);
  EXPECT_DOUBLE_EQ(evaluated("best")["loss"], best["test_loss"]);
  EXPECT_DOUBLE_EQ(evaluated("last")["loss"], last["test_loss"]);
  EXPECT_EQ(last["kept_step"], 1000);
  EXPECT_EQ(early["kept"], "last");
  EXPECT_GT(early["kept_step"], early["best_step"]);
  const std::string shown = starling(folder_, "inspect best").out;
  EXPECT_NE(shown.find("kept = best"), std::string::npos) << shown;
  EXPECT_NE(shown.find("step = " + best["kept_step"].dump() + "\n"), std::string::npos) << shown;
}

TEST_F(EarlyStop, KeepsTheModelThatReachedTheTarget) {
  const Json job =
      learned("--steps 5000 --eval-every 5 --patience 50 --until accuracy=0.9 --save m");
  EXPECT_EQ(job["end"], "reached");
  EXPECT_EQ(job["kept"], "last");
  EXPECT_GE(job["test_accuracy"], 0.9);
  EXPECT_DOUBLE_EQ(evaluated("m")["accuracy"], job["test_accuracy"]);
}

TEST_F(EarlyStop, IsReadFromJobFiles) {
  folder_.write("job.toml",
                "data = \"csv:a.csv\"\ntest = \"csv:b.csv\"\nsteps = 1000000\neval-every = 20\n"
                "patience = 3\nkeep = \"last\"\nmode = \"central\"\nbarrier = \"bsp\"\n");
  const ProgramResult ran = starling(folder_, "train job.toml --quiet --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["end"], "stopped early");
}

TEST_F(EarlyStop, EachEvaluationIsWrittenOrCounted) {
  const Json short_job = json("--steps 90 --eval-every 7 --metrics f");
  const auto written = lines("f", "evaluation");
  EXPECT_EQ(short_job["evaluations"], written.size());
  EXPECT_EQ(short_job["evaluations_due"], 13);
  std::uint64_t left_out = 0;
  if (short_job.contains("evaluations_left_out"))
    for (const auto& [why, count] : short_job["evaluations_left_out"].items())
      left_out += count.get<std::uint64_t>();
  EXPECT_EQ(written.size() + left_out, 13U) << short_job;
  EXPECT_EQ(written.back()["step"], 90);
  const ProgramResult table = train("--steps 90 --eval-every 7");
  EXPECT_NE(table.out.find(" of 13, one every 7 steps and one at the end"), std::string::npos)
      << table.out;
}

TEST_F(EarlyStop, UntilTakesTheFiguresOfEvaluate) {
  const Json auc = learned("--steps 5000 --eval-every 5 --until auc>=0.95 --save m");
  EXPECT_EQ(auc["end"], "reached");
  EXPECT_GE(auc["test_auc"], 0.95);
  EXPECT_NEAR(evaluated("m")["auc"], auc["test_auc"], 1e-12);
  const Json recall = learned("--steps 5000 --eval-every 5 --until recall:1>=0.7 --save m");
  EXPECT_EQ(recall["end"], "reached");
  EXPECT_NEAR(evaluated("m")["classes"][1]["recall"], recall["test_recall:1"], 1e-12);
  const ProgramResult real =
      starling(folder_,
               "train --data linear:d=10,n=2000 --until r2=0.9 --steps 100000 "
               "--eval-every 20 --quiet --json");
  ASSERT_EQ(real.code, 0) << real.err;
  EXPECT_EQ(Json::parse(real.out)["end"], "reached");
  EXPECT_GE(Json::parse(real.out)["test_r2"], 0.9);
}

TEST_F(EarlyStop, InitBeginsWithASavedModel) {
  const Json first = learned("--optimizer sgd:lr=0.1 --steps 40 --save m");
  const Json none = learned("--optimizer sgd:lr=0.000000001 --steps 1 --init m --save n");
  EXPECT_NEAR(none["test_loss"], first["test_loss"], 1e-6);
  EXPECT_EQ(none["updates"], 2);
  EXPECT_DOUBLE_EQ(evaluated("n")["loss"], none["test_loss"]);
}

/// The parameters of a saved model fit only features that are scaled as in its training. Therefore
/// the job scales its rows, which differ, by the scaling of the saved model.
TEST_F(EarlyStop, InitUsesTheScalingOfTheSavedModel) {
  ASSERT_EQ(train("--steps 200 --save m").code, 0);
  std::istringstream in{noisy(100, 3)};
  std::string shifted;
  for (std::string line; std::getline(in, line);)
    shifted += "9" + line.substr(line.find(',')) + "\n";
  folder_.write("c.csv", shifted);
  const ProgramResult ran =
      starling(folder_,
               "train --data csv:c.csv --test csv:b.csv --init m --steps 1 --optimizer "
               "sgd:lr=0.000000001 --quiet --json --save n");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json_of = Json::parse(ran.out);
  EXPECT_EQ(json_of["scale"], "standard");
  EXPECT_NEAR(json_of["test_loss"], evaluated("m")["loss"], 1e-6);
  EXPECT_DOUBLE_EQ(evaluated("n")["loss"], json_of["test_loss"]);
}

TEST_F(EarlyStop, InitSetsTheModelAndItsElementType) {
  ASSERT_EQ(train("--steps 5 --model mlp:20-4-2 --dtype float64 --save m").code, 0);
  const Json continued = json("--steps 5 --init m");
  EXPECT_EQ(continued["model"], "mlp:20-4-2");
  EXPECT_EQ(continued["dtype"], "float64");
}

TEST_F(EarlyStop, ResumesAJobThatBeganWithInit) {
  ASSERT_EQ(train("--steps 20 --save m").code, 0);
  const std::string job =
      "train --data csv:b.csv --mode central --barrier bsp --workers 2 --schedule constant "
      "--quiet ";
  ASSERT_EQ(starling(folder_, job + "--init m --steps 20 --checkpoint c").code, 0);
  const ProgramResult rest = starling(folder_, job + "--resume c --steps 30 --json");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(Json::parse(rest.out)["updates"], 60);
}

/// Flags of `train` with a mistake.
struct WrongFlags {
  std::string name;
  std::string flags;
  /// Texts that the error message contains.
  std::vector<std::string> error_parts;
};

void PrintTo(const WrongFlags& wrong, std::ostream* out) { *out << wrong.flags; }

class WrongChoice : public testing::TestWithParam<WrongFlags> {};

/// The test writes models and data to which the flags refer. `m` is a float32 softmax model of 20
/// standardised features and the classes 0 and 1; `c` is its checkpoint. `r` is a linear model of
/// 20 features, and `p` a perceptron. `bare` is `m` with a NaN and without a checksum.
TEST_P(WrongChoice, IsRefusedWithItsLocationAndValidInput) {
  const Folder folder;
  folder.write("a.csv", noisy(40, 1));
  folder.write("wide.csv", "1,2,3,0\n4,5,6,1\n7,8,9,0\n1,0,1,1\n2,2,2,0\n");
  std::string later;
  std::istringstream in{noisy(40, 1)};
  for (std::string line; std::getline(in, line);)
    later += line.substr(0, line.rfind(',')) + (line.ends_with('1') ? ",2\n" : ",1\n");
  folder.write("later.csv", later);
  folder.write("three.csv", later + later.substr(0, later.find('\n') - 1) + "3\n");
  folder.write("text", "no model");
  ASSERT_EQ(
      starling(folder, "train --data csv:a.csv --steps 3 --quiet --save m --checkpoint c").code, 0);
  ASSERT_EQ(starling(folder, "train --data csv:a.csv,task=value --steps 3 --quiet --save r").code,
            0);
  ASSERT_EQ(
      starling(folder, "train --data csv:a.csv --model mlp:20-4-2 --steps 3 --quiet --save p").code,
      0);
  folder.write("bare", with_nan(folder.read("m"), "weights", 0));
  const auto before = folder.names();
  const ProgramResult ran = starling(folder, "train --quiet " + GetParam().flags);
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(folder.names(), before);
  for (const std::string& part : GetParam().error_parts)
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << "\nis not in\n" << ran.err;
}

INSTANTIATE_TEST_SUITE_P(
    Of, WrongChoice,
    testing::Values(
        WrongFlags{
            "PatienceThatIsNoNumber", "--patience long", {"--patience: 'long' must be a whole"}},
        WrongFlags{
            "PatienceBelowZero", "--patience -1", {"--patience: '-1' must be a whole number >= 0"}},
        WrongFlags{"PatienceThatIsNotLookedAt",
                   "--patience 3 --eval-every 0",
                   {"--patience: has no effect with eval-every 0", "eval-every of 1 or more"}},
        WrongFlags{
            "KeepOfAnother", "--keep first", {"--keep: 'first' is not a model", "best, last"}},
        WrongFlags{"KeepThatIsNotLookedAt",
                   "--keep best --eval-every 0",
                   {"--keep: has no effect with eval-every 0"}},
        WrongFlags{"InitOfNoFile", "--data csv:a.csv --init none", {"--init: none: no such file"}},
        WrongFlags{"InitOfNoModel", "--data csv:a.csv --init text", {"--init: text: "}},
        WrongFlags{"InitThatIsEmpty", "--data csv:a.csv --init ''", {"--init: ", "empty"}},
        WrongFlags{"InitAndResume",
                   "--data csv:a.csv --init m --resume c",
                   {"--init and --resume exclude each other"}},
        WrongFlags{"InitOfAnotherModel",
                   "--data csv:a.csv --init m --model logistic",
                   {"--init: m: holds the model softmax, not logistic"}},
        WrongFlags{
            "InitOfAnotherShape",
            "--data csv:wide.csv --init m",
            {"--init: m: was trained on 20 features, the data have 3; valid: data of 20 features"}},
        WrongFlags{"InitOfAnotherInputLayer",
                   "--data csv:wide.csv --init p",
                   {"--init: p: was trained on 20 features, the data have 3; valid: data of 20"}},
        WrongFlags{"InitOfAnotherType",
                   "--data csv:a.csv --init m --dtype float64",
                   {"--init: m: holds parameters in float32, and dtype says float64"}},
        WrongFlags{"InitOfAnotherScale",
                   "--data csv:a.csv --init m --scale minmax",
                   {"--init: m: was trained on data of scale standard", "scale says minmax"}},
        WrongFlags{
            "InitOfOtherLabels",
            "--data csv:later.csv --init m",
            {"--init: m: was trained on classes that begin with 0, the classes of the data begin "
             "with 1"}},
        WrongFlags{"InitOfMoreClasses",
                   "--data csv:three.csv --init m",
                   {"--init: m: was trained on 2 classes, the data have 3 classes; valid: data of "
                    "2 classes"}},
        WrongFlags{"InitOfRealTargets",
                   "--data csv:a.csv,task=class --init r --model softmax",
                   {"--init: r: was trained on real targets, the data have 2 classes"}},
        WrongFlags{
            "InitWithoutASum", "--data csv:a.csv --init bare", {"--init: bare: has no checksum"}},
        WrongFlags{"InitThatIsNotFinite",
                   "--data csv:a.csv --init bare --trust-file",
                   {"--init: bare: tensor 'weights' holds nan"}},
        WrongFlags{"InitThatIsAnOutput",
                   "--data csv:a.csv --init m --save m",
                   {"--save: 'm' is also the file of --init"}},
        WrongFlags{"TrustWithoutAFile",
                   "--data csv:a.csv --trust-file",
                   {"--trust-file: needs the name of a file: --resume FILE or --init FILE"}},
        WrongFlags{"GoalOfOneClassOfNone",
                   "--data csv:a.csv --until recall:7=0.5",
                   {"--until: the model has no metric 'recall:7'", "recall:0, recall:1"}},
        WrongFlags{
            "GoalOfTargets",
            "--data csv:a.csv --until r2=0.5",
            {"--until: the model has no metric 'r2'", "valid: loss, accuracy, auc, precision"}},
        WrongFlags{"GoalOfClasses",
                   "--data csv:a.csv,task=value --until auc=0.5",
                   {"--until: the model has no metric 'auc'", "mae, rmse, r2"}},
        WrongFlags{"GoalThatNobodyReaches",
                   "--data csv:a.csv --until auc>=1.2",
                   {"--until: 'auc>=1.2'", "auc from 0 to 1"}},
        WrongFlags{"GoalThatIsReachedByGettingWorse",
                   "--data csv:a.csv --until precision<=0.5",
                   {"--until: 'precision<=0.5' would be reached by getting worse"}}),
    [](const auto& wrong) { return wrong.param.name; });

}  // namespace
}  // namespace starling::program
