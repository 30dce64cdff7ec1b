/// Mistakes in the flags of commands. The error names the mistake, its location and the valid
/// input, and the program starts nothing.
#include <sstream>

#include "tests/tools/bad_input.hpp"

namespace starling::program {
namespace {

TEST_P(BadInput, IsRefusedWithItsLocationAndValidInput) {
  const Folder folder;
  if (!GetParam().job_toml.empty()) folder.write("job.toml", GetParam().job_toml);
  const auto before = folder.names();
  const ProgramResult ran = starling(folder, GetParam().line);
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(folder.names(), before) << "a file was left";
  for (const std::string& part : GetParam().error_parts)
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << "\nis not in\n" << ran.err;
  std::istringstream messages{ran.err};
  std::vector<std::string> errors;
  for (std::string line; std::getline(messages, line);)
    if (!line.starts_with("loading ")) errors.push_back(line);
  ASSERT_EQ(errors.size(), 1U) << ran.err;
  EXPECT_TRUE(errors[0].starts_with("starling: ")) << ran.err;
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, BadInput,
    testing::Values(
        BadLine{"NodeOpenToAll",
                "node --listen 0.0.0.0:7400",
                {"--listen: tcp://0.0.0.0:7400: others could reach this node", "--insecure"}},
        BadLine{"NodeAnywhere", "node --listen *:7400 --insecure", {"--listen: ", "--advertise"}},
        BadLine{"NodeWithMoreOfOneClientThanOfAll",
                "node --jobs 2 --jobs-per-client 3",
                {"--jobs-per-client: 3 is more than all clients may have", "valid: up to 2"}},
        BadLine{"NodeWithoutJobs", "node --jobs 0", {"--jobs: '0' must be a whole number >= 1"}},
        BadLine{"NodeThatHandsOverSometime",
                "node --handover soon",
                {"--handover: 'soon' must be seconds", "500ms"}},
        BadLine{"JobThatDoesNotWait",
                "train --wait-for-nodes 1s",
                {"--wait-for-nodes: '1s'", "from 5s"}},
        BadLine{"NodeListensNowhere", "node --listen here", {"--listen: 'here' is no address"}},
        BadLine{"NodeCannotListen",
                "node --listen 127.0.0.1:1 --listen 127.0.0.1:2",
                {"--listen: is given twice; valid: once"}},
        BadLine{"NodeJoinsNobody",
                "node --join host",
                {"--join: 'host' is no address; valid: HOST:PORT"}},
        BadLine{"SubmitNowhere", "submit --epochs 1", {"--to: is missing"}},
        BadLine{"SubmitToNoAddress", "submit --to host:0", {"--to: 'host:0' is no address"}},
        BadLine{"SubmitOfNoJob",
                "submit --to 127.0.0.1:1 --workers 0",
                {"--workers: '0' must be a whole number >= 1"}},
        BadLine{"LogsOfNobody", "logs", {"--to: is missing"}},
        BadLine{"LeaveOfNobody", "leave", {"--to: is missing"}},
        BadLine{"StatusOfNobody", "status", {"--to: is missing"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Bench, BadInput,
    testing::Values(
        BadLine{"OfNothing", "bench", {"what to measure is missing; valid: kernels, train"}},
        BadLine{"OfSomethingElse",
                "bench trian",
                {"unknown command 'bench trian'; did you mean 'train'?"}},
        BadLine{
            "Flag", "bench train --stesp 3", {"unknown flag '--stesp'", "did you mean '--steps'?"}},
        BadLine{"KernelsFlag", "bench kernels --bach 3", {"unknown flag '--bach'", "'--batch'?"}},
        BadLine{"KernelsArgument", "bench kernels 64", {"'64' is one argument too many"}},
        BadLine{"KernelsBatch", "bench kernels --batch 0", {"--batch: '0'", ">= 1", "<= 65536"}},
        BadLine{"KernelsRepeats", "bench kernels --repeats x", {"--repeats: 'x'", "<= 1000"}},
        BadLine{"Batch", "bench train --batch 65537", {"--batch: '65537'", "<= 65536"}},
        BadLine{"Repeats", "bench train --repeats 0", {"--repeats: '0'", ">= 1"}},
        BadLine{"Steps", "bench train --steps 0", {"--steps: '0'", ">= 1"}},
        BadLine{
            "Seconds", "bench train --seconds 0", {"--seconds: '0' must be seconds", "above 0"}},
        BadLine{"ForEver", "bench train --seconds 25h", {"--seconds: '25h'", "up to 24h"}},
        BadLine{"StepsAndSeconds",
                "bench train --steps 5 --seconds 1",
                {"--seconds: excludes --steps; valid: one of them"}},
        BadLine{"Seed", "bench train --seed -1", {"--seed: '-1' must be a whole number >= 0"}},
        BadLine{
            "Twice", "bench train --batch 2 --batch 3", {"--batch: is given twice; valid: once"}},
        BadLine{"Model",
                "bench train --data digits:n=20 --model lenet",
                {"--model: unknown model 'lenet'", "did you mean 'lenet5'?"}},
        BadLine{"ModelOfOtherData",
                "bench train --data digits:n=20 --model mlp:5-10",
                {"--model: ", "mlp:5-10", "use mlp:784-10"}},
        BadLine{"Data", "bench train --data digit", {"--data: ", "did you mean 'digits'?"}},
        BadLine{"DataFile", "bench train --data csv:none.csv", {"--data: ", "none.csv"}},
        BadLine{
            "Optimizer", "bench train --optimizer sgdd", {"--optimizer: ", "did you mean 'sgd'?"}},
        BadLine{"OptimizerRate",
                "bench train --optimizer sgd:lr=x",
                {"--optimizer: sgd: lr=x", "number"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Flags, BadInput,
    testing::Values(
        BadLine{"Command", "trian", {"unknown command 'trian'", "did you mean 'train'?"}},
        BadLine{"FlagForCommand",
                "--foo",
                {"unknown flag '--foo'; valid: --help, --version, or a command first"}},
        BadLine{
            "EmptyJob", "train ''", {"JOB: is empty; `starling train --help` lists what is valid"}},
        BadLine{
            "CommandForFlag", "version", {"unknown command 'version'; did you mean '--version'?"}},
        BadLine{
            "FlagOfTrain", "--json", {"'--json' is a flag of train; valid: starling train --json"}},
        BadLine{
            "Flag", "train --wrokers 2", {"unknown flag '--wrokers'", "did you mean '--workers'?"}},
        BadLine{
            "FlagWithEquals", "train --wrokers=2", {"'--wrokers'", "did you mean '--workers'?"}},
        BadLine{"SecondFile", "train a.toml b.toml", {"'b.toml' is one argument too many"}},
        BadLine{"NoValue", "train --workers", {"--workers: needs a value"}},
        BadLine{
            "Twice", "train --workers 2 --workers 3", {"--workers: is given twice; valid: once"}},
        BadLine{"ZeroWorkers", "train --workers 0", {"--workers: '0'", ">= 1"}},
        BadLine{"ManyWorkers", "train --workers 99999999", {"--workers: '99999999'", "<= 65536"}},
        BadLine{"NoNumber", "train --workers four", {"--workers: 'four' must be a whole number"}},
        BadLine{"NegativeSeed", "train --seed -1", {"--seed: '-1' must be a whole number >= 0"}},
        BadLine{"ZeroBatch", "train --batch 0", {"--batch: '0'", ">= 1", "dynamic:total=N"}},
        BadLine{"NoBatch", "train --batch some", {"--batch: 'some'", ">= 1", "dynamic:total=N"}},
        BadLine{"DynamicBatchOfNothing",
                "train --batch dynamic:total=0",
                {"--batch: dynamic: total=0 ", ">= 1"}},
        BadLine{"DynamicBatchWithoutTotal",
                "train --batch dynamic",
                {"--batch: 'dynamic' is not a batch", "dynamic:total=N with N >= 1"}},
        BadLine{"DynamicBatchOfNoNumber",
                "train --batch dynamic:total=many",
                {"--batch: dynamic: total=many ", ">= 1"}},
        BadLine{"DynamicBatchBelowTheWorkers",
                "train --data digits:n=300 --workers 5 --batch dynamic:total=4",
                {"--batch: dynamic:total=4 is below the number of workers, 5", "valid: from 5"}},
        BadLine{"ZeroEpochs", "train --epochs 0", {"--epochs: '0' must be a number above 0"}},
        BadLine{"NanEpochs", "train --epochs nan", {"--epochs: 'nan' must be a number above 0"}},
        BadLine{"ZeroSteps", "train --steps 0", {"--steps: '0'", ">= 1"}},
        BadLine{"Seconds", "train --seconds 3x", {"--seconds: '3x' must be seconds", "200ms"}},
        BadLine{"ZeroSeconds", "train --seconds 0", {"--seconds: '0' must be seconds", "above 0"}},
        BadLine{"EndlessSeconds", "train --seconds 1e10", {"'1e10'", "at most 285 years"}},
        BadLine{"LargeSeed",
                "train --seed 18446744073709551616",
                {"--seed: '18446744073709551616'", "<= 18446744073709551615"}},
        BadLine{"NegativeDecay", "train --l2 -1", {"--l2: '-1' must be a number >= 0"}},
        BadLine{
            "Dtype", "train --dtype float16", {"--dtype: 'float16'", "valid: float32, float64"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Specs, BadInput,
    testing::Values(
        BadLine{"Barrier",
                "train --barrier pspp:beta=2",
                {"--barrier: 'pspp' is unknown", "did you mean 'pssp'?", "bsp, pbsp"}},
        BadLine{"BarrierOption", "train --barrier pbsp:bta=2", {"--barrier: ", "sample size"}},
        BadLine{"NegativeStaleness",
                "train --barrier pssp:s=-1,beta=2",
                {"--barrier: pssp: s=-1 must be a whole number >= 0"}},
        BadLine{"LargeSample",
                "train --workers 4 --barrier pbsp:beta=4",
                {"--barrier: ", "beta=4, but each of 4 workers has 3 others", "beta = 0 to 3"}},
        BadLine{"Mode", "train --mode pear", {"--mode: 'pear' is unknown", "did you mean 'peer'?"}},
        BadLine{"Recheck", "train --recheck sometimes", {"--recheck: ", "sometimes", "notify"}},
        BadLine{"RecheckUnit", "train --recheck interval:5", {"--recheck: ", "5", "20ms"}},
        BadLine{"Optimizer",
                "train --optimizer adem",
                {"--optimizer: unknown optimizer 'adem'", "did you mean 'adam'?"}},
        BadLine{"OptimizerOption",
                "train --optimizer adam:rate=1",
                {"--optimizer: adam: unknown option 'rate'", "lr"}},
        BadLine{"Momentum",
                "train --optimizer sgd:momentum=1",
                {"--optimizer: ", "valid: 0 to 0.9999999"}},
        BadLine{
            "WordWithValue",
            "train --optimizer sgd:lr=0.1,momentum=0.9,nesterov=true",
            {"--optimizer: sgd: nesterov=true must be 'nesterov' without a value, or be left out"}},
        BadLine{"Schedule", "train --schedule cosin:samples=9", {"--schedule: ", "cosine"}},
        BadLine{"Clip",
                "train --clip norm:0",
                {"--clip: ", "'0' must be a number above 0 (at least 1e-45)"}},
        BadLine{"Compression",
                "train --compression topk:share=0%",
                {"--compression: topk: share=0% is not a share", "topk:share=1%"}},
        BadLine{"CompressionOfModels",
                "train --exchange gossip --compression topk",
                {"--compression: ", "members of exchange gossip send models",
                 "valid: exchange "
                 "owners, broadcast, allreduce"}},
        BadLine{"CompressionOfACenter",
                "train --exchange elastic --compression bf16",
                {"--compression: ", "members of exchange elastic send models",
                 "valid: exchange owners, broadcast, gossip, allreduce, average"}},
        BadLine{"CompressionOfMeans",
                "train --exchange average --compression topk:share=1%",
                {"--compression: ", "members of exchange average send models",
                 "valid: exchange owners, broadcast, allreduce, or compression bf16"}},
        BadLine{"CompressionOfSumsThatSeveralHave",
                "train --mode peer --exchange allreduce:doubling --compression bf16",
                {"--compression: ", "several workers of allreduce:doubling have the same partial",
                 "valid: allreduce:halving, or compression none"}},
        BadLine{"CompressionOfDoubles",
                "train --dtype float64 --compression topk",
                {"--compression: ", "are not float32; valid: dtype float32"}},
        BadLine{"CompressionUnderTunedProgress",
                "train --compression topk --barrier tuned:progress",
                {"--compression: ", "tuned:progress measures the loss by whole gradients"}},
        BadLine{"CompressionSimulated",
                "sim --level protocol --exchange gossip --compression topk",
                {"--compression: ", "members of exchange gossip send models"}},
        BadLine{"Delay", "train --delay exp:20", {"--delay: ", "exp:20ms"}},
        BadLine{"Straggler", "train --straggler 1:4", {"--straggler: ", "1:4x"}},
        BadLine{
            "Stragglers",
            "train --workers 2 --straggler 3:4x --barrier asp",
            {"--straggler: ", "more stragglers than the job's 2 workers; valid: up to 2 in all"}},
        BadLine{
            "StragglersNone",
            "train --straggler 5%:4x",
            {"--straggler: ", "5%:4x", "of 4 workers rounds to none", "valid: 12.5%:4x", "1:4x"}},
        BadLine{"Goal",
                "train --until accuracy",
                {"--until: 'accuracy' is not a goal", "accuracy=0.95"}},
        BadLine{"Model",
                "train --data digits:n=300 --model softmx",
                {"--model: unknown model 'softmx'", "did you mean 'softmax'?"}},
        BadLine{"ModelOption",
                "train --data digits:n=300 --model softmax:bais=0",
                {"--model: softmax: unknown option 'bais'", "did you mean 'bias'?"}},
        BadLine{"Data", "train --data digts", {"--data: unknown data source 'digts'", "'digits'?"}},
        BadLine{"DataOption",
                "train --data digits:m=5",
                {"--data: digits: unknown option 'm'; did you mean 'n'?"}},
        BadLine{"Test", "train --test digts", {"--test: unknown data source 'digts'", "'digits'?"}},
        BadLine{"DataMissing", "train --data csv:nope", {"--data: nope: no such file"}},
        BadLine{"TestMissing",
                "train --data digits:n=9 --test csv:nope",
                {"--test: nope: no such file"}},
        BadLine{"Holdout",
                "train --holdout 1",
                {"--holdout: '1' is not a share of the rows; valid: above 0 and below 1, as 0.2"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    OtherCommands, BadInput,
    testing::Values(
        BadLine{"EvaluateWithoutModel",
                "evaluate --data digits:n=10",
                {"file is missing; valid: starling evaluate FILE"}},
        BadLine{"EvaluateMissing",
                "evaluate none.safetensors",
                {"starling: none.safetensors: no such file"}},
        BadLine{"EvaluateTwoModels",
                "evaluate a.safetensors --model-file b.safetensors",
                {"'a.safetensors' and --model-file b.safetensors exclude each other",
                 "starling evaluate FILE"}},
        BadLine{"PredictTwoModels",
                "predict --model-file b a",
                {"'a' and --model-file b exclude each other", "starling predict FILE"}},
        BadLine{"PredictThirdArgument", "predict a b", {"'b' is one argument too many"}},
        BadLine{"EvaluateFlag",
                "evaluate --model_file x",
                {"unknown flag '--model_file'; did you mean '--model-file'?"}},
        BadLine{"PredictOut",
                "predict --model-file none --out no/such/p.csv",
                {"--out: no/such/p.csv: cannot be written"}},
        BadLine{"InspectNothing", "inspect", {"WHAT is required"}},
        BadLine{
            "InspectUnknown", "inspect digts:n=4", {"unknown data source 'digts'", "'digits'?"}},
        BadLine{"InspectMissing", "inspect nope.st", {"starling: nope.st: no such file"}},
        BadLine{
            "InspectSeed", "inspect digits:n=4 --seed x", {"--seed: 'x' must be a whole number"}},
        BadLine{"BarriersArgument", "barriers bsp", {"'bsp' is one argument too many"}}),
    name_of);

}  // namespace
}  // namespace starling::program
