/// Checks texts, categories, missing values and other forms of CSV files.
#include <array>
#include <cmath>

#include "starling/models/data/missing.hpp"
#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

/// Returns the features of row `at`.
std::vector<float> row(const Table& table, std::size_t at) {
  const auto values = table.dense_row(at);
  return {values.begin(), values.end()};
}

/// Loads `source` as test data for a model that was trained on `train`.
Result<Table> load_like(const std::string& source, const Table& train) {
  auto parsed = Source::parse(source);
  if (!parsed) return parsed.error();
  std::get<CsvSource>(parsed->kind).training_table =
      std::make_shared<const Table>(train.select({}));
  return load_test(*parsed, 1, train.labelling);
}

class CsvColumns : public testing::Test {
 protected:
  /// Writes a file and returns the source that reads it.
  std::string write(const std::string& text) { return "csv:" + folder_.write("x.csv", text); }
  /// Writes a second file beside that of write().
  std::string write_other(const std::string& text) {
    return "csv:" + folder_.write("other.csv", text);
  }
  Table load_ok(const std::string& text, const std::string& options = "") {
    auto table = load_text(write(text) + options);
    EXPECT_TRUE(table) << message_of(table);
    return table ? *std::move(table) : Table{};
  }

  TemporaryFolder folder_;
};

TEST_F(CsvColumns, TextsBecomeAFeatureForEachCategory) {
  const Table table = load_ok("city,age,species\nParis,3,cat\nBerlin,4.5,dog\nParis,5,ant\n");
  ASSERT_EQ(table.features(), 3U);
  EXPECT_EQ(row(table, 0), (std::vector<float>{0, 1, 3}));
  EXPECT_EQ(row(table, 1), (std::vector<float>{1, 0, 4.5}));
  EXPECT_EQ(table.classes(), 3U);
  EXPECT_EQ(table.labelling.names, (std::vector<std::string>{"ant", "cat", "dog"}));
  EXPECT_EQ(table.label(0), 1);
  EXPECT_EQ(table.labelling.text(table.label(1)), "dog");
  ASSERT_NE(table.encoding, nullptr);
  EXPECT_EQ(table.encoding->columns[0].categories, (std::vector<std::string>{"Berlin", "Paris"}));
  EXPECT_EQ(table.encoding->columns[1].name, "age");
  EXPECT_EQ(table.encoding->label, "species");
}

TEST_F(CsvColumns, CategoriesAreFoundAfterManyRows) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + ",?,0\n";
  const Table table = load_ok(text + "5,red,1\n6,blue,1\n", ",missing=mean");
  ASSERT_EQ(table.size(), 1002U);
  EXPECT_EQ(row(table, 7), (std::vector<float>{7, 0, 0}));
  EXPECT_EQ(row(table, 1000), (std::vector<float>{5, 0, 1}));
}

TEST_F(CsvColumns, WordsThatOtherProgramsReadAsNumbersAreCategoriesInAnyOrder) {
  for (const char* rows : {"Inf,1\nbc,2\nNan,3\n", "bc,1\nNan,2\nInf,3\n"}) {
    const Table table = load_ok(std::string{"city,v\n"} + rows);
    ASSERT_NE(table.encoding, nullptr);
    EXPECT_EQ(table.encoding->columns[0].categories,
              (std::vector<std::string>{"Inf", "Nan", "bc"}));
  }
}

TEST_F(CsvColumns, OptionsNameColumnsByNameOrNumber) {
  const std::string text = "zip,name,rooms,y\n10115,ann,3,1.5\n20095,bob,2,2.5\n10115,cid,4,3.5\n";
  const Table table = load_ok(text, ",category=zip,id=name,ignore=rooms");
  EXPECT_EQ(row(table, 0), (std::vector<float>{1, 0}));
  EXPECT_EQ(table.ids, (std::vector<std::string>{"ann", "bob", "cid"}));
  const Table numbered = load_ok("1,2,3,0.5\n4,5,6,1.5\n", ",ignore=1,3,label=4");
  EXPECT_EQ(numbered.features(), 1U);
  EXPECT_EQ(row(numbered, 1), (std::vector<float>{5}));
}

