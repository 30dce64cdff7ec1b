#include "starling/models/data/split.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

/// n rows of one feature, which counts up from 0.
Table counting(std::size_t n) {
  Table::Dense x;
  for (std::size_t i = 0; i < n; ++i) x.values.push_back(static_cast<float>(i));
  return Table{1, 2, std::move(x), std::vector<float>(n, 1)};
}

std::vector<float> values(const Table& table) {
  std::vector<float> found;
  for (std::size_t i = 0; i < table.size(); ++i) found.push_back(table.dense_row(i)[0]);
  return found;
}

std::string message_of(const Result<Split>& split) {
  return split ? "no error" : split.error().message;
}

Result<Split> pair_of(const TemporaryFolder& folder, const std::string& kind,
                      const std::string& train, const std::string& test,
                      const std::string& train_options = "", const std::string& test_options = "") {
  const auto source = [&](const char* name, const std::string& text, const std::string& options) {
    return Source::parse(kind + ":" + folder.write(name, text) + options).value();
  };
  return load_split(
      {.data = source("train", train, train_options), .test = source("test", test, test_options)});
}

TEST(SplitFirst, CutsBehindTheRowsForTraining) {
  const Split split = split_first(counting(5), 3).value();
  EXPECT_EQ(values(split.train), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(values(split.test), (std::vector<float>{3, 4}));
  EXPECT_EQ(split.test.classes(), 2U);
}

TEST(SplitFirst, RefusesToLeaveNothing) {
  EXPECT_EQ(message_of(split_first(counting(5), 0)),
            "--split 0 of 5 rows leaves nothing to train on; valid: 1 to 4");
  EXPECT_EQ(message_of(split_first(counting(5), 5)),
            "--split 5 of 5 rows leaves nothing to test on; valid: 1 to 4");
  EXPECT_EQ(message_of(split_first(counting(5), 8000)),
            "--split 8000 of 5 rows leaves nothing to test on; valid: 1 to 4");
  EXPECT_EQ(message_of(split_first(counting(1), 1)),
            "--split 1 of 1 rows leaves nothing to test on; valid: no split of one row");
}

TEST(HoldOut, DrawsTheShareBySeedAndKeepsTheOrder) {
  const Split split = hold_out(counting(1000), 0.2, 1).value();
  EXPECT_EQ(split.test.size(), 200U);
  const auto train = values(split.train);
  const auto test = values(split.test);
  EXPECT_TRUE(std::ranges::is_sorted(train));
  EXPECT_TRUE(std::ranges::is_sorted(test));
  std::set<float> all(train.begin(), train.end());
  all.insert(test.begin(), test.end());
  EXPECT_EQ(all.size(), 1000U);
  EXPECT_EQ(values(hold_out(counting(1000), 0.2, 1)->test), test);
  EXPECT_NE(values(hold_out(counting(1000), 0.2, 2)->test), test);
}

/// Each row is held out with probability 0.3: five standard deviations of the binomial.
TEST(HoldOut, HoldsEveryRowOutEquallyOften) {
  std::vector<int> held(20, 0);
  for (std::uint64_t seed = 0; seed < 10'000; ++seed)
    for (const float row : values(hold_out(counting(20), 0.3, seed)->test))
      ++held[static_cast<std::size_t>(row)];
  for (const int count : held) EXPECT_NEAR(count, 3000, 5 * 45.8);
}

TEST(HoldOut, RefusesWhatIsNoShare) {
  const std::string valid = " is not a share; valid: numbers between 0 and 1, both excluded";
  EXPECT_EQ(message_of(hold_out(counting(5), 0, 1)), "--holdout 0" + valid);
  EXPECT_EQ(message_of(hold_out(counting(5), 1, 1)), "--holdout 1" + valid);
  EXPECT_EQ(message_of(hold_out(counting(5), -0.5, 1)), "--holdout -0.5" + valid);
  EXPECT_EQ(message_of(hold_out(counting(5), std::nan(""), 1)), "--holdout nan" + valid);
  EXPECT_EQ(message_of(hold_out(counting(5), 0.05, 1)),
            "--holdout 0.05 of 5 rows leaves nothing to test on");
  EXPECT_EQ(message_of(hold_out(counting(5), 0.95, 1)),
            "--holdout 0.95 of 5 rows leaves nothing to train on");
}

TEST(LoadSplit, HoldsAFifthOutUnlessToldOtherwise) {
  const Source digits = Source::parse("digits:n=50").value();
  EXPECT_EQ(load_split({.data = digits})->test.size(), 10U);
  EXPECT_EQ(load_split({.data = digits, .holdout = 0.5})->test.size(), 25U);
  EXPECT_EQ(load_split({.data = digits, .split = 40})->train.size(), 40U);
  EXPECT_EQ(load_split({.data = digits, .test = Source{DigitsSource{7}}})->test.size(), 7U);
}

TEST(LoadSplit, RefusesToDivideTwice) {
  const Source digits = Source::parse("digits:n=50").value();
  EXPECT_EQ(message_of(load_split({.data = digits, .split = 40, .holdout = 0.5})),
            "--split and --holdout exclude each other; "
            "valid: one of --test, --split and --holdout");
  EXPECT_EQ(message_of(load_split({.data = digits, .test = digits, .split = 4})),
            "--test and --split exclude each other; valid: one of --test, --split and --holdout");
  EXPECT_EQ(message_of(load_split({.data = digits, .test = digits, .split = 4, .holdout = 0.5})),
            "--test, --split and --holdout exclude each other; "
            "valid: one of --test, --split and --holdout");
}

TEST(LoadSplit, GivesSparseTablesTheLargerWidth) {
  const TemporaryFolder folder;
  const Split less = pair_of(folder, "libsvm", "0 1:1\n1 5:1\n", "0 2:1\n").value();
  EXPECT_EQ(less.train.features(), 5U);
  EXPECT_EQ(less.test.features(), 5U);
  const Split more = pair_of(folder, "libsvm", "0 1:1\n1 5:1\n", "0 7:1\n").value();
  EXPECT_EQ(more.train.features(), 7U);
  EXPECT_EQ(more.test.features(), 7U);
}

TEST(LoadSplit, ReadsTheTestByTheLabelsOfTheTraining) {
  const TemporaryFolder folder;
  const Split split = pair_of(folder, "csv", "1,1\n1,2\n1,3\n", "1,2\n1,2\n").value();
  EXPECT_EQ(split.test.classes(), 3U);
  EXPECT_EQ(split.test.label(0), 1);
  const Split one = pair_of(folder, "libsvm", "-1 1:1\n+1 1:1\n", "+1 1:1\n").value();
  EXPECT_EQ(one.test.classes(), 2U);
  EXPECT_EQ(one.test.label(0), 1);
  const Split real = pair_of(folder, "csv", "1,1.5\n1,2\n", "1,0\n1,1\n").value();
  EXPECT_EQ(real.test.classes(), 0U);
  EXPECT_EQ(real.test.label(1), 1);
}

TEST(LoadSplit, RefusesATestThatDoesNotFit) {
  const TemporaryFolder folder;
  const std::string train = folder.path("train");
  const std::string test = folder.path("test");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,0\n2,1\n", "1,2,0\n")),
            test + ": has 2 features, but " + train + " has 1");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,0\n2,1\n", "1,0\n1,2\n")),
            test + ": label 2 of record 2 is not a class; valid: whole numbers 0 to 1");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,0\n2,1\n", "1,0.5\n")),
            test + ": label 0.5 of record 1 is not a class; valid: whole numbers 0 to 1");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,1\n2,2\n", "1,0\n")),
            test + ": label 0 of record 1 is not a class; valid: whole numbers 1 to 2");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,-1\n2,1\n", "1,0\n")),
            test + ": label 0 of record 1 is not a class; valid: -1 and +1");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,0\n2,1\n", "1,0\n", "", ",task=value")),
            test + ": has real targets, but " + train + " has classes");
  EXPECT_EQ(message_of(pair_of(folder, "csv", "1,0\n2,1.5\n", "1,0\n", "", ",task=class")),
            test + ": has classes, but " + train + " has real targets");
  EXPECT_EQ(message_of(pair_of(folder, "libsvm", "0 1:1\n1 2:1\n", "0 3:1\n", ",features=2")),
            test + ":1: the index of '3:1' is not valid; valid: whole numbers 1 to 2 (features=N)");
}

