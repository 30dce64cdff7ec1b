#include <algorithm>

#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

TEST(Libsvm, KeepsRowsSparse) {
  const TemporaryFolder folder;
  const std::string text = "+1 1:0.5 3:-2\n\n# a comment\n-1\t2:1e2 # behind a row\r\n-1\n";
  const Table table = load_text("libsvm:" + folder.write("x", text)).value();
  ASSERT_TRUE(table.is_sparse());
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table.features(), 3U);
  EXPECT_EQ(table.classes(), 2U);
  EXPECT_EQ(table.entries(), 3U);
  EXPECT_EQ(table.label(0), 1);
  EXPECT_EQ(table.label(1), 0);
  EXPECT_EQ(table.sparse_row(0).columns[1], 2U);
  EXPECT_EQ(table.sparse_row(0).values[1], -2);
  EXPECT_EQ(table.sparse_row(1).values[0], 100);
  EXPECT_TRUE(table.sparse_row(2).columns.empty());
}

TEST(Libsvm, TakesFeaturesFromTheOptionAndReadsGzip) {
  const TemporaryFolder folder;
  const std::string file = "libsvm:" + folder.write("x", gzip("0 1:1\n1 2:1\n"));
  EXPECT_EQ(load_text(file).value().features(), 2U);
  EXPECT_EQ(load_text(file + ",features=9").value().features(), 9U);
}

TEST(Libsvm, AllowsTheLargestIndex) {
  const TemporaryFolder folder;
  const Table table =
      load_text("libsvm:" + folder.write("x", "0 1:1\n1 2147483648:1\n") + ",features=2147483648")
          .value();
  EXPECT_EQ(table.features(), 2147483648U);
  EXPECT_EQ(table.sparse_row(1).columns[0], 2147483647U);
  EXPECT_LT(table.bytes(), 1000U);
}

TEST(Libsvm, CountsFromZeroIfAnIndexIsZero) {
  const TemporaryFolder folder;
  const auto file = "libsvm:" + folder.write("x", "1 1:5 3:7\n0 0:1\n");
  const Table table = load_text(file).value();
  EXPECT_EQ(table.features(), 4U);
  EXPECT_EQ(table.first_index, 0U);
  EXPECT_EQ(table.sparse_row(0).columns[0], 1U);
  EXPECT_EQ(table.sparse_row(1).columns[0], 0U);
  const auto without_zero = "libsvm:" + folder.write("y", "1 1:5 3:7\n0 2:1\n");
  EXPECT_EQ(load_text(without_zero).value().features(), 3U);
  EXPECT_EQ(load_text(without_zero).value().first_index, 1U);
  EXPECT_EQ(load_text(without_zero + ",base=0").value().features(), 4U);
  EXPECT_EQ(load_text(without_zero + ",base=0").value().sparse_row(0).columns[0], 1U);
  EXPECT_EQ(load_text(file + ",features=9").value().features(), 9U);
  const auto only = "libsvm:" + folder.write("z", "1 0:5\n0 0:1\n");
  EXPECT_EQ(load_text(only).value().features(), 1U);
}

TEST(Libsvm, IgnoresQueryIds) {
  const TemporaryFolder folder;
  const auto with = folder.write("x", "2 qid:7 1:0.5 3:2\n0 qid:18446744073709551615\n1 2:1\n");
  const auto without = folder.write("y", "2 1:0.5 3:2\n0\n1 2:1\n");
  const Table a = load_text("libsvm:" + with).value();
  const Table b = load_text("libsvm:" + without).value();
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(a.features(), b.features());
  for (std::size_t row = 0; row < a.size(); ++row) {
    EXPECT_EQ(a.label(row), b.label(row));
    EXPECT_TRUE(std::ranges::equal(a.sparse_row(row).columns, b.sparse_row(row).columns));
    EXPECT_TRUE(std::ranges::equal(a.sparse_row(row).values, b.sparse_row(row).values));
  }
}

