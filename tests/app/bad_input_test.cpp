/// What people get wrong on the command line and in job files: each is told what, where, and what
/// would be right; nothing is started.
#include "tests/app/program.hpp"

namespace starling::app {
namespace {

struct Bad {
  std::string name;
  std::string line;
  std::vector<std::string> said;
  /// The content of job.toml, if any.
  std::string job = {};
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.line; }

class BadInput : public testing::TestWithParam<Bad> {};

TEST_P(BadInput, IsRefusedWithItsPlaceAndWhatIsValid) {
  const Folder folder;
  if (!GetParam().job.empty()) folder.write("job.toml", GetParam().job);
  const auto before = folder.names();
  const Ran ran = starling(folder, GetParam().line);
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(folder.names(), before) << "a file was left";
  for (const std::string& fragment : GetParam().said)
    EXPECT_NE(ran.err.find(fragment), std::string::npos) << fragment << "\nis not in\n" << ran.err;
  std::istringstream said{ran.err};
  std::vector<std::string> errors;
  for (std::string line; std::getline(said, line);)
    if (!line.starts_with("loading ")) errors.push_back(line);
  ASSERT_EQ(errors.size(), 1U) << ran.err;
  EXPECT_TRUE(errors[0].starts_with("starling: ")) << ran.err;
}

std::string name_of(const testing::TestParamInfo<Bad>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Flags, BadInput,
    testing::Values(
        Bad{"Command", "trian", {"unknown command 'trian'", "did you mean 'train'?"}},
        Bad{"CommandForFlag", "version", {"unknown command 'version'; did you mean '--version'?"}},
        Bad{"FlagOfTrain", "--json", {"'--json' is a flag of train; valid: starling train --json"}},
        Bad{"Flag", "train --wrokers 2", {"unknown flag '--wrokers'", "did you mean '--workers'?"}},
        Bad{"FlagWithEquals", "train --wrokers=2", {"'--wrokers'", "did you mean '--workers'?"}},
        Bad{"SecondFile", "train a.toml b.toml", {"'b.toml' is one argument too many"}},
        Bad{"NoValue", "train --workers", {"--workers: needs a value"}},
        Bad{"Twice", "train --workers 2 --workers 3", {"--workers: is given twice"}},
        Bad{"ZeroWorkers", "train --workers 0", {"--workers: '0'", ">= 1"}},
        Bad{"ManyWorkers", "train --workers 99999999", {"--workers: '99999999'", "<= 65536"}},
        Bad{"NoNumber", "train --workers four", {"--workers: 'four' must be a whole number"}},
        Bad{"NegativeSeed", "train --seed -1", {"--seed: '-1' must be a whole number >= 0"}},
        Bad{"ZeroBatch", "train --batch 0", {"--batch: '0'", ">= 1"}},
        Bad{"ZeroEpochs", "train --epochs 0", {"--epochs: '0' must be a number above 0"}},
        Bad{"NanEpochs", "train --epochs nan", {"--epochs: 'nan' must be a number above 0"}},
        Bad{"ZeroSteps", "train --steps 0", {"--steps: '0'", ">= 1"}},
        Bad{"Seconds", "train --seconds 3x", {"--seconds: '3x' must be seconds", "200ms"}},
        Bad{"ZeroSeconds", "train --seconds 0", {"--seconds: '0' must be seconds", "above 0"}},
        Bad{"LargeSeed",
            "train --seed 18446744073709551616",
            {"--seed: '18446744073709551616'", "<= 18446744073709551615"}},
        Bad{"NegativeDecay", "train --l2 -1", {"--l2: '-1' must be a number >= 0"}},
        Bad{"Dtype", "train --dtype float16", {"--dtype: 'float16'", "valid: float32, float64"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Specs, BadInput,
    testing::Values(
        Bad{"Barrier",
            "train --barrier pspp:beta=2",
            {"--barrier: 'pspp' is unknown", "did you mean 'pssp'?", "bsp, pbsp"}},
        Bad{"BarrierOption", "train --barrier pbsp:bta=2", {"--barrier: ", "sample size"}},
        Bad{"NegativeStaleness",
            "train --barrier pssp:s=-1,beta=2",
            {"--barrier: pssp: s=-1 must be a whole number >= 0"}},
        Bad{"LargeSample",
            "train --workers 4 --barrier pbsp:beta=4",
            {"--barrier: ", "beta=4 others cannot be drawn among 4 workers", "beta = 0 to 3"}},
        Bad{"Mode", "train --mode pear", {"--mode: 'pear' is unknown", "did you mean 'peer'?"}},
        Bad{"Recheck", "train --recheck sometimes", {"--recheck: ", "sometimes", "notify"}},
        Bad{"RecheckUnit", "train --recheck interval:5", {"--recheck: ", "5", "20ms"}},
        Bad{"Optimizer",
            "train --optimizer adem",
            {"--optimizer: unknown optimizer 'adem'", "did you mean 'adam'?"}},
        Bad{"OptimizerOption",
            "train --optimizer adam:rate=1",
            {"--optimizer: adam: unknown option 'rate'", "lr"}},
        Bad{"Momentum", "train --optimizer sgd:momentum=1", {"--optimizer: ", "below 1"}},
        Bad{"WordWithValue",
            "train --optimizer sgd:lr=0.1,momentum=0.9,nesterov=true",
            {"--optimizer: sgd: nesterov=true: is a word without a value; valid: nesterov"}},
        Bad{"Schedule", "train --schedule cosin:samples=9", {"--schedule: ", "cosine"}},
        Bad{"Clip", "train --clip norm:0", {"--clip: ", "'0' must be a number above 0"}},
        Bad{"Delay", "train --delay exp:20", {"--delay: ", "exp:20ms"}},
        Bad{"Straggler", "train --straggler 1:4", {"--straggler: ", "1:4x"}},
        Bad{"Stragglers",
            "train --workers 2 --straggler 3:4x --barrier asp",
            {"--straggler: ", "more stragglers than the job's 2 workers"}},
        Bad{"StragglersNone",
            "train --straggler 5%:4x",
            {"--straggler: ", "5%:4x", "of 4 workers rounds to none", "valid: 12.5%:4x", "1:4x"}},
        Bad{"Goal", "train --until accuracy", {"--until: 'accuracy' is no goal", "accuracy=0.95"}},
        Bad{"Model",
            "train --data digits:n=300 --model softmx",
            {"--model: unknown model 'softmx'", "did you mean 'softmax'?"}},
        Bad{"ModelOption",
            "train --data digits:n=300 --model softmax:bais=0",
            {"--model: softmax: unknown option 'bais'", "did you mean 'bias'?"}},
        Bad{"Data", "train --data digts", {"--data: unknown data source 'digts'", "'digits'?"}},
        Bad{"DataOption", "train --data digits:m=5", {"--data: digits: unknown option 'm'", "n"}},
        Bad{"Test", "train --test digts", {"--test: unknown data source 'digts'", "'digits'?"}},
        Bad{"DataMissing", "train --data csv:nope", {"--data: cannot open 'nope'"}},
        Bad{"TestMissing",
            "train --data digits:n=9 --test csv:nope",
            {"--test: cannot open 'nope'"}},
        Bad{"Holdout", "train --holdout 1", {"--holdout: '1' must be a share between 0 and 1"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Combinations, BadInput,
    testing::Values(
        Bad{"BspInPeer",
            "train --mode peer --barrier bsp",
            {"--barrier: ", "peer mode", "asp, pbsp:beta=..., pssp:s=...,beta=...", "central"}},
        Bad{"SspInHybrid", "train --mode hybrid --barrier ssp:s=2", {"--barrier: ", "hybrid mode"}},
        Bad{"ArrivalInHybrid",
            "train --mode hybrid --recheck arrival",
            {"--recheck: ", "central mode only", "notify"}},
        Bad{"ShardsInPeer", "train --mode peer --shards 2", {"--shards: peer mode has no servers"}},
        Bad{"SampleOfTwo",
            "train --workers 2 --barrier pssp:s=4,beta=2",
            {"--barrier: ", "beta=2 others", "0 to 1, as in pssp:s=4,beta=1"}},
        Bad{"SplitAndHoldout",
            "train --split 5 --holdout 0.5",
            {"--split and --holdout exclude each other"}},
        Bad{"SplitTooLarge",
            "train --data digits:n=300 --split 300",
            {"--split 300 of 300 rows leaves nothing to test on", "1 to 299"}},
        Bad{"CheckpointEvery",
            "train --checkpoint-every 5",
            {"--checkpoint-every: needs the name of a file", "--checkpoint FILE"}},
        Bad{"GoalOfGettingWorse",
            "train --until loss>=0.1",
            {"--until: 'loss>=0.1' would be reached by getting worse; valid: loss<=0.1"}},
        Bad{"UnknownGoal",
            "train --data digits:n=300 --until mse=1",
            {"--until: the model has no figure 'mse'", "loss, accuracy"}},
        Bad{"GoalWithoutTests",
            "train --data digits:n=300 --until loss=1 --eval-every 0",
            {"--until: is never looked at with eval-every 0"}},
        Bad{"RegressionOnClasses",
            "train --data digits:n=300 --model linear",
            {"--model: linear needs real targets, the data has 10 classes"}},
        Bad{"RatingsAsClasses",
            "train --data csv:job.toml --model mf",
            {"--model: mf needs ratings as real targets, the data has 2 classes; or read its "
             "labels "
             "otherwise: csv:job.toml,task=value"},
            "0,0,1\n1,0,2\n0,1,1\n"},
        Bad{"ClassesAsTargets",
            "train --data csv:job.toml --model softmax",
            {"softmax needs 2 or more classes, the data has real targets; or read its labels "
             "otherwise: csv:job.toml,task=class"},
            "0,3\n1,4\n2,3\n"},
        Bad{"TargetsOnly",
            "train --data csv:job.toml --model softmax",
            {"the data has real targets\n"},
            "0,3.5\n1,4\n2,3\n"},
        Bad{"ClassesOnTargets",
            "train --data linear:d=5,n=50 --model softmax",
            {"--model: softmax needs 2 or more classes, the data has real targets"}},
        Bad{"LogisticOnTen",
            "train --data digits:n=300 --model logistic",
            {"--model: logistic needs 2 classes, the data has 10"}},
        Bad{"Widths", "train --data digits:n=300 --model mlp:10-10", {"--model: ", "784"}},
        Bad{"ModelBeyondMemory",
            "train --data digits:n=300 --model mlp:784-1000000-1000000-10 --save m",
            {"--model: mlp:784-1000000-1000000-10 has 1000796000010 parameters, 4003.2 GB in "
             "float32",
             "this machine has "}},
        Bad{"TestOfOtherWidth",
            "train --data linear:d=5,n=50 --test linear:d=6,n=50",
            {"--test: linear:d=6,n=50,noise=0.1: has 6 features, but linear:d=5", "has 5"}},
        Bad{"SameFile",
            "train --save a --checkpoint a",
            {"--save: 'a' is also the file of --checkpoint"}},
        Bad{"NoFolder",
            "train --save no/such/folder/m",
            {"--save: no/such/folder/m: cannot be written: No such file"}},
        Bad{"SaveIsFolder", "train --save /tmp", {"--save: /tmp: is a directory"}},
        Bad{"SaveIsDevice", "train --save /dev/null", {"--save: ", "not a regular file"}},
        Bad{"MetricsIsFolder", "train --metrics /tmp", {"--metrics: /tmp: is a directory"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    JobFiles, BadInput,
    testing::Values(
        Bad{"Missing", "train job.toml", {"job.toml: no such file"}},
        Bad{"Key",
            "train job.toml",
            {"job.toml:3: unknown key 'wrokers'", "'workers'?"},
            "# a job\nmode = \"peer\"\nwrokers = 2\n"},
        Bad{"Type",
            "train job.toml",
            {"job.toml:1: workers: must be a whole number"},
            "workers = \"4\"\n"},
        Bad{"FloatForCount",
            "train job.toml",
            {"job.toml:1: workers: must be a whole number"},
            "workers = 2.5\n"},
        Bad{"SecondsForFlag",
            "train job.toml",
            {"job.toml:1: seconds: must be a number of seconds, or a duration"},
            "seconds = true\n"},
        Bad{"NumberForText",
            "train job.toml",
            {"job.toml:1: model: must be a string"},
            "model = 3\n"},
        Bad{"NumberForFlag",
            "train job.toml",
            {"job.toml:1: json: must be true or false"},
            "json = 1\n"},
        Bad{"Value",
            "train job.toml",
            {"job.toml:2: barrier: 'pspp' is unknown", "'pssp'?"},
            "workers = 4\nbarrier = \"pspp:beta=1\"\n"},
        Bad{"Negative", "train job.toml", {"job.toml:1: workers: '-4' must be"}, "workers = -4\n"},
        Bad{"Combination",
            "train job.toml",
            {"job.toml:2: barrier: ", "peer mode"},
            "mode = \"peer\"\nbarrier = \"bsp\"\n"},
        Bad{"Twice",
            "train job.toml",
            {"starling: job.toml:4: workers: is given twice, first in line 2\n"},
            "# a job\nworkers = 4\nseed = 1\n\"workers\" = 5\n"},
        Bad{"TwiceOverLines",
            "train job.toml",
            {"starling: job.toml:5: straggler: is given twice, first in line 1\n"},
            "straggler = [\n  \"1:4x\",\n  \"1:2x\",\n]\nstraggler = \"1:3x\"\n"},
        Bad{"NoToml", "train job.toml", {"job.toml:1: is no TOML"}, "workers = \n"},
        Bad{"Binary", "train job.toml", {"job.toml:1: is no TOML"}, "\x7f\x45LF\x01\x02"},
        Bad{"Section",
            "train job.toml",
            {"job.toml:1: unknown key 'train'"},
            "[train]\nworkers = 4\n"},
        Bad{"StragglerInList",
            "train job.toml",
            {"job.toml:1: straggler: ", "'1:x'"},
            "straggler = [\"1:4x\", \"1:x\"]\n"},
        Bad{"Endless", "train /dev/zero", {"/dev/zero: is larger than 1 MiB"}},
        Bad{"Large",
            "train job.toml",
            {"job.toml: is larger than 1 MiB"},
            std::string(2'000'000, '#')}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    OtherCommands, BadInput,
    testing::Values(
        Bad{"EvaluateWithoutModel",
            "evaluate --data digits:n=10",
            {"file is missing; valid: starling evaluate FILE"}},
        Bad{"EvaluateMissing",
            "evaluate none.safetensors",
            {"starling: none.safetensors: no such file"}},
        Bad{"EvaluateTwoModels",
            "evaluate a.safetensors --model-file b.safetensors",
            {"'a.safetensors' and --model-file b.safetensors exclude each other",
             "starling evaluate FILE"}},
        Bad{"PredictTwoModels",
            "predict --model-file b a",
            {"'a' and --model-file b exclude each other", "starling predict FILE"}},
        Bad{"PredictThirdArgument", "predict a b", {"'b' is one argument too many"}},
        Bad{"EvaluateFlag", "evaluate --model_file x", {"--model"}},
        Bad{"PredictOut",
            "predict --model-file none --out no/such/p.csv",
            {"--out: no/such/p.csv: cannot be written"}},
        Bad{"InspectNothing", "inspect", {"WHAT is required"}},
        Bad{"InspectUnknown", "inspect digts:n=4", {"unknown data source 'digts'", "'digits'?"}},
        Bad{"InspectMissing", "inspect nope.st", {"starling: nope.st: no such file"}},
        Bad{"InspectSeed", "inspect digits:n=4 --seed x", {"--seed: 'x' is not a whole number"}},
        Bad{"BarriersArgument", "barriers bsp", {"'bsp' is one argument too many"}}),
    name_of);

}  // namespace
}  // namespace starling::app