TEST_F(CsvColumns, AFirstColumnWithoutANameHoldsRowNames) {
  const Table table = load_ok(",a,y\n0,3,1.5\n1,4,2.5\n");
  EXPECT_EQ(table.features(), 1U);
  EXPECT_EQ(table.ids, (std::vector<std::string>{"0", "1"}));
}

TEST_F(CsvColumns, TheMostFrequentSeparatorOfTheFirstRowIsUsed) {
  EXPECT_EQ(load_ok("a;b;y\n1;2;0.5\n").features(), 2U);
  EXPECT_EQ(load_ok("a\tb\ty\n1\t2\t0.5\n").features(), 2U);
  EXPECT_EQ(load_ok("a|b|y\n1|2|0.5\n").features(), 2U);
  EXPECT_EQ(load_ok("\"a;b;c;d\",b,y\n1,2,0.5\n").features(), 2U);
  const Table table = load_ok("1,5;2,25;3,5\n", ",separator=semicolon,decimal=comma");
  EXPECT_EQ(row(table, 0), (std::vector<float>{1.5, 2.25}));
  EXPECT_EQ(table.label(0), 3.5F);
  EXPECT_EQ(row(load_ok("1,5;2,25;3,5\n", ",decimal=comma"), 0), row(table, 0));
}

TEST_F(CsvColumns, CommentsAreSkippedAndTheHeaderOptionIsFollowed) {
  EXPECT_EQ(load_ok("# made by hand\n#\na,y\n1,0.5\n").size(), 1U);
  EXPECT_EQ(load_ok("a,y\n1,0.5\n# and\n2,1.5\n", ",comment=#").size(), 2U);
  EXPECT_EQ(load_ok("x,y\nu,v\n", ",header=no").size(), 2U);
  EXPECT_EQ(load_ok("2019,2020\n1,2.5\n", ",header=yes").encoding->columns[0].name, "2019");
}

TEST_F(CsvColumns, MissingNumbersAreFilledWithTrainingMeans) {
  const Table read = load_ok("a,c,y\n1,u,1.5\n?,v,2.5\n3,NA,3.5\n", ",missing=mean");
  ASSERT_TRUE(std::isnan(read.dense_row(1)[0]));
  EXPECT_EQ(row(read, 2), (std::vector<float>{3, 0, 0}));
  const auto encoding = fit_fill_values(read);
  ASSERT_TRUE(encoding);
  EXPECT_EQ((*encoding)->columns[0].fill, 2);
  EXPECT_EQ(row(filled(read, *encoding), 1), (std::vector<float>{2, 0, 1}));
  const auto none = fit_fill_values(load_ok("a,b,y\n?,1,1.5\n,2,2.5\n", ",missing=mean"));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("column 'a' holds no value"), std::string::npos);
}

TEST_F(CsvColumns, MissingDropLeavesOutRowsThatLackAValue) {
  const Table table = load_ok("a,c,y\n1,u,1.5\n?,v,2.5\n3,NA,3.5\n4,w,\n", ",missing=drop");
  EXPECT_EQ(table.size(), 1U);
  EXPECT_EQ(table.features(), 2U) << "v and w occur only in rows that are left out";
  EXPECT_EQ(table.ids, (std::vector<std::string>{"0"})) << "rows keep their numbers";
}

TEST_F(CsvColumns, OfTestDataAreFoundByName) {
  const Table train = load_ok("city,age,species\nParis,3,cat\nBerlin,4,dog\n");
  const auto other = load_like(write_other("species,age,city\ndog,7,Paris\n"), train);
  ASSERT_TRUE(other) << message_of(other);
  EXPECT_EQ(row(*other, 0), (std::vector<float>{0, 1, 7}));
  EXPECT_EQ(other->label(0), 1);
  const auto unlabelled = load_like(write_other("age,city\n7,Berlin\n"), train);
  ASSERT_TRUE(unlabelled) << message_of(unlabelled);
  EXPECT_FALSE(unlabelled->has_labels);
  EXPECT_EQ(row(*unlabelled, 0), (std::vector<float>{1, 0, 7}));
  const Table two_named_a = load_ok("a,a,y\n1,2,1.5\n3,4,2.5\n");
  const auto again = load_like(write_other("a,y,a\n5,1.5,6\n"), two_named_a);
  ASSERT_TRUE(again) << message_of(again);
  EXPECT_EQ(row(*again, 0), (std::vector<float>{5, 6}));
  const auto numbered = load_like(write_other(",a,a\n0,5,6\n"), two_named_a);
  ASSERT_TRUE(numbered) << message_of(numbered);
  EXPECT_EQ(numbered->ids, (std::vector<std::string>{"0"}));
  const auto unnamed = load_like(write_other("Paris,8\n") + ",header=no", train);
  ASSERT_TRUE(unnamed) << message_of(unnamed);
  EXPECT_EQ(row(*unnamed, 0), (std::vector<float>{0, 1, 8}));
}

