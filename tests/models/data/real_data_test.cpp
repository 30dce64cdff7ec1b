/// Reads public data sets from the folder that the environment variable STARLING_DATA_DIR names. If
/// it is not set, reads from the folder that was set at build time. Skips the tests if the folder
/// does not exist.
#include <numeric>

#include "starling/models/data/describe.hpp"
#include "starling/models/data/load.hpp"
#include "test_paths.hpp"
#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

class RealData : public testing::Test {
 protected:
  void SetUp() override {
    const char* chosen = std::getenv("STARLING_DATA_DIR");
    folder_ = chosen != nullptr ? chosen : STARLING_DATA_DIR;
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "no data sets at " << folder_;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(RealData, MnistIsReadAsPublished) {
  const Table table = load_text("idx:" + file("mnist-10k-images-idx3-ubyte.gz") + "," +
                                file("mnist-10k-labels-idx1-ubyte.gz"))
                          .value();
  const Description d = describe(table);
  EXPECT_EQ(d.rows, 10'000U);
  EXPECT_EQ(d.features, 784U);
  EXPECT_FALSE(d.sparse);
  EXPECT_EQ(d.class_counts,
            (std::vector<std::size_t>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}));
  EXPECT_EQ(d.value_min, 0);
  EXPECT_EQ(d.value_max, 1);
  EXPECT_LE(d.bytes, std::size_t{10'000} * 785 * sizeof(float) + 64);
}

TEST_F(RealData, OptdigitsIsReadAsPublished) {
  const TablePair split = load_pair(Source{CsvSource{file("optdigits.tra")}},
                                    Source{CsvSource{file("optdigits.tes")}}, 1)
                              .value();
  const Description train = describe(split.train);
  EXPECT_EQ(train.rows, 3823U);
  EXPECT_EQ(train.features, 64U);
  EXPECT_EQ(train.value_max, 16);
  EXPECT_EQ(train.class_counts,
            (std::vector<std::size_t>{376, 389, 380, 389, 387, 376, 377, 387, 380, 382}));
  EXPECT_EQ(split.test.size(), 1797U);
  EXPECT_EQ(split.test.classes(), 10U);
}

TEST_F(RealData, A9aStaysSparseAndSmall) {
  const Table table = load_text("libsvm:" + file("a9a") + ",features=123").value();
  const Description d = describe(table);
  EXPECT_EQ(d.rows, 32'560U);
  EXPECT_EQ(d.features, 123U);
  EXPECT_TRUE(d.sparse);
  ASSERT_EQ(d.class_counts.size(), 2U);
  EXPECT_NEAR(static_cast<double>(d.class_counts[1]) / 32'560, 0.24, 0.005);
  EXPECT_EQ(d.value_min, 1);
  EXPECT_EQ(d.value_max, 1);
  EXPECT_LT(d.bytes, 3 * sizeof(double) * d.entries);
}

TEST_F(RealData, A9aAndItsTestDataFit) {
  const TablePair split =
      load_pair(Source{LibsvmSource{file("a9a"), 123}}, Source{LibsvmSource{file("a9a.t")}}, 1)
          .value();
  EXPECT_EQ(split.test.size(), 16'281U);
  EXPECT_EQ(split.test.features(), 123U);
  EXPECT_EQ(split.test.classes(), 2U);
}

}  // namespace
}  // namespace starling::models
