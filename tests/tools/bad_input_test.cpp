/// Mistakes in the flags of commands: the error names the mistake, its location and the valid
/// input, and nothing is started.
#include <sstream>

#include "tests/tools/bad_input.hpp"

namespace starling::program {
namespace {

using Bad = BadLine;

TEST_P(BadInput, IsRefusedWithItsLocationAndValidInput) {
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

INSTANTIATE_TEST_SUITE_P(
    Clusters, BadInput,
    testing::Values(
        Bad{"NodeOpenToAll",
            "node --listen 0.0.0.0:7400",
            {"--listen: tcp://0.0.0.0:7400: others could reach this node", "--insecure"}},
        Bad{"NodeAnywhere", "node --listen *:7400 --insecure", {"--listen: ", "--advertise"}},
        Bad{"NodeWithMoreOfOneClientThanOfAll",
            "node --jobs 2 --jobs-per-client 3",
            {"--jobs-per-client: 3 is more than all clients may have", "valid: up to 2"}},
        Bad{"NodeWithoutJobs", "node --jobs 0", {"--jobs: '0' must be a whole number >= 1"}},
        Bad{"NodeThatHandsOverSometime",
            "node --handover soon",
            {"--handover: 'soon' must be seconds", "500ms"}},
        Bad{"JobThatDoesNotWait",
            "train --wait-for-nodes 1s",
            {"--wait-for-nodes: '1s'", "from 5s"}},
        Bad{"NodeListensNowhere", "node --listen here", {"--listen: 'here' is no address"}},
        Bad{"NodeCannotListen",
            "node --listen 127.0.0.1:1 --listen 127.0.0.1:2",
            {"--listen: is given twice"}},
        Bad{"NodeJoinsNobody",
            "node --join host",
            {"--join: 'host' is no address; valid: HOST:PORT"}},
        Bad{"SubmitNowhere", "submit --epochs 1", {"--to: is missing"}},
        Bad{"SubmitToNoAddress", "submit --to host:0", {"--to: 'host:0' is no address"}},
        Bad{"SubmitOfNoJob",
            "submit --to 127.0.0.1:1 --workers 0",
            {"--workers: '0' must be a whole number >= 1"}},
        Bad{"LogsOfNobody", "logs", {"--to: is missing"}},
        Bad{"LeaveOfNobody", "leave", {"--to: is missing"}},
        Bad{"StatusOfNobody", "status", {"--to: is missing"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Bench, BadInput,
    testing::Values(
        Bad{"OfNothing", "bench", {"what to measure is missing; valid: kernels, train"}},
        Bad{"OfSomethingElse",
            "bench trian",
            {"'trian' is nothing that can be measured; did you mean 'train'?"}},
        Bad{"Flag", "bench train --stesp 3", {"unknown flag '--stesp'", "did you mean '--steps'?"}},
        Bad{"KernelsFlag", "bench kernels --bach 3", {"unknown flag '--bach'", "'--batch'?"}},
        Bad{"KernelsArgument", "bench kernels 64", {"'64' is one argument too many"}},
        Bad{"KernelsBatch", "bench kernels --batch 0", {"--batch: '0'", ">= 1", "<= 65536"}},
        Bad{"KernelsRepeats", "bench kernels --repeats x", {"--repeats: 'x'", "<= 1000"}},
        Bad{"Batch", "bench train --batch 65537", {"--batch: '65537'", "<= 65536"}},
        Bad{"Repeats", "bench train --repeats 0", {"--repeats: '0'", ">= 1"}},
        Bad{"Steps", "bench train --steps 0", {"--steps: '0'", ">= 1"}},
        Bad{"Seconds", "bench train --seconds 0", {"--seconds: '0' must be seconds", "above 0"}},
        Bad{"ForEver", "bench train --seconds 25h", {"--seconds: '25h'", "up to 24h"}},
        Bad{"StepsAndSeconds",
            "bench train --steps 5 --seconds 1",
            {"--seconds: excludes --steps; valid: one of them"}},
        Bad{"Seed", "bench train --seed -1", {"--seed: '-1' must be a whole number >= 0"}},
        Bad{"Twice", "bench train --batch 2 --batch 3", {"--batch: is given twice"}},
        Bad{"Model",
            "bench train --data digits:n=20 --model lenet",
            {"--model: unknown model 'lenet'", "did you mean 'lenet5'?"}},
        Bad{"ModelOfOtherData",
            "bench train --data digits:n=20 --model mlp:5-10",
            {"--model: ", "mlp:5-10", "use mlp:784-10"}},
        Bad{"Data", "bench train --data digit", {"--data: ", "did you mean 'digits'?"}},
        Bad{"DataFile", "bench train --data csv:none.csv", {"--data: ", "none.csv"}},
        Bad{"Optimizer", "bench train --optimizer sgdd", {"--optimizer: ", "did you mean 'sgd'?"}},
        Bad{"OptimizerRate",
            "bench train --optimizer sgd:lr=x",
            {"--optimizer: sgd: lr=x", "number"}}),
    name_of);

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
        Bad{"DataMissing", "train --data csv:nope", {"--data: nope: no such file"}},
        Bad{"TestMissing",
            "train --data digits:n=9 --test csv:nope",
            {"--test: nope: no such file"}},
        Bad{"Holdout", "train --holdout 1", {"--holdout: '1' must be a share between 0 and 1"}}),
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
}  // namespace starling::program