TEST_F(CsvColumns, UnknownCategoriesCountAsMissingWithMissingMean) {
  const Table train = load_ok("city,age,y\nParis,3,1.5\nBerlin,4,2.5\n", ",missing=mean");
  const auto other = load_like(write_other("city,age\nRome,?\n"), train);
  ASSERT_TRUE(other) << message_of(other);
  EXPECT_EQ(other->dense_row(0)[0] + other->dense_row(0)[1], 0);
  EXPECT_TRUE(std::isnan(other->dense_row(0)[2]));
}

TEST_F(CsvColumns, RefusesFilesThatDoNotMatchTheTrainingData) {
  const Table train = load_ok("city,age,species\nParis,3,cat\nBerlin,4,dog\n");
  const std::vector<std::array<std::string, 3>> cases{
      {"city,age\nRome,3\n", "",
       "FILE:2: column 1 'city': 'Rome' is not a category of the training data; valid: Berlin, "
       "Paris; or training data that were read with missing=mean, which treats it as missing"},
      {"city,age,species\nParis,3,cow\n", "",
       "FILE:2: column 3 'species': 'cow' is not a class of the training data; valid: cat, "
       "dog"},
      {"city,size\nParis,3\n", "",
       "FILE:1: has no column 'age', which the training data have; valid: all of their columns"},
      {"city,age,size\nParis,3,4\n", "",
       "FILE:1: the training data have no column 3 'size'; valid: their columns, ignore=size, or "
       "id=size"},
      {"u,v,w,x\n1,2,3,4\n", "", "FILE:1: has 3 columns of features, but the training data have 2"},
      {"city,age\nParis,old\n", "", "FILE:2: column 2 'age': 'old' is not a number"},
      {"city,age,species\nParis,3,?\n", "",
       "FILE:2: column 3 'species': '?' is a missing label; valid: missing=drop, which leaves out "
       "such "
       "rows, or to predict such rows label=none,ignore=species"},
      {"city,age\nParis,\n", "",
       "FILE:2: column 2 'age': '' is a missing value; valid: rows without missing values, or "
       "training data that were read with missing=mean"},
      {"city,age\nParis,\n", ",missing=mean",
       "FILE: missing=mean needs the means of the training data, which were read without it; "
       "valid: missing=mean for the training data too, or missing=drop if there are labels"},
      {"city,age\nParis,\n", ",missing=drop",
       "FILE:2: lacks a value, and missing=drop would leave the row without a prediction; valid: "
       "rows without missing values, or training data that were read with missing=mean"},
  };
  for (const auto& [content, options, message] : cases) {
    const auto other = load_like(write_other(content) + options, train);
    EXPECT_EQ(message_of(other), with_path(message, folder_.path("other.csv"))) << content;
  }
}

