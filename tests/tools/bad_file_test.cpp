/// Damaged, truncated, oversized and mismatched files of every format. The error names the file and
/// the location in the file. The exit code is 2, and no file is left behind.
#include <cstring>

#include "tests/tools/refused.hpp"

namespace starling::program {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(value >> shift & 255U);
  return bytes;
}

/// Returns an IDX file of bytes with these dimensions and this content.
std::string idx(const std::vector<std::uint32_t>& sizes, const std::string& content) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const auto size : sizes) bytes += big_endian(size);
  return bytes + content;
}

/// Returns a safetensors file with this header, followed by `body_bytes` zeros as tensors.
std::string safetensors(const std::string& header, std::size_t body_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(body_bytes, '\0');
}

const std::string ten_images = idx({10, 2, 2}, std::string(40, '\x10'));
const std::string ten_labels = idx({10}, std::string{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});

class BadFile : public testing::TestWithParam<RefusedLine> {};

TEST_P(BadFile, IsRefusedWithFileAndLocation) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Data, BadFile,
    testing::Values(
        RefusedLine{"SafetensorsByItsName",
                    "train --data d.safetensors",
                    {{"d.safetensors", "x"}},
                    {"--data: 'd.safetensors' is a file", "its format: safetensors:d.safetensors"}},
        RefusedLine{"SafetensorsOfNothing",
                    "train --data safetensors:d",
                    {{"d", safetensors("{}", 0)}},
                    {"--data: d: has no tensor 'features' or 'x'; it has: none"}},
        RefusedLine{
            "SafetensorsHuge",
            "train --data safetensors:d",
            {{"d", safetensors("{\"x\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296,2],"
                               "\"data_offsets\":[0,2]}}",
                               2)}},
            {"d: tensor 'x' has a shape of more bytes than can be counted"}},
        RefusedLine{
            "OneSampleAtABatchNorm",
            "train --data digits:n=300 --batch 1 --model net:n.toml",
            {{"n.toml", "layers = \"dense 4; batch-norm; dense 10\"\n"}},
            {"--batch: layer2.batch-norm: one sample has no variance; valid: 2 or more samples"}},
        RefusedLine{
            "OneSampleAloneInTheLargerOfTwoBatches",
            "train --data digits:n=1026 --holdout 0.5 --workers 2 --batch 257 --model net:n.toml",
            {{"n.toml", "layers = \"dense 4; batch-norm; dense 10\"\n"}},
            {"--batch: layer2.batch-norm: 257 samples are computed 256 at a time"}},
        RefusedLine{"OneSampleOfSomeWorkersAtABatchNorm",
                    "train --data digits:n=13 --holdout 0.3 --workers 5 --model net:n.toml",
                    {{"n.toml", "layers = \"dense 4; batch-norm; dense 10\"\n"}},
                    {"layer2.batch-norm: one sample has no variance; valid: 2 or more samples"}},
        RefusedLine{
            "CsvMissing", "train --data csv:x.csv", {}, {"--data: ", "x.csv", "no such file"}},
        RefusedLine{"CsvWithoutFormat",
                    "train --data x.csv",
                    {{"x.csv", "1,2\n"}},
                    {"--data: 'x.csv' is a file",
                     "csv:x.csv, libsvm:x.csv, cifar10:x.csv or idx:x.csv,LABELS"}},
        RefusedLine{"CsvEmpty", "train --data csv:x.csv", {{"x.csv", ""}}, {"x.csv: is empty"}},
        RefusedLine{"CsvText",
                    "train --data csv:x.csv",
                    {{"x.csv", "1,2\n3,four\n"}},
                    {"x.csv:2: column 2", "four"}},
        RefusedLine{"CsvNan",
                    "train --data csv:x.csv",
                    {{"x.csv", "1,2\n3,4\nnan,1\n"}},
                    {"x.csv:3: column 1", "nan", "is a missing value"}},
        RefusedLine{"CsvRangeOfNoFloat",
                    "train --data csv:x.csv,task=class --split 2 --scale minmax",
                    {{"x.csv", "1,-3e38,0\n2,3e38,1\n3,0,1\n"}},
                    {"--scale: minmax: record 2: feature 2 is 3e+38",
                     "(x - -3e+38) / 1; valid: smaller values, or another scale"}},
        RefusedLine{"CsvTargetsOfNoFloat",
                    "train --data csv:x.csv --split 2 --scale minmax",
                    {{"x.csv", "1,-3e38\n2,3e38\n3,0\n"}},
                    {"--scale: minmax: record 2: the target is 3e+38"}},
        RefusedLine{"CsvTestOfNoFloat",
                    "train --data csv:x.csv --test csv:y.csv --scale minmax",
                    {{"x.csv", "1,0\n1.01,1\n"}, {"y.csv", "3e38,1\n"}},
                    {"--scale: minmax: record 1: feature 1 is 3e+38"}},
        RefusedLine{"CsvRagged",
                    "train --data csv:x.csv",
                    {{"x.csv", "1,2\n3,4,5\n"}},
                    {"x.csv:2: has 3 columns, but the first row has 2"}},
        RefusedLine{"CsvLabelName",
                    "train --data csv:x.csv,label=prize",
                    {{"x.csv", "a,price\n1,2\n"}},
                    {"x.csv", "prize", "did you mean 'price'?"}},
        RefusedLine{
            "CsvOneRow", "train --data csv:x.csv", {{"x.csv", "1,2\n"}}, {"leaves nothing to"}},
        RefusedLine{"LibsvmIndex", "train --data libsvm:x", {{"x", "1 1:2\n0 -1:1\n"}}, {"x:2"}},
        RefusedLine{"LibsvmOrder", "train --data libsvm:x", {{"x", "1 3:2 2:1\n"}}, {"x:1"}},
        RefusedLine{"LibsvmFeatures",
                    "train --data libsvm:x,features=2",
                    {{"x", "1 1:2\n0 3:1\n"}},
                    {"x:2", "3"}},
        RefusedLine{
            "LibsvmFolder", "train --data libsvm:/tmp", {}, {"/tmp: is a folder, not a file"}},
        RefusedLine{"IdxCutOff",
                    "train --data idx:i,l",
                    {{"i", ten_images.substr(0, 30)}, {"l", ten_labels}},
                    {"i: "}},
        RefusedLine{"IdxHeaderOnly",
                    "train --data idx:i,l",
                    {{"i", "\0\0"}, {"l", ten_labels}},
                    {"i: the header ends too early"}},
        RefusedLine{"IdxHuge",
                    "train --data idx:i,l",
                    {{"i", idx({4000000000U, 4000000000U}, "x")}, {"l", ten_labels}},
                    {"i: its header promises", "but the file is too short for them"}},
        RefusedLine{"IdxLong",
                    "train --data idx:i,l",
                    {{"i", ten_images + "x"}, {"l", ten_labels}},
                    {"i: holds more than its header promises"}},
        RefusedLine{"IdxSizes",
                    "train --data idx:i,l",
                    {{"i", idx({9, 2, 2}, std::string(36, '\x10'))}, {"l", ten_labels}},
                    {"i: holds 9 images, but l holds 10 labels"}},
        RefusedLine{"IdxSwapped",
                    "train --data idx:l,i",
                    {{"i", ten_images}, {"l", ten_labels}},
                    {"l: has 1 dimensions", "is it the labels' file?"}},
        RefusedLine{"GzipDamaged",
                    "train --data idx:i,l",
                    {{"i", "\x1f\x8b\x08\x01garbage that is no deflate"}, {"l", ten_labels}},
                    {"--data: i: its gzip data is damaged"}},
        RefusedLine{"TestClasses",
                    "train --data csv:a.csv --test csv:b.csv",
                    {{"a.csv", "1,0\n2,1\n3,0\n"}, {"b.csv", "1,0\n2,5\n"}},
                    {"b.csv: label 5 of record 2 is not a class", "0 to 1"}}),
    name_of);

