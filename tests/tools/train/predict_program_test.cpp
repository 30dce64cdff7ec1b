/// Runs `predict` and `evaluate` with saved models: rows without labels, ids, probabilities,
/// figures.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// A model `m` that was trained on a table of 90 rows with ids. The classes 1, 2 and 3 follow each
/// other along the feature x.
class SavedModel : public testing::Test {
 protected:
  void SetUp() override {
    std::ostringstream rows;
    rows << "name,x,y,kind\n";
    for (int i = 0; i < 90; ++i)
      rows << "r" << i << ',' << i << ',' << (i * 7) % 11 << ',' << i / 30 + 1 << '\n';
    folder_.write("a.csv", rows.str());
    const ProgramResult ran = run("train --data csv:a.csv,label=kind,id=name --quiet --save m");
    ASSERT_EQ(ran.code, 0) << ran.err;
  }

  ProgramResult run(const std::string& line) { return starling(folder_, line); }

  Folder folder_;
};

TEST_F(SavedModel, TakesRowsWithoutLabelsAndKeepsTheirIds) {
  folder_.write("new.csv", "name,x,y\nlow,3,5\n\"mid, quoted\",45,5\nhigh,88,5\n");
  const ProgramResult ran = run("predict m --data csv:new.csv,id=name");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "id,prediction\nlow,1\n\"mid, quoted\",2\nhigh,3\n");
}

TEST_F(SavedModel, TakesAFileWithOnlyFeatureColumnsAsUnlabelled) {
  folder_.write("new.csv", "x,y\n3,5\n88,5\n");
  const ProgramResult ran = run("predict m --data csv:new.csv");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "index,prediction\n0,1\n1,3\n");
  EXPECT_EQ(run("predict m --data csv:new.csv,label=none").out, ran.out);
}

/// The first row of the new file has only texts, and is no header, as in the training file.
TEST_F(SavedModel, ReadsTheFirstRowAsTheTrainingDataSay) {
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += i % 2 == 0 ? "red,round,apple\n" : "yellow,long,banana\n";
  folder_.write("fruit.csv", rows);
  ASSERT_EQ(run("train --data csv:fruit.csv,header=no --quiet --save f").code, 0);
  folder_.write("new.csv", "yellow,long\nred,round\nred,round\n");
  const ProgramResult ran = run("predict f --data csv:new.csv");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "index,prediction\n0,banana\n1,apple\n2,apple\n");
}

/// The names of the columns are numbers, which would not be taken for a header without being told.
TEST_F(SavedModel, ReadsAHeaderOfNumbersAsTheTrainingDataSay) {
  std::string rows = "2001,2002,growth\n";
  for (int i = 0; i < 40; ++i) rows += std::to_string(i) + ",1," + std::to_string(2 * i) + "\n";
  folder_.write("years.csv", rows);
  ASSERT_EQ(run("train --data csv:years.csv,header=yes --quiet --save g").code, 0);
  folder_.write("new.csv", "2001,2002\n3,1\n4,1\n");
  const ProgramResult ran = run("predict g --data csv:new.csv");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(std::ranges::count(ran.out, '\n'), 3) << ran.out;
}

TEST_F(SavedModel, NamesClassesThatAreLargeNumbersAsTheFileDoes) {
  std::string rows = "x,code\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i) + ',' + std::to_string(100'000 * (i / 20 + 1)) + '\n';
  folder_.write("codes.csv", rows);
  const ProgramResult trained =
      run("train --data csv:codes.csv,task=class --test csv:codes.csv --quiet --save h");
  ASSERT_EQ(trained.code, 0) << trained.err;
  folder_.write("new.csv", "x\n0\n59\n");
  EXPECT_EQ(run("predict h --data csv:new.csv").out, "index,prediction\n0,100000\n1,300000\n");
}

TEST_F(SavedModel, RefusesTablesWithOtherFeatures) {
  folder_.write("new.csv", "x\n3\n88\n");
  const ProgramResult ran = run("predict m --data csv:new.csv,label=none");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--data: new.csv:1: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("has no column 'y', which the training data have"), std::string::npos)
      << ran.err;
}

