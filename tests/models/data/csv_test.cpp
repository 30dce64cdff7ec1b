#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

TEST(Csv, ReadsRowsWithTheLabelLast) {
  const TemporaryFolder folder;
  const Table table = load_text("csv:" + folder.write("x", "1,2,0\n3,4.5,1\n")).value();
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table.features(), 2U);
  EXPECT_EQ(table.classes(), 2U);
  EXPECT_FALSE(table.is_sparse());
  EXPECT_EQ(table.dense_row(1)[0], 3);
  EXPECT_EQ(table.dense_row(1)[1], 4.5F);
  EXPECT_EQ(table.label(1), 1);
}

TEST(Csv, ReadsTheLabelFromTheGivenColumn) {
  const TemporaryFolder folder;
  const std::string file = "csv:" + folder.write("x", "a,price,b\n1,2.5,3\n4,5.5,6\n");
  const Table named = load_text(file + ",label=price").value();
  EXPECT_EQ(named.classes(), 0U);
  EXPECT_EQ(named.label(0), 2.5F);
  EXPECT_EQ(named.dense_row(1)[0], 4);
  EXPECT_EQ(named.dense_row(1)[1], 6);
  EXPECT_EQ(load_text(file + ",label=first,task=value").value().label(1), 4);
  EXPECT_EQ(load_text(file + ",task=value").value().label(0), 3);
}

TEST(Csv, ToleratesQuotesSpacesBlankLinesCarriageReturnsAndAMissingLastNewline) {
  const TemporaryFolder folder;
  const std::string text =
      "\r\n\"a, b\" ,\"say \"\"hi\"\"\",y\r\n\r\n\"1\", \"2\" ,0\r\n  \n +3 ,\t-4e-1,1";
  const Table table = load_text("csv:" + folder.write("x", text)).value();
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table.dense_row(0)[1], 2);
  EXPECT_EQ(table.dense_row(1)[0], 3);
  EXPECT_EQ(table.dense_row(1)[1], -0.4F);
  const std::string quoted = "csv:" + folder.path("x") + ",label=say \"hi\",task=value";
  EXPECT_EQ(load_text(quoted).value().label(0), 2);
}

TEST(Csv, ReadsNumbersBelowAllDoublesAsZero) {
  const TemporaryFolder folder;
  const Table table = load_text("csv:" + folder.write("x", "1e-400,0\n-2.5E-999,1\n")).value();
  EXPECT_EQ(table.dense_row(0)[0], 0);
  EXPECT_EQ(table.dense_row(1)[0], 0);
}

TEST(Csv, ReadsAHeaderWhoseFirstColumnIsANumberSign) {
  const TemporaryFolder folder;
  const std::string file = folder.write("x", "# exported\n#,size,fast\n1,2.5,0\n2,4,1\n");
  const Table table = load_text("csv:" + file + ",id=#,label=fast").value();
  EXPECT_EQ(table.features(), 1U);
  EXPECT_EQ(table.ids, (std::vector<std::string>{"1", "2"}));
}

TEST(Csv, ReadsGzipUnderAnyFileName) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  const Table table = load_text("csv:" + folder.write("x.tra", gzip(text))).value();
  ASSERT_EQ(table.size(), 100'000U);
  EXPECT_EQ(table.classes(), 3U);
  for (std::size_t i = 0; i < table.size(); ++i)
    ASSERT_EQ(table.dense_row(i)[0], static_cast<float>(i));
}