/// Returns a file of a net with these layers, which are quoted and separated by commas.
std::string net(const std::string& layers) { return "layers = [" + layers + "]\n"; }

constexpr const char* train_net = "train --data digits:n=100 --model net:n.toml";

INSTANTIATE_TEST_SUITE_P(
    Nets, BadFile,
    testing::Values(
        RefusedLine{"Missing", train_net, {}, {"--model: n.toml: no such file"}},
        RefusedLine{
            "NoToml", train_net, {{"n.toml", "layers = [\n"}}, {"n.toml:", "is not valid TOML"}},
        RefusedLine{"UnknownKey",
                    train_net,
                    {{"n.toml", "inptu = \"28x28x1\"\n"}},
                    {"--model: n.toml:1: unknown key 'inptu'; did you mean 'input'?"}},
        RefusedLine{"WrongType",
                    train_net,
                    {{"n.toml", "loss = 3\n"}},
                    {"n.toml:1: loss: must be a string"}},
        RefusedLine{"Empty", train_net, {{"n.toml", net("")}}, {"n.toml: a net needs layers"}},
        RefusedLine{"Shape",
                    train_net,
                    {{"n.toml", "input = \"28x28\"\n\n" + net("\"dense 10\"")}},
                    {"n.toml: layer 1 (dense 10): dense: reads rows", "28x28; put flatten", "784"}},
        RefusedLine{"ThreeDimensions",
                    train_net,
                    {{"n.toml", net("\"conv2d 6 kernel=5\", \"dense 10\"")}},
                    {"n.toml: layer 2 (dense 10): dense: reads rows", "24x24x6"}},
        RefusedLine{"KernelTooLarge",
                    train_net,
                    {{"n.toml", net("\"max-pool 14; conv2d 6 kernel=3\"")}},
                    {"layer 2 (conv2d 6 kernel=3)", "3x3 is larger than its input 2x2x1"}},
        RefusedLine{"UnknownLayer",
                    train_net,
                    {{"n.toml", net("\"flaten\", \"dense 10\"")}},
                    {"layer 1 (flaten): unknown layer 'flaten'; did you mean 'flatten'?"}},
        RefusedLine{
            "UnknownOption",
            train_net,
            {{"n.toml", net("\"dense 10 bais=1\"")}},
            {"layer 1 (dense 10 bais=1): dense: unknown option 'bais'; did you mean 'bias'?"}},
        RefusedLine{"Branches",
                    train_net,
                    {{"n.toml", net("\"dense 8; residual(dense 9); dense 10\"")}},
                    {"layer 2 (residual): its branch makes 9 and its input is 8"}},
        RefusedLine{"Classes",
                    train_net,
                    {{"n.toml", net("\"dense 9\"")}},
                    {"makes 9, but the data has 10 classes; end with dense 10"}},
        RefusedLine{"Overwritten",
                    "train --data digits:n=100 --model net:n.toml --save n.toml",
                    {{"n.toml", net("\"dense 10\"")}},
                    {"--save", "n.toml", "--model"}},
        RefusedLine{"LeNetOnAFewNumbers",
                    "train --data csv:a.csv --model lenet5",
                    {{"a.csv", "1,2,0\n2,3,1\n3,4,0\n4,4,1\n5,5,0\n1,1,1\n"}},
                    {"--model: lenet5: the data's 2 features are no square image"}}),
    name_of);

