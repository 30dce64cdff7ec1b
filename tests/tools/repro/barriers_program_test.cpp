/// `starling repro barriers`, run as a program.
#include <nlohmann/json.hpp>
#include <string>

#include "starling/tools/report/plot.hpp"
#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

// One test checks everything in the report, because a run takes long.
TEST(ReproBarriers, MakesACompleteReportWithItsData) {
  const Folder folder;
  const ProgramResult ran = starling(
      folder, "repro barriers --quick --quiet --out report.html --data data --markdown page");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "report  report.html\ndata    data\npage    page/repro-barriers.md\n");
  const std::string html = folder.read("report.html");
  const std::string page = folder.read("page/repro-barriers.md");
  for (const char* section :
       {"Published, simulated and live", "Simulated clusters",
        "Over time, with one worker of four at half speed", "Live beside simulated",
        "Which barrier wins where", "How this was made"}) {
    EXPECT_TRUE(contains(html, "<h2>" + std::string{section} + "</h2>")) << section;
    EXPECT_TRUE(contains(page, "\n## " + std::string{section} + "\n")) << section;
  }
  EXPECT_FALSE(contains(html, "<script"));

  const Json summary = Json::parse(folder.read("data/summary.json"));
  ASSERT_GE(summary["claims"].size(), 15U);
  for (const Json& claim : summary["claims"]) {
    EXPECT_FALSE(claim["here"].get<std::string>().empty()) << claim;
    EXPECT_FALSE(claim["live"].get<std::string>().empty()) << claim;
    // These hold for every seed.
    const auto finding = claim["what"].get<std::string>();
    if (contains(finding, "steps apart") || contains(finding, "seed by seed")) {
      EXPECT_EQ(claim["verdict"], "reproduced") << claim;
    }
  }
  EXPECT_EQ(summary["live"].size(), 18U);
  for (const Json& run : summary["live"]) EXPECT_GT(run["updates"], 0) << run;
  // The map of --quick has one number of workers and one slowness, three jitters, and the shares
  // none and two others.
  EXPECT_EQ(lines(folder.read("data/map.csv")).size(), 1U + 3 * 3 * 12);

  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed: no pictures to look at";
  for (const char* picture :
       {"barriers-updates-1", "barriers-updates-2", "barriers-updates-3", "barriers-time-updates",
        "barriers-time-spread", "barriers-loss-small", "barriers-loss-large", "barriers-live",
        "barriers-map-updates", "barriers-map-loss"})
    EXPECT_TRUE(contains(folder.read("page/pictures/" + std::string{picture} + ".svg"), "</svg>"))
        << picture;
}

TEST(ReproBarriers, RefusesBadInputBeforeItRunsAnything) {
  const Folder folder;
  for (const char* arguments : {"--live 0.5", "--live 11min", "--live long", "--seeds 0",
                                "--seed 18446744073709551615 --seeds 2"}) {
    const ProgramResult ran = starling(folder, std::string{"repro barriers "} + arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_TRUE(ran.err.starts_with("starling: --")) << ran.err;
  }
}

}  // namespace
}  // namespace starling::program