TEST(LoadSplit, RefusesSourcesThatDoNotTestEachOther) {
  const TemporaryFolder folder;
  const auto refuse = [](const std::string& data, const std::string& test) {
    return message_of(
        load_split({.data = Source::parse(data).value(), .test = Source::parse(test).value()}));
  };
  const std::string sparse = folder.write("sparse", "0 1:1\n1 784:1\n");
  EXPECT_EQ(refuse("digits:n=10", "libsvm:" + sparse),
            sparse + ": is sparse, but digits:n=10 is dense");
  EXPECT_EQ(refuse("digits:n=10", "linear:d=784,n=3"),
            "linear:d=784,n=3,noise=0.1: has real targets, but digits:n=10 has classes");
  EXPECT_EQ(refuse("linear:d=4,n=3", "linear:d=5,n=3"),
            "linear:d=5,n=3,noise=0.1: has 5 features, but linear:d=4,n=3,noise=0.1 has 4");
  EXPECT_EQ(refuse("ratings:n=3", "ratings:n=3,rank=2"),
            "ratings:users=500,items=400,rank=2,n=3,noise=0.1 does not test "
            "ratings:users=500,items=400,rank=8,n=3,noise=0.1: users, items and rank must be the "
            "same");
}

}  // namespace
}  // namespace starling::models
