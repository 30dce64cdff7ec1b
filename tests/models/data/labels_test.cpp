#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

struct Labels {
  std::vector<std::string> written;
  std::string task;
  std::size_t classes;
  std::vector<float> read;
};

class LabellingInference : public testing::TestWithParam<Labels> {};

TEST_P(LabellingInference, DecidesBetweenClassesAndTargets) {
  const TemporaryFolder folder;
  std::string csv;
  std::string libsvm;
  for (const std::string& label : GetParam().written) {
    csv += "7," + label + "\n";
    libsvm += label + " 1:7\n";
  }
  for (const std::string& source : {"csv:" + folder.write("c", csv) + GetParam().task,
                                    "libsvm:" + folder.write("l", libsvm) + GetParam().task}) {
    const auto table = load_text(source);
    ASSERT_TRUE(table.ok()) << message_of(table);
    EXPECT_EQ(table->classes(), GetParam().classes);
    for (std::size_t i = 0; i < table->size(); ++i)
      EXPECT_EQ(table->label(i), GetParam().read[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LabellingInference,
                         testing::Values(Labels{{"0", "1", "0"}, "", 2, {0, 1, 0}},
                                         Labels{{"-1", "+1", "-1"}, "", 2, {0, 1, 0}},
                                         Labels{{"1", "2", "3"}, "", 3, {0, 1, 2}},
                                         Labels{{"2", "0", "1.0"}, "", 3, {2, 0, 1}},
                                         Labels{{"0", "1", "3"}, "", 0, {0, 1, 3}},
                                         Labels{{"0", "1", "3"}, ",task=class", 4, {0, 1, 3}},
                                         Labels{{"3", "1", "5"}, ",task=class", 5, {2, 0, 4}},
                                         Labels{{"5", "6", "7"}, "", 0, {5, 6, 7}},
                                         Labels{{"0", "0", "0"}, "", 0, {0, 0, 0}},
                                         Labels{{"0", "1", "0.5"}, "", 0, {0, 1, 0.5F}},
                                         Labels{{"-1", "0", "1"}, "", 0, {-1, 0, 1}},
                                         Labels{{"0", "1", "0"}, ",task=value", 0, {0, 1, 0}},
                                         Labels{{"-1", "+1", "1"}, ",task=value", 0, {-1, 1, 1}}));

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
