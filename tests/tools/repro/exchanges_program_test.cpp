/// `starling repro exchanges`, run as a program.
#include <nlohmann/json.hpp>
#include <string>

#include "starling/tools/report/plot.hpp"
#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

// One test checks everything in the report, because a run takes long.
TEST(ReproExchanges, MakesACompleteReportWithItsData) {
  const Folder folder;
  const ProgramResult ran = starling(
      folder, "repro exchanges --quick --quiet --out report.html --data data --markdown page");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "report  report.html\ndata    data\npage    page/repro-exchanges.md\n");
  const std::string html = folder.read("report.html");
  const std::string page = folder.read("page/repro-exchanges.md");
  for (const char* section :
       {"Published, simulated and live", "Collectives", "Gossip", "Rounds that overlap with steps",
        "Local SGD", "Learning", "How this was made"}) {
    EXPECT_TRUE(contains(html, "<h2>" + std::string{section} + "</h2>")) << section;
    EXPECT_TRUE(contains(page, "\n## " + std::string{section} + "\n")) << section;
  }
  EXPECT_FALSE(contains(html, "<script"));

  const Json summary = Json::parse(folder.read("data/summary.json"));
  ASSERT_GE(summary["claims"].size(), 20U);
  for (const Json& claim : summary["claims"]) {
    EXPECT_FALSE(claim["here"].get<std::string>().empty()) << claim;
    EXPECT_FALSE(claim["live"].get<std::string>().empty()) << claim;
    // Computed and simulated figures do not depend on the machine. The short jobs of --quick do not
    // learn much.
    if (claim["here"] != "not simulated") {
      EXPECT_EQ(claim["verdict"], "reproduced") << claim;
    }
  }
  EXPECT_EQ(lines(folder.read("data/learning.csv")).size(), 1U + 10 * 2);

  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed: no pictures to look at";
  for (const char* picture : {"exchanges-gossip-bytes", "exchanges-overlap"})
    EXPECT_TRUE(contains(folder.read("page/pictures/" + std::string{picture} + ".svg"), "</svg>"))
        << picture;
}

TEST(ReproExchanges, RefusesBadInputBeforeItRunsAnything) {
  const Folder folder;
  for (const char* arguments : {"--live 0.5", "--live 11min", "--live long", "--seeds 0",
                                "--seed 18446744073709551615 --seeds 2"}) {
    const ProgramResult ran = starling(folder, std::string{"repro exchanges "} + arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_TRUE(ran.err.starts_with("starling: --")) << ran.err;
  }
  const ProgramResult extra = starling(folder, "repro exchanges --file x");
  EXPECT_EQ(extra.code, 2);
  EXPECT_TRUE(contains(extra.err, "--file")) << extra.err;
}

}  // namespace
}  // namespace starling::program
