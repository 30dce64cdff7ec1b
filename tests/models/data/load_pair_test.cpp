/// Checks that test data get the form of the training data, or are refused if they cannot.
#include "starling/models/data/load.hpp"
#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

std::string message_of(const Result<TablePair>& pair) {
  return pair ? "no error" : pair.error().message;
}

/// Loads two files as sources of `kind`, such as `csv`, with these contents and options.
Result<TablePair> pair_of(const TemporaryFolder& folder, const std::string& kind,
                          const std::string& train, const std::string& test,
                          const std::string& train_options = "",
                          const std::string& test_options = "") {
  const auto source = [&](const char* name, const std::string& text, const std::string& options) {
    return Source::parse(kind + ":" + folder.write(name, text) + options).value();
  };
  return load_pair(source("train", train, train_options), source("test", test, test_options), 1);
}

TEST(LoadPair, GivesSparseTablesTheLargerWidth) {
  const TemporaryFolder folder;
  const TablePair narrow_test = pair_of(folder, "libsvm", "0 1:1\n1 5:1\n", "0 2:1\n").value();
  EXPECT_EQ(narrow_test.train.features(), 5U);
  EXPECT_EQ(narrow_test.test.features(), 5U);
  const TablePair wide_test = pair_of(folder, "libsvm", "0 1:1\n1 5:1\n", "0 7:1\n").value();
  EXPECT_EQ(wide_test.train.features(), 7U);
  EXPECT_EQ(wide_test.test.features(), 7U);
}

/// The training data have confirmed that an index is no typing error.
TEST(LoadPair, AcceptsAFewRowsOfWideTrainingData) {
  const TemporaryFolder folder;
  std::string wide;
  for (std::size_t row = 0; row < 300'000; ++row)
    wide += std::to_string(row % 2) + " " + std::to_string(4 * row + 1) + ":1\n";
  const auto pair = pair_of(folder, "libsvm", wide, "0 1199997:1\n");
  ASSERT_TRUE(pair) << message_of(pair);
  EXPECT_EQ(pair->test.features(), 1'199'997U);
}

TEST(LoadPair, CountsTestIndicesFromTheBaseOfTheTrainingData) {
  const TemporaryFolder folder;
  const TablePair zero = pair_of(folder, "libsvm", "0 0:1\n1 2:1\n", "0 1:1\n").value();
  EXPECT_EQ(zero.test.features(), 3U);
  EXPECT_EQ(zero.test.sparse_row(0).columns[0], 1U);
  const TablePair one = pair_of(folder, "libsvm", "0 1:1\n1 3:1\n", "0 1:1\n").value();
  EXPECT_EQ(one.test.sparse_row(0).columns[0], 0U);
  const std::string train = folder.path("train");
  const std::string test = folder.path("test");
  EXPECT_EQ(message_of(pair_of(folder, "libsvm", "0 1:1\n1 3:1\n", "0 1:1\n0 0:1\n")),
            "test: " + test + ":2: the index of '0:1' is not valid, because " + train +
                " counts features from 1; set base=0 or base=1 if this file counts otherwise; "
                "valid: whole numbers 1 to 2147483648");
  const TablePair with_base =
      pair_of(folder, "libsvm", "0 1:1\n1 3:1\n", "0 1:1\n0 0:1\n", ",base=0").value();
  EXPECT_EQ(with_base.train.sparse_row(0).columns[0], 1U);
  EXPECT_EQ(with_base.test.sparse_row(1).columns[0], 0U);
}

/// A file without a header cannot name its columns.
TEST(LoadPair, TakesColumnsOfLabelsAndIdsFromTheTrainingFile) {
  const TemporaryFolder folder;
  const auto pair = pair_of(folder, "csv", "9.5,1,7,2\n8,2,6,3\n", "5.5,3,4,1\n",
                            ",label=first,id=2,ignore=4,task=value");
  ASSERT_TRUE(pair) << message_of(pair);
  EXPECT_EQ(pair->test.label(0), 5.5F);
  ASSERT_EQ(pair->test.features(), 1U);
  EXPECT_EQ(pair->test.dense_row(0)[0], 4);
  const auto own = pair_of(folder, "csv", "9.5,1,7\n8,2,6\n", "3,4,5.5\n", ",label=first,id=2",
                           ",label=last,id=1,task=value");
  ASSERT_TRUE(own) << message_of(own);
  EXPECT_EQ(own->test.label(0), 5.5F);
  EXPECT_EQ(own->test.dense_row(0)[0], 4);
}

/// Loads `text` without labels for a model that was trained on two features, with these columns.
TEST(LoadPair, RecognisesAFileWithoutLabelsByItsNumberOfColumns) {
  const TemporaryFolder folder;
  const Source train = Source::parse("csv:train.csv,label=first,id=2").value();
  for (const char* text : {"4,5\n", "9,4,5\n"}) {
    Source test = Source::parse("csv:" + folder.write("test", text)).value();
    inherit_options(train, test);
    std::get<CsvSource>(test.kind).training_table =
        std::make_shared<const Table>(2, 0, Table::Dense{}, std::vector<float>{});
    const auto table = load_test(test, 1, Labelling{});
    ASSERT_TRUE(table) << text << message_of(table);
    EXPECT_EQ(table->features(), 2U) << text;
    EXPECT_EQ(table->dense_row(0)[0], 4) << text << "the id 9 moves forward with the label gone";
    EXPECT_EQ(table->dense_row(0)[1], 5) << text;
    EXPECT_FALSE(table->has_labels) << text;
  }
}

TEST(LoadPair, TakesNoColumnsThatTheTestFileCannotHave) {
  const TemporaryFolder folder;
  const auto own_label = pair_of(folder, "csv", "1,7,9.5\n2,6,8\n", "4,5.5\n",
                                 ",id=1,label=last,task=value", ",label=last,task=value");
  ASSERT_TRUE(own_label) << message_of(own_label);
  EXPECT_EQ(own_label->test.dense_row(0)[0], 4) << "the test file has no ids";
  const auto named = pair_of(folder, "csv", "n,x,y\n1,7,9.5\n2,6,8\n", "4,5.5\n",
                             ",id=n,label=y,task=value", ",label=last,task=value");
  ASSERT_TRUE(named) << message_of(named);
  EXPECT_EQ(named->test.label(0), 5.5F) << "the last column";
  EXPECT_NE(message_of(pair_of(folder, "csv", "9.5,7\n8,6\n", "y,p\n4,5\n", ",label=1,task=value",
                               ",task=value"))
                .find("no column is named '1'"),
            std::string::npos);
}

/// The last column may hold a feature.
TEST(LoadPair, GuessesNoLabelColumnThatOnlyTheTrainingFileNames) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of(pair_of(folder, "csv", "a,y,b\n7,9.5,0\n6,8,1\n", "4,5.5,1\n",
                               ",label=y,task=value", ",task=value")),
            "test: " + folder.path("test") +
                ":1: label=y names a column, but the file has no header; valid: label=last, "
                "label=first, label=none, or its number, 1 to 3");
  const auto numbered = pair_of(folder, "csv", "a,y,b\n7,9.5,0\n6,8,1\n", "4,5.5,1\n",
                                ",label=y,task=value", ",label=2,task=value");
  ASSERT_TRUE(numbered) << message_of(numbered);
  EXPECT_EQ(numbered->test.label(0), 5.5F);
}

