/// `starling scale`, run as a program.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

TEST(Scale, PredictsWhatItSimulatesFromTwoTo128Nodes) {
  const Folder folder;
  for (const char* arguments :
       {"vgg-a", "vgg-a --batch 512 --flops 1.7T --bandwidth 7GB --latency 2us",
        "overfeat --flops 3T --data-parallel --nodes 2,16,64"}) {
    const ProgramResult ran = starling(folder, std::string{"scale --json "} + arguments);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const Json json = Json::parse(ran.out);
    for (const Json& point : json["points"]) {
      const double simulated = point["simulated_s"];
      EXPECT_NEAR(simulated / point["predicted_s"].get<double>(), 1, 0.1) << arguments << point;
      EXPECT_LE(point["simulated_speed_up"].get<double>(), point["nodes"].get<double>() * 1.000001);
      EXPECT_EQ(point["groups"].size(), json["layers"].size());
    }
  }
}

/// Published for VGG-A's convolutions: 1.5 times the mean of ow oh, weighted by parameters.
TEST(Scale, PrintsThePublishedOperationsAByte) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "scale vgg-a --nodes 1,64");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "; 132863336 parameters; ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, ", 1217.7 in convolutions\n")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "\nlayers on 64 nodes\n")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "\nlayer23.dense    102764544")) << ran.out;
}

TEST(Scale, ReadsANetsFileAndBuiltInNets) {
  const Folder folder;
  folder.write("net.toml", "input = \"8x8x1\"\nlayers = \"flatten; dense 16; relu; dense 4\"\n");
  folder.write("shapeless.toml", "layers = \"flatten; dense 4\"\n");
  const ProgramResult ran = starling(folder, "scale net:net.toml --nodes 1,2,3 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["input"], "8x8x1");
  EXPECT_EQ(json["layers"][0]["parameters"], 64 * 16 + 16);
  EXPECT_EQ(json["points"].size(), 3U);
  const ProgramResult other = starling(folder, "scale net:shapeless.toml --input 4x4x1 --nodes 2");
  EXPECT_EQ(other.code, 0) << other.err;
  for (const char* net : {"lenet5", "psp-cnn", "vgg-small", "resnet-small"}) {
    const ProgramResult named = starling(folder, std::string{"scale --nodes 1,4 "} + net);
    EXPECT_EQ(named.code, 0) << named.err;
  }
}

TEST(Scale, LeavesOutDefaultNodesWithoutASample) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "scale lenet5 --batch 5 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["points"].back()["nodes"], 4);
}

TEST(Scale, RefusesBadInput) {
  const Folder folder;
  folder.write("shapeless.toml", "layers = \"flatten; dense 4\"\n");
  folder.write("bad.toml", "input = \"4\"\nlayers = \"dens 4\"\n");
  folder.write("norm.toml", "input = \"28x28x1\"\nlayers = \"batch-norm\"\n");
  folder.write("bare.toml", "input = \"4\"\nlayers = \"relu\"\n");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "NET is missing; valid: a net, as in vgg-a"},
      {"vgg", "unknown net 'vgg'; "},
      {"vgg-b", "did you mean 'vgg-a'?"},
      {"net:gone.toml", "gone.toml"},
      {"net:shapeless.toml", "the file has no key input; valid: with --input"},
      {"net:bad.toml", "layer 1 (dens 4)"},
      {"net:bare.toml", "the net has no layer with parameters"},
      {"net:norm.toml", "the net has no layer with matrix products"},
      {"vgg-a --input 10x", "--input: "},
      {"vgg-a --input 8x8x3", "vgg-a: layer "},
      {"vgg-a --nodes 0", "--nodes: '0'; valid: numbers from 1 to 256"},
      {"vgg-a --nodes 257", "--nodes: '257'; valid: numbers from 1 to 256"},
      {"vgg-a --nodes 4,2", "--nodes: '4,2': 2 after 4; valid: ascending numbers"},
      {"vgg-a --nodes 4,,8", "--nodes: ''; valid: numbers from 1 to 256"},
      {"vgg-a --nodes 64 --batch 63",
       "--nodes: 64 nodes for a batch of 63; valid: a sample for each node, so at most 63"},
      {"vgg-a --batch 0", "--batch: "},
      {"vgg-a --flops 5", "--flops: '5'; valid: operations a second above 0, with a unit"},
      {"vgg-a --flops -5T", "--flops: '-5T'"},
      {"vgg-a --bandwidth 10", "--bandwidth: '10'; valid: bits or bytes a second above 0"},
      {"vgg-a --latency 5", "--latency: "},
      {"vgg-a lenet5", "lenet5"}};
  const auto before = folder.names();
  for (const auto& [arguments, error] : cases) {
    const ProgramResult ran = starling(folder, "scale " + arguments);
    EXPECT_EQ(ran.code, 2) << arguments << "\n" << ran.out;
    EXPECT_TRUE(contains(ran.err, error)) << arguments << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << arguments;
  }
  EXPECT_EQ(folder.names(), before);
}

TEST(Scale, HasAHelpOfNarrowLines) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "scale --help");
  EXPECT_EQ(ran.code, 0);
  for (const auto& line : lines(ran.out)) EXPECT_LE(line.size(), 110U) << line;
  for (const char* net : {"vgg-a", "overfeat", "resnet-small", "net:FILE"})
    EXPECT_TRUE(contains(ran.out, std::string{"\n  "} + net + " ")) << ran.out;
}

}  // namespace
}  // namespace starling::program