TEST(Libsvm, RefusesBadFilesWithLocationAndValidForm) {
  const std::string any_index = "; valid: whole numbers 0 to 2147483648";
  const std::string up_to_four = "; valid: whole numbers 0 to 4 (features=N)";
  const TemporaryFolder folder;
  const std::vector<std::array<std::string, 3>> cases{
      {"", "", "FILE: holds no rows"},
      {"", "# nothing\n\n", "FILE: holds no rows"},
      {"", "0\n1\n", "FILE: has labels, but no features"},
      {"", "x 1:1\n", "FILE:1: 'x' is not a label; valid: a finite number, then index:value ..."},
      {"", "0 1:1\n1:1 2:2\n",
       "FILE:2: '1:1' is not a label; valid: a finite number, then index:value ..."},
      {"", "nan 1:1\n",
       "FILE:1: 'nan' is not a label; valid: a finite number, then index:value ..."},
      {"", "1,2 1:1\n",
       "FILE:1: '1,2' is not a label; valid: a finite number, then index:value ..."},
      {"", "0 1\n", "FILE:1: '1' has no colon; valid: index:value"},
      {"", "0 1 :2\n", "FILE:1: '1' has no colon; valid: index:value"},
      {",base=1", "0 1:1\n0 0:1\n",
       "FILE:2: the index of '0:1' is not valid (base=1); valid: whole numbers 1 to 2147483648"},
      {",base=0,features=4", "0 4:1\n",
       "FILE:1: the index of '4:1' is not valid (base=0); valid: whole numbers 0 to 3 "
       "(features=N)"},
      {",features=4", "0 1:1\n0 4:1\n0 0:1\n",
       "FILE:2: the index 4 is not valid in a file that counts from 0; valid: whole numbers 0 to "
       "3 (features=N)"},
      {"", "0 0:1 2147483648:1\n",
       "FILE:1: the index 2147483648 is not valid in a file that counts from 0; valid: whole "
       "numbers 0 to 2147483647"},
      {"", "0 0:1 0:2\n", "FILE:1: index 0 occurs twice in its row"},
      {"", "0 3:1 0:2\n", "FILE:1: index 0 follows 3; indices must ascend"},
      {"", "0 -1:1\n", "FILE:1: the index of '-1:1' is not valid" + any_index},
      {"", "0 +1:1\n", "FILE:1: the index of '+1:1' is not valid" + any_index},
      {"", "0 :1\n", "FILE:1: the index of ':1' is not valid" + any_index},
      {"", "0 1.5:1\n", "FILE:1: the index of '1.5:1' is not valid" + any_index},
      {"", "0 qid: 1:1\n", "FILE:1: 'qid:' is not a query id; valid: qid:N, N a whole number"},
      {"", "0 qid:x 1:1\n", "FILE:1: 'qid:x' is not a query id; valid: qid:N, N a whole number"},
      {"", "0 qid:-1 1:1\n", "FILE:1: 'qid:-1' is not a query id; valid: qid:N, N a whole number"},
      {"", "0 1:1 qid:3\n", "FILE:1: 'qid:3' follows a field; valid: one qid:N after the label"},
      {"", "0 qid:3 qid:3 1:1\n",
       "FILE:1: 'qid:3' follows a field; valid: one qid:N after the label"},
      {"", "qid:3 0 1:1\n",
       "FILE:1: 'qid:3' is not a label; valid: a finite number, then index:value ..."},
      {"", "0 2147483649:1\n", "FILE:1: the index of '2147483649:1' is not valid" + any_index},
      {"", "0 18446744073709551617:1\n",
       "FILE:1: the index of '18446744073709551617:1' is not valid" + any_index},
      {",features=4", "0 4:1\n1 5:1\n", "FILE:2: the index of '5:1' is not valid" + up_to_four},
      {"", "0 3:1 2:1\n", "FILE:1: index 2 follows 3; indices must ascend"},
      {"", "0 1:1\n0 3:1 3:2\n", "FILE:2: index 3 occurs twice in its row"},
      {"", "0 1:\n", "FILE:1: the value of '1:' is not a finite number that a float holds"},
      {"", "0 1:x\n", "FILE:1: the value of '1:x' is not a finite number that a float holds"},
      {"", "0 1:inf\n", "FILE:1: the value of '1:inf' is not a finite number that a float holds"},
      {"", "0 1:NaN\n", "FILE:1: the value of '1:NaN' is not a finite number that a float holds"},
      {"", "0 1:1e39\n", "FILE:1: the value of '1:1e39' is not a finite number that a float holds"},
      {"", "0 1:1:1\n", "FILE:1: the value of '1:1:1' is not a finite number that a float holds"},
      {"", "0 1:1,2:1\n",
       "FILE:1: the value of '1:1,2:1' is not a finite number that a float holds"},
      {",task=class", "0 1:1\n0 1:2\n",
       "FILE: every label is 0, but a classification needs at least two classes"},
      {",task=class", "-1 1:1\n0 1:2\n",
       "FILE: label -1 of record 1 is not a class; valid: whole numbers 0..k-1 or 1..k with "
       "k <= 1000000, or -1 and +1 throughout"},
      {",task=class", "0 1:1\n1000001 1:2\n",
       "FILE: label 1000001 of record 2 is not a class; valid: whole numbers 0..k-1 or 1..k with "
       "k <= 1000000, or -1 and +1 throughout"},
  };
  for (const auto& [options, content, message] : cases) {
    const std::string path = folder.write("x.svm", content);
    std::string source = "libsvm:" + path;
    source += options;
    EXPECT_EQ(message_of(load_text(source)), with_path(message, path)) << content;
  }
  std::string many = "1000000 1:1\n";
  for (int label = 0; label < 101; ++label) many += std::to_string(label) + " 1:1\n";
  const std::string path = folder.write("x.svm", many);
  EXPECT_EQ(message_of(load_text("libsvm:" + path + ",task=class")),
            path +
                ": labels from 0 to 1000000 name more than 1000000 classes; valid: at most "
                "1000000");
}

/// A mistyped index must not make a model of gigabytes.
TEST(Libsvm, RefusesAWideFileOfFewValuesWithoutFeatures) {
  const TemporaryFolder folder;
  const auto file = folder.write("x", "1 1:1\n0 7:1 1000000000:1\n1 2:1\n");
  EXPECT_EQ(message_of(load_text("libsvm:" + file)),
            file +
                ":2: the index 1000000000 makes 1000000000 features, but all rows together hold 4 "
                "values; valid: libsvm:" +
                file + ",features=1000000000 if that is meant");
  EXPECT_EQ(load_text("libsvm:" + file + ",features=1000000000").value().features(),
            1'000'000'000U);
  const auto narrow = folder.write("y", "1 1:1\n0 1048576:1\n");
  EXPECT_EQ(load_text("libsvm:" + narrow).value().features(), 1'048'576U);
}

TEST(Libsvm, AcceptsAWideFileOfManyValuesWithoutFeatures) {
  const TemporaryFolder folder;
  std::string text;
  for (std::size_t row = 0; row < 300'000; ++row)
    text += "1 " + std::to_string(4 * row + 1) + ":1\n";
  EXPECT_EQ(load_text("libsvm:" + folder.write("x", text)).value().features(), 1'199'997U);
}

}  // namespace
}  // namespace starling::models