TEST_F(SavedModel, WritesProbabilitiesUnderTheLabelsOfTheFile) {
  folder_.write("new.csv", "x,y\n0,5\n89,5\n");
  const ProgramResult ran = run("predict m --data csv:new.csv --probabilities");
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::istringstream lines{ran.out};
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "index,prediction,probability_1,probability_2,probability_3");
  std::getline(lines, line);
  double sum = 0;
  std::istringstream cells{line.substr(4)};
  for (std::string cell; std::getline(cells, cell, ',');) sum += std::stod(cell);
  EXPECT_NEAR(sum, 1, 1e-6) << line;
}

TEST_F(SavedModel, WritesScoresOfAModelWithoutProbabilities) {
  ASSERT_EQ(run("train --data csv:a.csv,label=kind,id=name --model svm --quiet --save s").code, 0);
  folder_.write("new.csv", "x,y\n0,5\n");
  const ProgramResult none = run("predict s --data csv:new.csv --probabilities");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("--probabilities: model svm computes no probabilities; valid: "),
            std::string::npos)
      << none.err;
  const ProgramResult scores = run("predict s --data csv:new.csv --scores");
  ASSERT_EQ(scores.code, 0) << scores.err;
  EXPECT_TRUE(scores.out.starts_with("index,prediction,score_0,score_1,score_2\n")) << scores.out;
  EXPECT_EQ(run("predict s --scores --probabilities").code, 2);
}

TEST_F(SavedModel, RefusesToTrainOrTestOnRowsWithoutLabels) {
  folder_.write("new.csv", "x,y\n0,5\n");
  for (const char* line :
       {"evaluate m --data csv:new.csv", "train --data csv:new.csv,label=none",
        "train --data csv:a.csv,label=kind,id=name --test csv:new.csv,label=none"}) {
    const ProgramResult ran = run(line);
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_NE(ran.err.find("has no labels"), std::string::npos) << ran.err;
  }
}

TEST_F(SavedModel, RefusesAColumnThatIsNoId) {
  const ProgramResult ran = run("train --data csv:a.csv,label=kind,id=nme");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("no column is named 'nme'"), std::string::npos) << ran.err;
  const ProgramResult both = run("train --data csv:a.csv,label=kind,id=kind");
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("label=kind is column 4 'kind', which is id=kind already"),
            std::string::npos)
      << both.err;
}

TEST_F(SavedModel, IsEvaluatedByClassAndWithAConfusionMatrix) {
  const auto json =
      nlohmann::json::parse(run("evaluate m --data csv:a.csv,label=kind,id=name --json").out);
  ASSERT_EQ(json["classes"].size(), 3U);
  EXPECT_EQ(json["classes"][0]["class"], "1");
  std::uint64_t all = 0;
  std::uint64_t right = 0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      const auto count = json["confusion"][i][j].get<std::uint64_t>();
      all += count;
      right += i == j ? count : 0;
    }
  EXPECT_EQ(all, 90U);
  EXPECT_NEAR(static_cast<double>(right) / 90, json["accuracy"].get<double>(), 1e-9);
  const ProgramResult table = run("evaluate m --data csv:a.csv,label=kind,id=name");
  EXPECT_NE(table.out.find("precision"), std::string::npos) << table.out;
}

TEST_F(SavedModel, HasAucForTwoClassesAndR2ForTargets) {
  std::ostringstream two;
  std::ostringstream real;
  for (int i = 0; i < 60; ++i) {
    two << i << ',' << (i % 7) << ',' << (i < 30 ? -1 : 1) << '\n';
    real << i << ',' << (i % 7) << ',' << 3.5 * i + 0.25 << '\n';
  }
  folder_.write("two.csv", two.str());
  folder_.write("real.csv", real.str());
  ASSERT_EQ(run("train --data csv:two.csv --quiet --save t").code, 0);
  const auto of_two = nlohmann::json::parse(run("evaluate t --data csv:two.csv --json").out);
  EXPECT_GT(of_two["auc"], 0.99);
  EXPECT_EQ(of_two["classes"][0]["class"], "-1");
  ASSERT_EQ(run("train --data csv:real.csv --quiet --save r").code, 0);
  const auto of_real = nlohmann::json::parse(run("evaluate r --data csv:real.csv --json").out);
  EXPECT_GT(of_real["r2"], 0.999);
  EXPECT_NEAR(std::pow(of_real["rmse"].get<double>(), 2), of_real["mse"].get<double>(),
              1e-3 * of_real["mse"].get<double>() + 1e-9);
  EXPECT_LE(of_real["mae"], of_real["rmse"]);
}

}  // namespace
}  // namespace starling::program