TEST(LoadPair, ReadsTestLabelsByTheTrainingLabelling) {
  const TemporaryFolder folder;
  const TablePair split = pair_of(folder, "csv", "1,1\n1,2\n1,3\n", "1,2\n1,2\n").value();
  EXPECT_EQ(split.test.classes(), 3U);
  EXPECT_EQ(split.test.label(0), 1);
  const TablePair one = pair_of(folder, "libsvm", "-1 1:1\n+1 1:1\n", "+1 1:1\n").value();
  EXPECT_EQ(one.test.classes(), 2U);
  EXPECT_EQ(one.test.label(0), 1);
  const TablePair real = pair_of(folder, "csv", "1,1.5\n1,2\n", "1,0\n1,1\n").value();
  EXPECT_EQ(real.test.classes(), 0U);
  EXPECT_EQ(real.test.label(1), 1);
}

TEST(LoadPair, RefusesTestDataThatDoNotFitTheTrainingData) {
  const TemporaryFolder folder;
  const std::string train = folder.path("train");
  const std::string test = folder.path("test");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,0\n2,1\n", "1,2,0\n")),
            "test: " + test + ": has 2 features, but " + train + " has 1");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,0\n2,1\n", "1,0\n1,2\n")),
            "test: " + test + ": label 2 of record 2 is not a class; valid: whole numbers 0 to 1");
  EXPECT_EQ(
      message_of(pair_of(folder, "csv", "1,0\n2,1\n", "1,0.5\n")),
      "test: " + test + ": label 0.5 of record 1 is not a class; valid: whole numbers 0 to 1");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,1\n2,2\n", "1,0\n")),
            "test: " + test + ": label 0 of record 1 is not a class; valid: whole numbers 1 to 2");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,-1\n2,1\n", "1,0\n")),
            "test: " + test + ": label 0 of record 1 is not a class; valid: -1 and +1");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,0\n2,1\n", "1,0\n", "", ",task=value")),
            "test: " + test + ": has real targets, but " + train + " has classes");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,0\n2,1.5\n", "1,0\n", "", ",task=class")),
            "test: " + test + ": has classes, but " + train + " has real targets");
  EXPECT_EQ(message_of(pair_of(folder, "libsvm", "0 1:1\n1 2:1\n", "0 3:1\n", ",features=2")),
            "test: " + test +
                ":1: the index of '3:1' is not valid; valid: whole numbers 1 to 2 (features=N)");
}

TEST(LoadPair, RefusesTestSourcesOfAnotherKindOrShape) {
  const TemporaryFolder folder;
  const auto error_of = [](const std::string& data, const std::string& test) {
    return message_of(load_pair(Source::parse(data).value(), Source::parse(test).value(), 1));
  };
  const std::string sparse = folder.write("sparse", "0 1:1\n1 784:1\n");
  EXPECT_EQ(error_of("digits:n=10", "libsvm:" + sparse),
            "test: " + sparse + ": is sparse, but digits:n=10 is dense");
  EXPECT_EQ(error_of("digits:n=10", "linear:d=784,n=3"),
            "test: linear:d=784,n=3,noise=0.1: has real targets, but digits:n=10 has classes");
  EXPECT_EQ(error_of("linear:d=4,n=3", "linear:d=5,n=3"),
            "test: linear:d=5,n=3,noise=0.1: has 5 features, but linear:d=4,n=3,noise=0.1 has 4");
  EXPECT_EQ(error_of("ratings:n=3", "ratings:n=3,rank=2"),
            "test: ratings:users=500,items=400,rank=2,n=3,noise=0.1 does not test "
            "ratings:users=500,items=400,rank=8,n=3,noise=0.1: users, items and rank must be the "
            "same");
}

}  // namespace
}  // namespace starling::models
