/// Messages about labels that may be classes or real targets, long names of models, and small
/// numbers.
#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// Returns a CSV file with `count` rows of one feature. The labels repeatedly count from `first` up
/// to `first` + `classes` - 1.
std::string rows(int first, int classes, int count = 60) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += std::to_string(i % classes) + "," + std::to_string(first + i % classes) + "\n";
  return text;
}

TEST(Inspect, NamesClassesByTheLabelsOfTheFile) {
  const Folder folder;
  folder.write("ratings.csv", rows(1, 6));
  folder.write("signs.csv", "1,-1\n2,1\n3,1\n");
  const ProgramResult ratings = starling(folder, "inspect csv:ratings.csv");
  EXPECT_TRUE(contains(ratings.out, "classes   1: 10, 2: 10, 3: 10, 4: 10, 5: 10, 6: 10\n"))
      << ratings.out << ratings.err;
  EXPECT_TRUE(contains(starling(folder, "inspect csv:signs.csv").out, "classes   -1: 1, 1: 2\n"));
}

TEST(Inspect, SaysHowToReadWholeNumbersAsTheOtherTask) {
  const Folder folder;
  folder.write("ratings.csv", rows(1, 6));
  const ProgramResult classes = starling(folder, "inspect csv:ratings.csv");
  const std::string note =
      "the labels are whole numbers, read as classes; to read them as real targets: ";
  const auto at = classes.out.find(note);
  ASSERT_NE(at, std::string::npos) << classes.out;
  const std::string rest = classes.out.substr(at + note.size());
  const std::string other = rest.substr(0, rest.find('\n'));
  const ProgramResult values = starling(folder, "inspect " + other);
  EXPECT_TRUE(contains(values.out, "real targets)")) << values.out << values.err;
  EXPECT_TRUE(
      contains(values.out, "read as real targets; to read them as classes: csv:ratings.csv"))
      << values.out;
}

TEST(Summary, WarnsOfClassesThatLookLikeRatings) {
  const Folder folder;
  folder.write("ratings.csv", rows(1, 5));
  folder.write("classes.csv", rows(0, 3));
  const std::string flags = " --quiet --workers 2 --steps 2";
  const std::string note = "the labels are whole numbers, read as classes";
  EXPECT_TRUE(contains(starling(folder, "train --data csv:ratings.csv" + flags).out, note));
  EXPECT_FALSE(contains(starling(folder, "train --data csv:classes.csv" + flags).out, note));
  EXPECT_FALSE(contains(starling(folder, "train --data digits:n=100" + flags).out, note));
}

/// As in data sets that write benign and malignant as 2 and 4.
TEST(Summary, SaysHowToReadFewNumbersAsClasses) {
  const Folder folder;
  std::string text = "x,y\n";
  for (int i = 0; i < 80; ++i)
    text += std::to_string(i % 2 == 0 ? i : -i) + (i % 2 == 0 ? ",2\n" : ",4\n");
  folder.write("cells.csv", text);
  const ProgramResult values =
      starling(folder, "train --data csv:cells.csv --quiet --workers 2 --steps 2 --save values");
  EXPECT_TRUE(contains(values.out,
                       "the labels are whole numbers, read as real targets; to read them "
                       "as classes: csv:cells.csv,task=class"))
      << values.out << values.err;
  const ProgramResult classes = starling(
      folder,
      "train --data csv:cells.csv,task=class --model logistic --quiet --workers 2 --epochs "
      "20 --save m");
  ASSERT_EQ(classes.code, 0) << classes.err;
  const ProgramResult predicted = starling(folder, "predict m --data csv:cells.csv");
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_TRUE(contains(predicted.out, ",2,2\n")) << predicted.out;
  folder.write("other.csv", "x,y\n1,3\n");
  const ProgramResult other = starling(folder, "evaluate m --data csv:other.csv");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err,
                       "has a class '3' in record 1, which the training data lack; did you mean "
                       "'2'? valid: 2, 4"))
      << other.err;
}

TEST(Summary, NamesTheFileOfALongNet) {
  const Folder folder;
  folder.write("net.toml",
               "layers = [\"dense 20\", \"relu\", \"dense 20\", \"relu\", \"dense 20\", \"relu\", "
               "\"dense 10\"]\n");
  const ProgramResult ran = starling(
      folder, "train --quiet --data digits:n=100 --workers 2 --steps 2 --model net:net.toml");
  EXPECT_TRUE(ran.out.starts_with("net:net.toml on digits:n=100 (")) << ran.out << ran.err;
}

TEST(Sim, WarnsOfTooFewStepsToCompareBarriers) {
  const Folder folder;
  folder.write("job.toml", "data = \"digits:n=200\"\nepochs = 1\nworkers = 4\n");
  const ProgramResult few = starling(folder, "sim job.toml");
  EXPECT_EQ(few.code, 0) << few.err;
  EXPECT_TRUE(contains(few.err, "job.toml:2: epochs: a worker makes ")) << few.err;
  EXPECT_TRUE(contains(few.err, "too few to compare barriers; valid: 20 or more")) << few.err;
  EXPECT_TRUE(contains(starling(folder, "sim --workers 4 --steps 19").err,
                       "--steps: a worker makes 19 steps at most"));
  EXPECT_FALSE(contains(starling(folder, "sim --workers 4 --steps 20").err, "too few"));
  EXPECT_FALSE(contains(starling(folder, "sim --workers 4 --seconds 1").err, "too few"));
}

TEST(Train, CountsUsersAndItemsOfBothPartsOfADividedSource) {
  const Folder folder;
  folder.write("ratings.csv", "user,item,rating\n0,0,1.5\n1,1,2.5\n2,0,3.5\n5,3,0.5\n");
  const ProgramResult ran = starling(
      folder, "train --data csv:ratings.csv --split 3 --model mf --steps 1 --workers 1 --quiet");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "mf:rank=16,users=6,items=4 on")) << ran.out;
}

TEST(Sim, PrintsASmallSpeedInUpdatesPerSecond) {
  const Folder folder;
  const ProgramResult slow =
      starling(folder,
               "sim --level protocol --data digits:n=100 --workers 2 --steps 20 "
               "--barrier asp");
  EXPECT_EQ(slow.code, 0) << slow.err;
  EXPECT_TRUE(contains(slow.err, " updates/s")) << slow.err;
  EXPECT_FALSE(contains(slow.err, "0.00 million")) << slow.err;
}

}  // namespace
}  // namespace starling::program