TEST_F(CsvColumns, RefusesAmbiguousColumnsAndBadOptions) {
  std::string names = "name,y\n";
  std::string many = "name,y\n";
  for (int i = 0; i < 60; ++i) names += "n" + std::to_string(i) + ",1.5\n";
  for (int i = 0; i < 1001; ++i) many += "n" + std::to_string(i) + ",1.5\n";
  const std::vector<std::array<std::string, 3>> cases{
      {"", "a,y\n1,1.5\n2,2.5\n3x,3.5\n",
       "FILE:4: column 1 'a': '3x' is not a number, but 2 others of that column are; valid: "
       "numbers, category=NAME for a column of categories, or ignore=NAME"},
      {"", "a,y\n1,cat\n2,0\n3,1\n",
       "FILE:2: column 2 'y': 'cat' is not a number, but 2 other labels are; valid: numbers, or "
       "task=class for classes of any text"},
      {"", "2019,2020,sold\n3,4,0\n5,6,1\n",
       "FILE:1: column 3: 'sold' is not a number, but 2 other labels are; valid: header=yes if the "
       "first row names the columns, numbers, or task=class for classes of any text"},
      {"", "shop,2020\n3,4\n5,6\n",
       "FILE:1: column 1: 'shop' is not a number, but 2 others of that column are; valid: "
       "header=yes if the first row names the columns, numbers, category=NAME for a column of "
       "categories, or ignore=NAME"},
      {"", "a;y\n1;1\n2,5;0\n",
       "FILE:3: column 1 'a': '2,5' is not a number unless commas stand before decimals; valid: "
       "decimal=comma"},
      {"", "a;y\n1;1,5\n2;0,5\n",
       "FILE:2: column 2 'y': '1,5' is not a number unless commas stand before decimals; valid: "
       "decimal=comma"},
      {",task=value", "a,y\n1,cat\n2,dog\n", "FILE:2: column 2 'y': 'cat' is not a number"},
      {"", "a,y\n1,cat\n2,cat\n",
       "FILE: column 2 'y': every label is 'cat', but a classification needs at least two classes"},
      {"", names,
       "FILE: column 1 'name': holds 60 different texts in 60 rows, too many for categories; "
       "valid: "
       "ignore=NAME, id=NAME if they name the rows, or category=NAME"},
      {",category=name", many, "FILE: column 1 'name': has more than 1000 different texts"},
      {"", "a,y\n1,\n",
       "FILE:2: column 2 'y': '' is a missing label; valid: missing=drop, which leaves out such "
       "rows"},
      {",missing=drop", "a,y\n?,1\n1,\n",
       "FILE: lacks a value in every row, so missing=drop leaves none; valid: missing=mean, or "
       "ignore=NAME"},
      {",ignore=b", "a,y\n1,2\n", "FILE:1: no column is named 'b'; did you mean 'a'? valid: a, y"},
      {",ignore=y,label=y", "a,y\n1,2\n",
       "FILE:1: label=y is column 2 'y', which is ignore=y already; valid: another column"},
      {",category=y", "a,y\n1,2\n",
       "FILE:1: category=y is column 2 'y', which is label=last already; valid: another column"},
      {",ignore=9", "1,2,3\n",
       "FILE:1: ignore=9 names a column, but the file has no header; valid: its number, 1 to 3"},
      {",ignore=a,b", "a,b,y\n1,2,3\n",
       "FILE:1: has 1 column for a feature and a label; a row needs two, separated by commas, "
       "semicolons, tabs or |"},
      {",decimal=comma", "a;y\n1.5;2,5\n1,5;3,5\n",
       "FILE:2: column 1 'a': '1.5' is not a number, but 1 others of that column are; valid: "
       "numbers, category=NAME for a column of categories, or ignore=NAME"},
      {"", "a,y\nK\xf6ln,1.5\nRom,2.5\n",
       "FILE: column 1 'a': 'K\\xf6ln' is not text in UTF-8; valid: the file as "
       "`iconv -f latin1 -t utf-8` writes it"},
      {",category=a,missing=mean", "a,y\n?,1.5\n,2.5\n",
       "FILE: column 1 'a': holds no value; valid: ignore=NAME"},
      {",separator=colon", "",
       "csv: separator=colon is unknown; valid: "
       "comma, semicolon, tab, pipe, ;, |"},
      {",separator=comma,decimal=comma", "",
       "csv: decimal=comma and separator=comma cannot be told apart; valid: one of them"},
      {",missing=zero", "", "csv: missing=zero is unknown; valid: mean, drop, refuse"},
      {",header=maybe", "", "csv: header=maybe is unknown; valid: yes, no"},
  };
  for (const auto& [options, content, message] : cases)
    EXPECT_EQ(message_of(load_text(write(content) + options)),
              with_path(message, folder_.path("x.csv")))
        << options << "\n"
        << content.substr(0, 200);
}

TEST_F(CsvColumns, PrintsWhatItReads) {
  for (const std::string text :
       {"csv:f,label=y,id=n,task=class,missing=mean,ignore=a,b,category=c,d,separator=semicolon,"
        "decimal=comma,comment=#,header=no",
        "csv:f,missing=drop,separator=tab,header=yes"}) {
    const auto source = Source::parse(text);
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(source->print(), text);
  }
}

}  // namespace
}  // namespace starling::models
