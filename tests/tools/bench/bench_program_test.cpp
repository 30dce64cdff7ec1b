/// Runs `starling bench`.
#include <nlohmann/json.hpp>

#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

TEST(BenchProgram, TrainPrintsFiguresModelAndMachine) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder,
               "bench train --data digits:n=300 --model mlp:784-16-10 --batch 20 "
               "--steps 10 --repeats 3 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  for (const char* key : {"processor", "cores", "libraries", "build", "data", "data_shape",
                          "optimizer", "seed", "steps_per_s", "steps_per_processor_s", "loss"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["model"], "mlp:784-16-10");
  EXPECT_EQ(json["parameters"], 785 * 16 + 17 * 10);
  EXPECT_EQ(json["batch"], 20);
  EXPECT_EQ(json["steps"], 30);
  EXPECT_EQ(json["steps_per_s"]["all"].size(), 3U);
  EXPECT_LE(json["steps_per_s"]["min"], json["steps_per_s"]["median"]);
  EXPECT_LE(json["steps_per_s"]["median"], json["steps_per_s"]["max"]);
  // The data alone takes 300 x 784 x 4 bytes.
  EXPECT_GT(json["peak_memory_bytes"], 940'800);
}

TEST(BenchProgram, TrainTakesATimeAndChoosesAModelForTheData) {
  const Folder folder;
  folder.write("d.csv", "1,2,0\n2,1,1\n1,3,0\n3,1,1\n");
  const ProgramResult ran =
      starling(folder, "bench train --data csv:d.csv --seconds 20ms --repeats 2");
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* line : {"processor   ", "threads     1\n", "libraries   ", "Eigen 3",
                           "model       softmax", "batch       4\n", "\nsteps/s     ", "\nmemory "})
    EXPECT_NE(ran.out.find(line), std::string::npos) << line << "\nis not in\n" << ran.out;
}

TEST(BenchProgram, TrainReportsALossThatIsNotFinite) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder,
               "bench train --data linear:d=100,n=200 --model linear --steps 200 "
               "--repeats 1 --optimizer sgd:lr=1000");
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_NE(ran.err.find("the loss is not finite any more"), std::string::npos) << ran.err;
}

TEST(BenchProgram, KernelsComparesLibrariesAndNamesTheChosenOne) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "bench kernels --batch 1 --repeats 1 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["batch"], 1);
  ASSERT_GT(json["kernels"].size(), 20U);
  for (const Json& kernel : json["kernels"]) {
    EXPECT_GT(kernel["gflops"]["Eigen"], 0.0) << kernel;
    EXPECT_TRUE(kernel["gflops"].contains(kernel["chosen"])) << kernel;
  }
  const ProgramResult table = starling(folder, "bench kernels --batch 1 --repeats 1");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("\npsp-cnn\n  conv2d 28x28x1 -> 32, 5x5 forward"), std::string::npos)
      << table.out;
}

TEST(BenchProgram, CollectivesMeasuresEachAlgorithmForEachLength) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder,
               "bench collectives --members 3 --bytes 1kB --bytes 2MB --collective ring "
               "--collective groups:2 --repeats 2 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["members"], 3);
  ASSERT_EQ(json["collectives"].size(), 4U);
  for (const Json& one : json["collectives"]) {
    EXPECT_EQ(one["all_seconds"].size(), 2U);
    EXPECT_GT(one["seconds"], 0);
  }
  EXPECT_EQ(json["collectives"][1]["collective"], "groups:2");
  EXPECT_EQ(json["collectives"][2]["bytes"], 2'000'000);
  EXPECT_GT(json["collectives"][2]["seconds"], json["collectives"][0]["seconds"]);
}

/// 32.3 * 1000 is a little less than 32300.
TEST(BenchProgram, CollectivesTakesALengthWithAFraction) {
  const Folder folder;
  const ProgramResult ran = starling(
      folder, "bench collectives --members 2 --repeats 1 --collective ring --bytes 32.3kB --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["collectives"][0]["bytes"], 32300);
}

TEST(BenchProgram, CollectivesRefusesBadInput) {
  const Folder folder;
  for (const auto& [arguments, error] :
       {std::pair{"--members 1", "--members: "},
        {"--members 65", "--members: "},
        {"--bytes 3", "--bytes: "},
        {"--bytes 0.006kB", "--bytes: 0.006kB; valid: 4 bytes to 1GiB, in multiples of 4"},
        {"--bytes 2GiB", "--bytes: 2GiB; valid: 4 bytes to 1GiB"},
        {"--collective rign", "did you mean 'ring'?"},
        {"--collective bcube:k=2 --members 3", "--collective: bcube:k=2: 3 members do not fill"},
        {"--collective trees:links.txt", "--collective: trees:links.txt needs links"},
        {"--fabric udp", "--fabric: unknown provider 'udp'; valid: shm, tcp, verbs, none"},
        {"--repeats 0", "--repeats: "}}) {
    const ProgramResult ran = starling(folder, std::string{"bench collectives "} + arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_NE(ran.err.find(error), std::string::npos) << arguments << ": " << ran.err;
  }
}

}  // namespace
}  // namespace starling::program
