/// Runs the program on a realistic table with text, categories, missing values and decimal commas,
/// from training to predictions.
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "starling/tools/files/safetensors.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// Has a table of 120 customers and a softmax model `m`, which was trained on the table.
class MixedTable : public testing::Test {
 protected:
  void SetUp() override {
    std::ostringstream rows;
    rows << "# as exported\nkunde;stadt;tarif;alter;verbrauch;wechselt\n";
    for (int i = 0; i < 120; ++i) {
      const int age = 20 + (i * 7) % 50;
      const char* city = i % 3 == 0 ? "Berlin" : i % 3 == 1 ? "Köln" : "";
      rows << "k" << i << ';' << city << ';' << (i % 2 == 0 ? "A" : "B") << ';';
      if (i % 10 == 9)
        rows << "NA;";
      else
        rows << age << ",5;";
      rows << (i * 3) % 17 << ",25;" << (age > 45 || i % 3 == 0 ? "ja" : "nein") << '\n';
    }
    folder_.write("kunden.csv", rows.str());
    folder_.write("neu.csv",
                  "alter;verbrauch;tarif;stadt;kunde\n30,5;3,25;A;Köln;n1\n"
                  "NA;1;B;Berlin;n2\n66;0,5;B;Bonn;n3\n");
    const ProgramResult ran =
        run("train --data csv:kunden.csv,id=kunde,missing=mean,decimal=comma --quiet --save m");
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("softmax on csv:kunden.csv"), std::string::npos) << ran.out;
  }

  ProgramResult run(const std::string& line) { return starling(folder_, line); }

  Folder folder_;
};

/// Returns the elements of a float32 tensor; nothing if the file has no such tensor.
std::vector<float> values_of(const safetensors::File& file, const char* name) {
  const safetensors::Tensor* tensor = file.find(name);
  std::vector<float> values(tensor == nullptr ? 0 : tensor->size());
  if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

/// Computes the probability of the class `ja` for a row of features, from the model file alone.
double probability_of_ja(const safetensors::File& file, const std::vector<double>& features) {
  const auto shift = values_of(file, "starling.features.shift");
  const auto divisor = values_of(file, "starling.features.divisor");
  const auto weights = values_of(file, "weights");
  const auto bias = values_of(file, "bias");
  std::array<double, 2> scores{double{bias.at(0)}, double{bias.at(1)}};
  for (std::size_t i = 0; i < features.size(); ++i)
    for (std::size_t c = 0; c < 2; ++c)
      scores.at(c) += (features[i] - double{shift.at(i)}) / double{divisor.at(i)} *
                      double{weights.at(2 * i + c)};
  return 1 / (1 + std::exp(scores[1] - scores[0]));
}

TEST_F(MixedTable, PredictsProbabilitiesFromItsFileAlone) {
  const ProgramResult ran =
      run("predict m --data csv:neu.csv,id=kunde,decimal=comma --probabilities");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto file = safetensors::read((folder_.path() / "m").string());
  ASSERT_TRUE(file) << file.error().message;
  const auto columns = nlohmann::json::parse(file->metadata.at("columns"))["columns"];
  ASSERT_EQ(columns.size(), 4U);
  EXPECT_EQ(columns[0]["categories"], (nlohmann::json{"Berlin", "Köln"}));
  EXPECT_EQ(columns[1]["categories"], (nlohmann::json{"A", "B"}));
  EXPECT_EQ(columns[2]["name"], "alter");
  EXPECT_EQ(file->metadata.at("labels"), "[\"ja\",\"nein\"]");
  const double mean = columns[2]["mean"].get<double>();
  // The features are Berlin, Köln, A, B, alter, verbrauch. The model does not know the category
  // Bonn.
  const std::vector<std::vector<double>> features{
      {0, 1, 1, 0, 30.5, 3.25}, {1, 0, 0, 1, mean, 1}, {0, 0, 0, 1, 66, 0.5}};
  std::istringstream lines{ran.out};
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "id,prediction,probability_ja,probability_nein");
  for (std::size_t i = 0; i < features.size(); ++i) {
    ASSERT_TRUE(std::getline(lines, line)) << ran.out;
    std::istringstream cells{line};
    std::string id;
    std::string prediction;
    std::string yes;
    std::getline(cells, id, ',');
    std::getline(cells, prediction, ',');
    std::getline(cells, yes, ',');
    const double expected = probability_of_ja(*file, features[i]);
    EXPECT_EQ(id, "n" + std::to_string(i + 1));
    EXPECT_EQ(prediction, expected > 0.5 ? "ja" : "nein");
    EXPECT_NEAR(std::stod(yes), expected, 1e-5) << line;
  }
}

