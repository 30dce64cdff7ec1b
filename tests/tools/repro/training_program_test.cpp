/// `starling repro psp-train`, run as a program with a model whose gradients take almost no time.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "starling/tools/report/plot.hpp"
#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// A command line to which flags can be appended.
constexpr const char* small_training =
    "repro psp-train --data digits:n=300 --model softmax --delay exp:5ms --quiet ";

/// Returns the number of lines.
std::size_t count_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(ReproPspTrain, ReportsFiveBarriersAfterEqualTimes) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, std::string{small_training} +
                           "--seconds 600ms --seeds 2 --seed 7 --evals 12 --out made "
                           "--markdown page");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "report  made/report.html\npage    page/repro-psp-train.md\n");
  EXPECT_EQ(ran.err, "");

  const Json summary = Json::parse(folder.read("made/summary.json"));
  ASSERT_EQ(summary["barriers"].size(), 5U);
  EXPECT_EQ(summary["claims"].size(), 6U);
  for (const Json& barrier : summary["barriers"]) {
    EXPECT_GT(barrier["updates"]["min"], 0) << barrier;
    EXPECT_GT(barrier["final_accuracy"]["mean"], 0.2) << barrier;
    EXPECT_LE(barrier["final_accuracy"]["max"], 1) << barrier;
  }
  EXPECT_EQ(count_lines(folder.read("made/runs.csv")), 1U + 5 * 2);
  EXPECT_EQ(count_lines(folder.read("made/claims.csv")), 1U + 6);
  const std::size_t points = count_lines(folder.read("made/curves.csv")) - 1;
  EXPECT_LE(points, 5U * 2 * 12);
  EXPECT_GE(points, 5U * 2 * 6) << "most instants have a model";
  EXPECT_TRUE(contains(folder.read("made/runs.csv"), "\nasp,8,"));

  const std::string html = folder.read("made/report.html");
  const std::string page = folder.read("page/repro-psp-train.md");
  for (const char* section :
       {"Published and here", "What was trained", "What each barrier made of its time",
        "Accuracy over updates and over time", "How this was made"}) {
    EXPECT_TRUE(contains(html, std::string{"<h2>"} + section)) << section;
    EXPECT_TRUE(contains(page, std::string{"\n## "} + section + "\n")) << section;
  }
  EXPECT_TRUE(contains(folder.read("made/psp-train-time.gp"), "psp-train-time.dat"));
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed: no pictures to look at";
  EXPECT_TRUE(contains(html, "<svg"));
  EXPECT_TRUE(contains(folder.read("page/pictures/psp-train-updates.svg"), "</svg>"));
}

TEST(ReproPspTrain, ReplacesAnEarlierReportButNoOtherFiles) {
  const Folder folder;
  const std::string line =
      std::string{small_training} + "--seconds 200ms --seeds 1 --barrier asp --out made";
  ASSERT_EQ(starling(folder, line).code, 0);
  EXPECT_TRUE(contains(folder.read("made/claims.csv"), "claim,"))
      << "there are no claims about a single barrier";
  folder.write("made/report.html", "old");
  ASSERT_EQ(starling(folder, line).code, 0);
  EXPECT_TRUE(contains(folder.read("made/report.html"), "<!doctype html>"));

  folder.write("made/thesis.tex", "mine");
  folder.write("made/report.html", "old");
  const ProgramResult refused = starling(folder, line);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(
      contains(refused.err,
               "starling: --out: made: holds 'thesis.tex', which is not a file of a report; "
               "valid: a new or an empty folder"))
      << refused.err;
  EXPECT_EQ(folder.read("made/report.html"), "old");
}

/// A net without ReLUs: ReLUs would get stuck at 0 and so keep the loss finite.
TEST(ReproPspTrain, NamesTheRunThatFailedAndWritesNoFiles) {
  const Folder folder;
  std::vector<std::string> line = words(
      "repro psp-train --data digits:n=300 --optimizer sgd:lr=1e6 --delay exp:5ms --seconds 5 "
      "--seeds 1 --barrier asp --markdown page --quiet --model");
  line.emplace_back("net:layers=dense 8; dense 8; dense 8; dense 10");
  const ProgramResult ran = run(folder, STARLING_PROGRAM, line);
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(contains(ran.err, "asp, seed 1: ")) << ran.err;
  EXPECT_TRUE(folder.names().empty());
}

TEST(ReproPspTrain, RefusesAFileInPlaceOfAFolder) {
  const Folder folder;
  folder.write("made", "mine");
  const ProgramResult ran = starling(folder, std::string{small_training} + "--out made");
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "--out: made: is a file; valid: the name of a folder")) << ran.err;
  EXPECT_EQ(folder.read("made"), "mine");
}

TEST(ReproPspTrain, PrintsItsFlagsForAShell) {
  const Folder folder;
  const std::string model = "net:layers=dense 8; relu; dense 10";
  std::vector<std::string> arguments = words(
      "repro psp-train --data digits:n=300 --delay exp:5ms --quiet --seconds 300ms --seeds 1 "
      "--barrier bsp --barrier asp --out made");
  arguments.insert(arguments.end(), {"--model", model});
  const ProgramResult ran = run(folder, STARLING_PROGRAM, arguments);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string flags = Json::parse(folder.read("made/summary.json"))["flags"];
  EXPECT_TRUE(contains(flags, " --model '" + model + "'")) << flags;
}

}  // namespace
}  // namespace starling::program