TEST(Csv, RefusesBadFilesWithLocationAndValidForm) {
  const TemporaryFolder folder;
  const std::string missing =
      "is a missing value; valid: missing=mean, which replaces a missing number by its column's "
      "mean and encodes a missing category as zeros, or missing=drop, which leaves out such rows";
  const std::string mixed =
      "is not a number, but 1 others of that column are; valid: numbers, category=NAME for a "
      "column "
      "of categories, or ignore=NAME";
  const std::vector<std::array<std::string, 3>> cases{
      {"", "", "FILE: is empty; valid: rows of cells"},
      {"", "\n \r\n\n", "FILE: is empty; valid: rows of cells"},
      {"", "a,b\n", "FILE: holds a header, but no rows; valid: at least one row"},
      {"", "a,b\n\n", "FILE: holds a header, but no rows; valid: at least one row"},
      {"", "1\n2\n",
       "FILE:1: has 1 column for a feature and a label; a row needs two, separated by commas, "
       "semicolons, tabs or |"},
      {"", "1,2\n3\n", "FILE:2: has 1 column, but the first row has 2"},
      {"",
       "\xff\xfe"
       "a",
       "FILE:1: is UTF-16; valid: UTF-8, as `iconv -f UTF-16 -t UTF-8` writes it"},
      {"", "a,b\r1,2\r3,4\r",
       "FILE:1: ends lines by CR; valid: LF or CR LF, as `tr '\\r' '\\n'` writes"},
      {"", "1,2\n\n3,4,5\n", "FILE:3: has 3 columns, but the first row has 2"},
      {"", "a,b\n1,2,3\n", "FILE:2: has 3 columns, but the first row has 2"},
      {"", "1,2\n3,4,\n", "FILE:2: has 3 columns, but the first row has 2"},
      {"", "1,2\n3,x\n",
       "FILE:2: column 2: 'x' is not a number, but 1 other labels are; valid: numbers, or "
       "task=class for classes of any text"},
      {"", "a,b\nc,d\n",
       "FILE: column 2 'b': every label is 'd', but a classification needs at least two classes"},
      {"", "1,2\n,4\n", "FILE:2: column 1: '' " + missing},
      {"", "1,2\n?,4\n", "FILE:2: column 1: '?' " + missing},
      {"", "1,2\n0x10,4\n", "FILE:2: column 1: '0x10' " + mixed},
      {"", "1,2\n1 2,4\n", "FILE:2: column 1: '1 2' " + mixed},
      {"", "1,2\n+-3,4\n", "FILE:2: column 1: '+-3' " + mixed},
      {"", "1,2\n\x01\x02,4\n", "FILE:2: column 1: '\?\?' " + mixed},
      {"", "1,2\n" + std::string(50, 'z') + ",4\n",
       "FILE:2: column 1: '" + std::string(40, 'z') + "...' " + mixed},
      {"", "1,2\nnan,4\n", "FILE:2: column 1: 'nan' " + missing},
      {"", "nan,2\n", "FILE:1: column 1: 'nan' " + missing},
      {"", "1,2\n3,-inf\n", "FILE:2: column 2: '-inf' is not a finite number that a float holds"},
      {"", "1,2\n1e39,0\n", "FILE:2: column 1: '1e39' is not a finite number that a float holds"},
      {"", "1,2\n1e999,0\n", "FILE:2: column 1: '1e999' is not a finite number that a float holds"},
      {"", "1,\"2\n3\",4\n", "FILE:1: column 2: the quote before '2' is not closed in its line"},
      {"", "1,\"2\"3\n", "FILE:1: column 2: '3' follows a closing quote; valid: a comma"},
      {",label=y", "1,2\n",
       "FILE:1: label=y names a column, but the file has no header; "
       "valid: label=last, label=first, label=none, or its number, 1 to 2"},
      {",label=prise", "area,price\n1,2\n",
       "FILE:1: no column is named 'prise'; did you mean 'price'? valid: area, price"},
      {",label=y", "y,x,y\n1,2,3\n",
       "FILE:1: label=y names 2 columns; valid: a name that only one column has"},
      {"", "x,y,y\n1,2,3\n",
       "FILE:1: several columns are named 'y', and the label column is one of them; valid: "
       "different names, or label=NAME of another column"},
      {",task=class", "1,0\n2,1.5\n",
       "FILE: label 1.5 of record 2 is not a class; valid: whole numbers 0..k-1 or 1..k with "
       "k <= 1000000, or -1 and +1 throughout"},
      {"", std::string{"\x1f\x8b\x08\x00", 4},
       "FILE: its gzip data ends too early, at byte 4 of the file"},
  };
  for (const auto& [options, content, message] : cases) {
    const std::string path = folder.write("x.csv", content);
    std::string source = "csv:" + path;
    source += options;
    EXPECT_EQ(message_of(load_text(source)), with_path(message, path)) << content;
  }
}

}  // namespace
}  // namespace starling::models
