// Runs the program with nets that are given as a file, as text and by name.
#include <filesystem>

#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

const std::string net_file =
    "input = \"28x28x1\"\n"
    "layers = [\"conv2d 4 kernel=5 stride=2; batch-norm; relu\",\n"
    "          \"residual(conv2d 4 kernel=3 padding=1; tanh)\",\n"
    "          \"max-pool 2\", \"flatten\", \"dense 10\"]\n";

TEST(NetProgram, ASavedNetDoesNotNeedItsFile) {
  const Folder folder;
  folder.write("n.toml", net_file);
  const ProgramResult trained = starling(
      folder, "train --data digits:n=600 --model net:n.toml --workers 2 --steps 20 --save m");
  ASSERT_EQ(trained.code, 0) << trained.err;
  std::filesystem::remove(folder.path() / "n.toml");
  const ProgramResult evaluated = starling(folder, "evaluate m");
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NE(evaluated.out.find("accuracy"), std::string::npos) << evaluated.out;
  const ProgramResult inspected = starling(folder, "inspect m");
  EXPECT_NE(inspected.out.find("residual(conv2d 4 kernel=3 padding=1; tanh)"), std::string::npos)
      << inspected.out;
  EXPECT_NE(inspected.out.find("layer2.batch-norm.mean"), std::string::npos) << inspected.out;
}

TEST(NetProgram, TakesLayersAsText) {
  const Folder folder;
  std::vector<std::string> line = words("train --data digits:n=300 --steps 5 --workers 2 --model");
  line.push_back("net:layers=dense 8; gelu; dense 10");
  const ProgramResult ran = run(folder, STARLING_PROGRAM, line);
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST(NetProgram, KnowsNetsByName) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, "train --data digits:n=300 --model lenet5 --steps 5 --workers 2");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE((ran.out + ran.err).find("lenet5 on digits:n=300"), std::string::npos) << ran.out;
  const ProgramResult listed = starling(folder, "models");
  for (const char* name : {"net", "lenet5", "psp-cnn", "vgg-small", "resnet-small"})
    EXPECT_NE(listed.out.find(std::string{"  "} + name + " "), std::string::npos) << name;
}

}  // namespace
}  // namespace starling::program