TEST_F(MixedTable, IsEvaluatedUnderItsOwnLabels) {
  const ProgramResult ran = run("evaluate m --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["classes"][0]["class"], "ja");
  EXPECT_GT(json["accuracy"].get<double>(), 0.7);
  const ProgramResult labelled = run("predict m --data csv:kunden.csv,id=kunde,decimal=comma");
  ASSERT_EQ(labelled.code, 0) << labelled.err;
  EXPECT_TRUE(labelled.out.starts_with("id,prediction,label\nk0,")) << labelled.out.substr(0, 80);
  EXPECT_NE(labelled.out.find(",nein\n"), std::string::npos);
}

TEST_F(MixedTable, IsInspectedByColumn) {
  const ProgramResult text = run("inspect csv:kunden.csv,id=kunde,missing=mean,decimal=comma");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("  classes   ja: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("category  Berlin: 40, Köln: 40, missing: 40\n"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find(", missing: 12\n"), std::string::npos) << text.out;
  const ProgramResult json =
      run("inspect csv:kunden.csv,id=kunde,missing=mean,decimal=comma --json");
  ASSERT_EQ(json.code, 0) << json.err;
  const auto columns = nlohmann::json::parse(json.out)["columns"];
  EXPECT_EQ(columns[1], (nlohmann::json{{"name", "tarif"},
                                        {"type", "category"},
                                        {"categories", {{"A", 60}, {"B", 60}}},
                                        {"missing", 0}}));
  const ProgramResult model = run("inspect m --json");
  ASSERT_EQ(model.code, 0) << model.err;
  EXPECT_EQ(nlohmann::json::parse(model.out)["metadata"]["labels"], "[\"ja\",\"nein\"]");
}

TEST_F(MixedTable, RefusesTestDataOfAnotherFormatWithOtherFeatures) {
  const std::string header = R"({"features":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                             R"("labels":{"dtype":"I32","shape":[1],"data_offsets":[8,12]}})";
  const auto size = static_cast<char>(header.size());
  folder_.write("t", size + std::string(7, '\0') + header + std::string(12, '\0'));
  const ProgramResult ran =
      run("train --data csv:kunden.csv,id=kunde,missing=mean,decimal=comma --test safetensors:t");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("test: has 2 features, but the training data have 6"), std::string::npos)
      << ran.err;
}

TEST_F(MixedTable, IsRefusedWithAHintAtTheOptionToReadItWith) {
  const ProgramResult missing = run("train --data csv:kunden.csv,id=kunde,decimal=comma --save n");
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("kunden.csv:5: column 2 'stadt': '' is a missing value; valid: "
                             "missing=mean"),
            std::string::npos)
      << missing.err;
  const ProgramResult names =
      run("train --data csv:kunden.csv,missing=mean,decimal=comma --save n");
  EXPECT_EQ(names.code, 2);
  EXPECT_NE(names.err.find("column 1 'kunde': holds 120 different texts in 120 rows"),
            std::string::npos)
      << names.err;
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"kunden.csv", "m", "neu.csv"}));
}

}  // namespace
}  // namespace starling::program
