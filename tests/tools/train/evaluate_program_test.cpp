/// Runs `starling evaluate` and `starling predict` on saved models.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

TEST(Evaluate, NeedsOnlyTheFileAndPrintsTheFiguresOfTrain) {
  const Folder folder;
  const Json trained = Json::parse(
      starling(folder, std::string{small_job} + "--epochs 5 --save m.safetensors --json").out);
  const ProgramResult ran = starling(folder, "evaluate m.safetensors --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["samples"], 60);
  EXPECT_EQ(json["accuracy"], trained["test_accuracy"]);
  EXPECT_NEAR(json["loss"], trained["test_loss"], 1e-12);
  const ProgramResult other =
      starling(folder, "evaluate --model-file m.safetensors --data linear:n=5");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err, "is not a class; valid: whole numbers 0 to 9")) << other.err;
}

/// `evaluate` generates data from the seed with which the model was trained, but not the rows of
/// the training: the rows that `--test` gives.
TEST(Evaluate, UsesUnseenGeneratedDataOfTheModelsSeed) {
  const Folder folder;
  const std::string data = "linear:d=10,n=500";
  const Json trained =
      Json::parse(starling(folder, "train --seed 7 --data " + data + " --test " + data +
                                       " --optimizer sgd:lr=0.1 --quiet --json "
                                       "--save m")
                      .out);
  const auto loss = [&](const std::string& flags) {
    const ProgramResult ran = starling(folder, "evaluate m --json --data " + data + flags);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(ran.out)["loss"].get<double>();
  };
  EXPECT_LT(trained["test_loss"], 0.1);
  EXPECT_NEAR(loss(""), trained["test_loss"], 1e-9);
  EXPECT_NEAR(loss(" --seed 7"), trained["test_loss"], 1e-9);
  EXPECT_GT(loss(" --seed 1"), 1);  // other true parameters
  const ProgramResult alone = starling(folder, "evaluate m --seed 7");
  EXPECT_EQ(alone.code, 2);
  EXPECT_TRUE(contains(alone.err, "--seed: has no effect without --data")) << alone.err;
}

/// The label is the first of three columns without names.
TEST(Evaluate, ReadsTheColumnsOfTheTrainingFile) {
  const Folder folder;
  std::string rows;
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(3 * (i % 10) + (i % 7)) + "," + std::to_string(i % 10) + "," +
            std::to_string(i % 7) + "\n";
  folder.write("a.csv", rows);
  folder.write("b.csv", rows);
  ASSERT_EQ(starling(folder,
                     "train --data csv:a.csv,label=first,task=value --model linear --epochs "
                     "200 --optimizer sgd:lr=0.05 --quiet --save m")
                .code,
            0);
  const ProgramResult ran = starling(folder, "evaluate m --data csv:b.csv --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_LT(Json::parse(ran.out)["mse"].get<double>(), 1) << ran.out;
}

TEST(Evaluate, RefusesATestPartThatIsDrawnAnewFromAChangedFile) {
  const Folder folder;
  std::string rows = "x,y\n";
  for (int i = 0; i < 50; ++i) rows += std::to_string(i) + "," + std::to_string(i + 0.5) + "\n";
  folder.write("a.csv", rows);
  ASSERT_EQ(
      starling(folder, "train --data csv:a.csv --model linear --epochs 2 --quiet --save m").code,
      0);
  EXPECT_EQ(starling(folder, "evaluate m").code, 0);
  folder.write("a.csv", rows + "50,50.5\n");
  const ProgramResult ran = starling(folder, "evaluate m");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(contains(ran.err, "csv:a.csv: has other rows than m was trained on")) << ran.err;
  EXPECT_EQ(starling(folder, "evaluate m --data csv:a.csv").code, 0);
}

TEST(Evaluate, RefusesAModelThatIsNotFinite) {
  const Folder folder;
  ASSERT_EQ(starling(folder, std::string{small_job} + "--epochs 1 --save m").code, 0);
  folder.write("m", with_nan(folder.read("m"), "weights", 27));
  for (const char* command : {"evaluate m --trust-file", "predict m --trust-file"}) {
    const ProgramResult ran = starling(folder, command);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(contains(ran.err, "m: tensor 'weights' holds nan at [2, 7]")) << ran.err;
  }
}

TEST(Predict, WritesLabelsAsTheTrainingDataHasThem) {
  const Folder folder;
  folder.write("train.csv", "x,y\n-3,1\n-2,1\n-1,1\n1,2\n2,2\n3,2\n");
  const ProgramResult trained =
      starling(folder,
               "train --data csv:train.csv --test csv:train.csv --model softmax "
               "--workers 1 --barrier asp --epochs 50 --optimizer sgd:lr=0.5 "
               "--quiet --save m.safetensors");
  ASSERT_EQ(trained.code, 0) << trained.err;
  folder.write("new.csv",
               "x,y\n5,2\n4,2\n-4,2\n");  // only labels 2; the model predicts 1 for the last row
  const ProgramResult ran =
      starling(folder, "predict m.safetensors --data csv:new.csv --out p.csv");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(folder.read("p.csv"), "index,prediction,label\n0,2,2\n1,2,2\n2,1,2\n");
  const ProgramResult shown = starling(folder, "predict m.safetensors --data csv:new.csv");
  EXPECT_EQ(shown.out, folder.read("p.csv"));
  const Json figures =
      Json::parse(starling(folder, "evaluate m.safetensors --data csv:new.csv --json").out);
  EXPECT_NEAR(figures["accuracy"], 2.0 / 3, 1e-12);
}

}  // namespace
}  // namespace starling::program
