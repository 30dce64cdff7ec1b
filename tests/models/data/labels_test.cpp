#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

struct LabelsCase {
  /// The labels in the file.
  std::vector<std::string> texts;
  /// The option `task` of the source, or nothing.
  std::string task;
  /// The expected number of classes; 0 for real targets.
  std::size_t classes;
  /// The expected labels of the table.
  std::vector<float> values;
};

class LabellingInference : public testing::TestWithParam<LabelsCase> {};

TEST_P(LabellingInference, DecidesBetweenClassesAndTargets) {
  const TemporaryFolder folder;
  std::string csv;
  std::string libsvm;
  for (const std::string& label : GetParam().texts) {
    csv += "7," + label + "\n";
    libsvm += label + " 1:7\n";
  }
  for (const std::string& source : {"csv:" + folder.write("c", csv) + GetParam().task,
                                    "libsvm:" + folder.write("l", libsvm) + GetParam().task}) {
    const auto table = load_text(source);
    ASSERT_TRUE(table.ok()) << message_of(table);
    EXPECT_EQ(table->classes(), GetParam().classes);
    for (std::size_t i = 0; i < table->size(); ++i)
      EXPECT_EQ(table->label(i), GetParam().values[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LabellingInference,
    testing::Values(LabelsCase{{"0", "1", "0"}, "", 2, {0, 1, 0}},
                    LabelsCase{{"-1", "+1", "-1"}, "", 2, {0, 1, 0}},
                    LabelsCase{{"1", "2", "3"}, "", 3, {0, 1, 2}},
                    LabelsCase{{"2", "0", "1.0"}, "", 3, {2, 0, 1}},
                    LabelsCase{{"0", "1", "3"}, "", 0, {0, 1, 3}},
                    LabelsCase{{"0", "1", "3"}, ",task=class", 4, {0, 1, 3}},
                    LabelsCase{{"3", "1", "5"}, ",task=class", 5, {2, 0, 4}},
                    LabelsCase{{"4", "2", "4"}, ",task=class", 2, {1, 0, 1}},
                    LabelsCase{{"2000", "10", "2000"}, ",task=class", 2, {1, 0, 1}},
                    LabelsCase{{"5", "6", "7"}, "", 0, {5, 6, 7}},
                    LabelsCase{{"0", "0", "0"}, "", 0, {0, 0, 0}},
                    LabelsCase{{"0", "1", "0.5"}, "", 0, {0, 1, 0.5F}},
                    LabelsCase{{"-1", "0", "1"}, "", 0, {-1, 0, 1}},
                    LabelsCase{{"0", "1", "0"}, ",task=value", 0, {0, 1, 0}},
                    LabelsCase{{"-1", "+1", "1"}, ",task=value", 0, {-1, 1, 1}}));

TEST(LabellingInference, TreatsMoreThanAHundredValuesAsTargets) {
  const TemporaryFolder folder;
  for (const std::size_t k : {100U, 101U}) {
    std::string text;
    for (std::size_t i = 0; i < k; ++i) text += "1," + std::to_string(i) + "\n";
    const std::string file = "csv:" + folder.write("x", text);
    EXPECT_EQ(load_text(file).value().classes(), k == 100 ? 100U : 0U);
    EXPECT_EQ(load_text(file + ",task=class").value().classes(), k);
  }
}

}  // namespace
}  // namespace starling::models
