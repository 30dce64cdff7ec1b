/// Runs `train --report`. A report that cannot be written is refused before anything starts, and no
/// file is left behind.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "starling/tools/report/plot.hpp"
#include "tests/tools/program.hpp"
#include "tests/waiting.hpp"

namespace starling::program {
namespace {

namespace fs = std::filesystem;

/// Flags of `train` with a report that cannot be written.
struct BadReportFlags {
  std::string name;
  std::string flags;
  /// Texts that the error message contains.
  std::vector<std::string> error_parts;
};

void PrintTo(const BadReportFlags& bad, std::ostream* out) { *out << bad.flags; }

class BadReport : public testing::TestWithParam<BadReportFlags> {};

TEST_P(BadReport, IsRefusedByFlagAndFile) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const Folder folder;
  fs::create_directory(folder.path() / "folder");
  folder.write("data.csv", "1,2,0\n3,4,1\n5,6,0\n7,8,1\n9,1,0\n2,3,1\n");
  folder.write("net.toml", "layers = [\"dense 2\"]\n");
  folder.write("report.toml", "steps = 2\nreport = \"report.toml\"\n");
  folder.write("list.toml", "report = [\"a.html\"]\n");
  folder.write("number.toml", "report = 3\n");
  fs::create_symlink("data.csv", folder.path() / "link.html");
  fs::create_symlink("loop.html", folder.path() / "loop.html");
  const ProgramResult ran = starling(folder, "train --quiet " + GetParam().flags);
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  for (const std::string& part : GetParam().error_parts)
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << "\nis not in\n" << ran.err;
  for (const char* left : {"a.html", "m.safetensors", "c", "m.jsonl"})
    EXPECT_FALSE(folder.has(left)) << left;
  EXPECT_TRUE(folder.read("data.csv").starts_with("1,2,0\n"));
}

INSTANTIATE_TEST_SUITE_P(
    Report, BadReport,
    testing::Values(
        BadReportFlags{"Folder",
                       "--report folder",
                       {"--report: folder: is a directory", "the name of a file"}},
        BadReportFlags{"Empty", "--report ''", {"--report"}},
        BadReportFlags{"NoValue", "--report", {"--report: needs a value"}},
        BadReportFlags{"FlagForAValue", "--report --json", {"--report: needs a value"}},
        BadReportFlags{"Twice", "--report a.html --report b.html", {"--report: is given twice"}},
        BadReportFlags{"InNoFolder",
                       "--report nowhere/a.html",
                       {"--report: nowhere/a.html: cannot be written", "No such file"}},
        BadReportFlags{"UnderAFile", "--report data.csv/a.html", {"--report: data.csv/a.html"}},
        BadReportFlags{
            "Device", "--report /dev/null", {"--report: /dev/null: is not a regular file"}},
        BadReportFlags{
            "LinkToItself", "--report loop.html", {"--report: loop.html: cannot be written"}},
        BadReportFlags{"OfSave",
                       "--save a.html --report a.html",
                       {"--report: 'a.html' is also the file of --save"}},
        BadReportFlags{"OfSaveOtherwiseSpelt",
                       "--save a.html --report ./folder/../a.html",
                       {"--report: './folder/../a.html' is also the file of --save, 'a.html'"}},
        BadReportFlags{"OfTheCheckpoint",
                       "--checkpoint c --report c",
                       {"--report: 'c' is also the file of --checkpoint"}},
        BadReportFlags{"OfTheMetrics",
                       "--metrics m.jsonl --report m.jsonl",
                       {"--metrics: 'm.jsonl' is also the file of --report"}},
        BadReportFlags{"OfTheData",
                       "--data csv:data.csv --report data.csv",
                       {"--report: 'data.csv' is also the file of --data"}},
        BadReportFlags{"OfTheDataByALink",
                       "--data csv:data.csv --report link.html",
                       {"--report: 'link.html' is also the file of --data, 'data.csv'"}},
        BadReportFlags{"OfTheNet",
                       "--data csv:data.csv --model net:net.toml --report net.toml",
                       {"--report: 'net.toml' is also the file of --model"}},
        BadReportFlags{"OfTheJob",
                       "report.toml",
                       {"report.toml:2: report: 'report.toml' is also the file of"}},
        BadReportFlags{"List", "list.toml", {"list.toml:1: report: "}},
        BadReportFlags{"Number", "number.toml", {"number.toml:1: report: "}}),
    [](const auto& bad) { return bad.param.name; });

TEST(Report, IsRefusedWithoutGnuplotBeforeAnythingStarts) {
  const Folder folder;
  Process program{folder, "/usr/bin/env",
                  words(std::string{"PATH=/nowhere "} + STARLING_PROGRAM +
                        " train --quiet --steps 2 --data digits:n=100 --report a.html")};
  const ProgramResult ran = program.wait();
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--report: gnuplot, which draws the curves, is not installed; valid: "
                         "apt-get install gnuplot-nox"),
            std::string::npos)
      << ran.err;
  EXPECT_FALSE(folder.has("a.html"));
}

TEST(Report, ReplacesTheReportOfAnEarlierJob) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const Folder folder;
  folder.write("a.html", "before");
  folder.write("job.toml", "steps = 3\ndata = \"digits:n=100\"\nreport = \"a.html\"\n");
  const ProgramResult ran = starling(folder, "train --quiet --json job.toml");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["report"], "a.html");
  const std::string page = folder.read("a.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(Report, SaysThatTheJobWasInterrupted) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const Folder folder;
  Process program{folder, STARLING_PROGRAM,
                  words("train --data digits:n=300 --seconds 100 --report a.html")};
  ASSERT_TRUE(wait_until([&] { return program.err().find("  loss ") != std::string::npos; }))
      << "the program prints no progress: " << program.err();
  program.signal(SIGINT);
  const ProgramResult ran = program.wait();
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_NE(folder.read("a.html").find("<td>interrupted</td>"), std::string::npos);
}

TEST(Report, IsIgnoredBySimulations) {
  const Folder folder;
  folder.write("job.toml",
               "steps = 3\nworkers = 2\ndata = \"digits:n=100\"\nbarrier = \"asp\"\n"
               "report = \"a.html\"\n");
  EXPECT_EQ(starling(folder, "sim --quiet job.toml").code, 0);
  EXPECT_FALSE(folder.has("a.html"));
}

}  // namespace
}  // namespace starling::program
