/// The program of examples/13_features_on_nodes.cpp: features that a flow computes on three nodes,
/// which train on them.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

class FeaturesOnNodes : public Nodes {
 protected:
  void SetUp() override {
    Nodes::SetUp();
    ASSERT_EQ(own("write-raw raw.csv").code, 0);
  }
  const char* program() override { return STARLING_FEATURES_EXAMPLE; }
  ProgramResult own(const std::string& line) { return run(work_, program(), words(line)); }
};

constexpr const char* training =
    " --data customers:raw.csv,dear=60 --model logistic --workers 3 --mode central --barrier bsp "
    "--json --quiet --save ";

TEST_F(FeaturesOnNodes, TrainTheModelOfOneProcessAndOfAFileOfFeatures) {
  const ProgramResult one = own("train" + std::string{training} + "one --steps 60");
  ASSERT_EQ(one.code, 0) << one.err;
  const ProgramResult many = own("submit" + to(1) + training + "many --steps 60");
  ASSERT_EQ(many.code, 0) << many.err;
  EXPECT_EQ(Json::parse(many.out)["test_accuracy"], Json::parse(one.out)["test_accuracy"]);
  EXPECT_GT(Json::parse(one.out)["test_accuracy"], 0.8);
  for (const Folder& folder : folders_) EXPECT_EQ(folder.names(), std::vector<std::string>{});
  // The file of the features has the same numbers.
  const ProgramResult features = own("run customers raw.csv --dear 60 --lines 2000 --quiet");
  ASSERT_EQ(features.code, 0) << features.err;
  work_.write("features.tsv", features.out);
  std::string of_file = training;
  of_file.replace(of_file.find("customers:raw.csv,dear=60"), 25, "csv:features.tsv");
  const ProgramResult from_file = own("train" + of_file + "file --steps 60");
  ASSERT_EQ(from_file.code, 0) << from_file.err;
  EXPECT_EQ(Json::parse(from_file.out)["test_loss"], Json::parse(one.out)["test_loss"]);
  const ProgramResult evaluated = own("evaluate many --json");
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(Json::parse(evaluated.out)["accuracy"], Json::parse(many.out)["test_accuracy"]);
}

TEST_F(FeaturesOnNodes, GoOnIfANodeIsKilled) {
  const Folder folder;  // that of is_training() has the output of other commands
  std::filesystem::copy(work_.path() / "raw.csv", folder.path() / "raw.csv");
  Process submitted{folder, program(),
                    words("submit" + to(0) + training + "m --delay exp:20ms --steps 120")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submitted.err();
  processes_[2]->signal(SIGKILL);
  const ProgramResult ran = submitted.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_GT(Json::parse(ran.out)["test_accuracy"], 0.8) << ran.out;
  EXPECT_GE(Json::parse(ran.out)["workers_died"], 1) << "the killed node had no worker";
}

TEST_F(FeaturesOnNodes, RefuseRawFilesThatDiffer) {
  const ProgramResult bad = own("submit" + to(1) + "--data customers:raw.csv,deer=60");
  EXPECT_EQ(bad.code, 1) << bad.err;
  EXPECT_NE(bad.err.find("unknown option 'deer'; did you mean 'dear'?"), std::string::npos)
      << bad.err;
  work_.write("bad.csv", "customer,amount,hour,stays\nc1,3,7,yes\nc2,many,7,no\n");
  const ProgramResult text = own("submit" + to(1) + "--data customers:bad.csv");
  EXPECT_NE(text.code, 0) << text.err;
  EXPECT_NE(text.err.find("bad.csv:3: 'many' is not a number"), std::string::npos) << text.err;
}

}  // namespace
}  // namespace starling::program
