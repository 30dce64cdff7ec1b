#include "starling/tools/chaos/chaos_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/output.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// Returns a failure of seed 7.
ChaosFailure failure(bool is_shrunk) {
  ChaosFailure failure{
      .seed = 7, .scenario = sim::draw_scenario(7), .is_shrunk = is_shrunk, .file = "chaos-7.txt"};
  failure.report.violation = "range 1: lost an update";
  failure.report.events = 1;
  return failure;
}

/// Returns the scenario in a report: the lines that are indented by four spaces.
std::string scenario_in(const std::string& text) {
  std::string scenario;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("    ")) scenario += line.substr(4) + "\n";
  return scenario;
}

TEST(ChaosReport, ShowsAScenarioThatCanBeReadAgain) {
  const std::string text = chaos_text({}, failure(true));
  const auto read = sim::parse_scenario(scenario_in(text));
  ASSERT_TRUE(read) << read.error().message << "\n" << text;
  EXPECT_EQ(*read, sim::draw_scenario(7));
  EXPECT_TRUE(contains(text, "FAILED: range 1: lost an update\n")) << text;
  EXPECT_TRUE(contains(text, "after 1 event at")) << text;
  EXPECT_TRUE(contains(text, " chaos --replay chaos-7.txt\n")) << text;
}

TEST(ChaosReport, CallsAScenarioTheShortestOnlyIfItWasShrunk) {
  EXPECT_TRUE(contains(chaos_text({}, failure(true)), "the shortest scenario found that fails:\n"));
  EXPECT_FALSE(contains(chaos_text({}, failure(false)), "shortest"));
  EXPECT_EQ(Json::parse(chaos_json({}, failure(false)))["failure"]["cut_down"], false);
}

TEST(ChaosReport, CountsOnlyTheSeedsThatRan) {
  ChaosTotals totals{.runs = 3, .seeds_requested = 3};
  EXPECT_TRUE(
      contains(chaos_text(totals, {}),
               "  no update lost, none applied twice, no sample taken twice, no worker stuck\n"));
  totals.seeds_requested = 1000;
  totals.interrupted = true;
  EXPECT_TRUE(contains(chaos_text(totals, {}),
                       "  interrupted after 3 of 1000 seeds; in these no update lost"));
  const Json json = Json::parse(chaos_json(totals, {}));
  EXPECT_EQ(json["seeds"], 3);
  EXPECT_EQ(json["seeds_asked"], 1000);
  EXPECT_EQ(json["interrupted"], true);
}

TEST(ChaosReport, CountsTheFaultsLeftOutInTextAndInJson) {
  ChaosTotals totals;
  totals.sum.faults_refused = 4;
  EXPECT_TRUE(contains(chaos_text(totals, {}), "; 4 left out"));
  EXPECT_EQ(Json::parse(chaos_json(totals, {}))["faults_left_out"], 4);
}

}  // namespace
}  // namespace starling::program