/// Returns a safetensors header with one tensor, `w`, which `tensor` describes in JSON.
std::string header_of_w(const std::string& tensor) { return "{\"w\":" + tensor + "}"; }

INSTANTIATE_TEST_SUITE_P(
    Models, BadFile,
    testing::Values(
        RefusedLine{"Empty", "inspect m.safetensors", {{"m.safetensors", ""}}, {"it has 0 bytes"}},
        RefusedLine{
            "NoHeader", "evaluate m", {{"m", safetensors("", 0)}}, {"does not start with '{'"}},
        RefusedLine{"DataForAModel",
                    "inspect x.csv",
                    {{"x.csv", "a,b\n1,2\n3,4\n"}},
                    {"x.csv: is no model that train --save wrote",
                     "csv:x.csv, libsvm:x.csv, cifar10:x.csv or idx:x.csv,L"}},
        RefusedLine{"ShortDataForAModel",
                    "inspect x",
                    {{"x", "1\n"}},
                    {"csv:x, libsvm:x, cifar10:x or idx:x,LABELS"}},
        RefusedLine{"HugeHeader",
                    "evaluate m --trust-file",
                    {{"m", std::string(8, '\xff') + "{}"}},
                    {"its header would have 18446744073709551615 bytes"}},
        RefusedLine{"CutHeader",
                    "inspect m",
                    {{"m", safetensors("{\"w\":{}}", 0).substr(0, 12)}},
                    {"ends too early"}},
        RefusedLine{"NoJson", "inspect m", {{"m", safetensors("{\"w\":", 0)}}, {"no valid JSON"}},
        RefusedLine{"Deep",
                    "inspect m",
                    {{"m", safetensors("{\"w\":" + std::string(9000, '[') + "}", 0)}},
                    {"nested too deeply"}},
        RefusedLine{
            "TwiceNamed",
            "inspect m",
            {{"m", safetensors("{\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
                               "\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
                               0)}},
            {"names 'w' twice"}},
        RefusedLine{
            "Dtype",
            "inspect m",
            {{"m",
              safetensors(header_of_w(R"({"dtype":"F16","shape":[2],"data_offsets":[0,4]})"), 4)}},
            {"tensor 'w' has the dtype \"F16\"", "valid: F32, F64, U64"}},
        RefusedLine{
            "OutOfFile",
            "inspect m",
            {{"m",
              safetensors(header_of_w(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), 4)}},
            {"lies at bytes 0 to 8, but the file holds 4"}},
        RefusedLine{
            "Rest",
            "inspect m",
            {{"m",
              safetensors(header_of_w(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), 5)}},
            {"holds 1 bytes behind its last tensor"}},
        RefusedLine{
            "Gap",
            "inspect m",
            {{"m",
              safetensors(header_of_w(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), 8)}},
            {"behind a gap"}},
        RefusedLine{
            "Overlap",
            "inspect m",
            {{"m", safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                               "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
                               12)}},
            {"'b' starts at byte 4, inside another"}},
        RefusedLine{
            "Shape",
            "inspect m",
            {{"m",
              safetensors(header_of_w(R"({"dtype":"F32","shape":[3],"data_offsets":[0,4]})"), 4)}},
            {"has 4 bytes, but its shape needs 12"}},
        RefusedLine{
            "Overflow",
            "inspect m",
            {{"m", safetensors(header_of_w(R"({"dtype":"F32","shape":[4611686018427387905],)"
                                           R"("data_offsets":[0,4]})"),
                               4)}},
            {"more bytes than can be counted"}},
        RefusedLine{
            "NegativeOffset",
            "inspect m",
            {{"m",
              safetensors(header_of_w(R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})"), 4)}},
            {"no whole numbers >= 0"}},
        RefusedLine{"Metadata",
                    "inspect m",
                    {{"m", safetensors(R"({"__metadata__":{"a":1}})", 0)}},
                    {"__metadata__ 'a' is no string"}},
        RefusedLine{
            "NoNotes",
            "evaluate m --trust-file",
            {{"m",
              safetensors(header_of_w(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), 4)}},
            {"has no 'model' in its metadata", "starling train --save"}},
        RefusedLine{
            "HugeShape",
            "evaluate m --trust-file --data digits:n=10",
            {{"m", safetensors(R"({"__metadata__":{"model":"softmax","dtype":"float32",)"
                               R"("data":"digits","seed":"1","features":"2147483648",)"
                               R"("classes":"2147483648","sparse":"false","first_label":"0",)"
                               R"("signed_labels":"false"}})",
                               0)}},
            {"m: parameter 'weights': shape [2147483648, 2147483648] has more elements than any"}},
        RefusedLine{
            "HugeLayers",
            "evaluate m --trust-file --data digits:n=10",
            {{"m", safetensors(R"({"__metadata__":{"model":"mlp:784-9000000-9000000-10",)"
                               R"("dtype":"float32","data":"digits","seed":"1",)"
                               R"("features":"784","classes":"10","sparse":"false",)"
                               R"("first_label":"0","signed_labels":"false"}})",
                               0)}},
            {"m: mlp:784-9000000-9000000-10 has 81007164000010 parameters", "GB of memory"}},
        RefusedLine{
            "NoTensor",
            "evaluate m --trust-file --data digits:n=10",
            {{"m", safetensors(R"({"__metadata__":{"model":"softmax","dtype":"float32",)"
                               R"("data":"digits","seed":"1","features":"784","classes":"10",)"
                               R"("sparse":"false","first_label":"0","signed_labels":"false"}})",
                               0)}},
            {"tensor 'weights' is missing"}},
        RefusedLine{
            "WrongShape",
            "evaluate m --trust-file --data digits:n=10",
            {{"m", safetensors(R"({"__metadata__":{"model":"softmax:bias=0","dtype":"float32",)"
                               R"("data":"digits","seed":"1","features":"784","classes":"10",)"
                               R"("sparse":"false","first_label":"0","signed_labels":"false"},)"
                               R"("weights":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                               4)}},
            {"tensor 'weights' is F32 [1]", "needs F32 [784, 10]"}}),
    name_of);

}  // namespace
}  // namespace starling::program
