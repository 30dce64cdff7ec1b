/// `starling sim`, run as a program.
#include <nlohmann/json.hpp>
#include <regex>

#include "starling/tools/report/plot.hpp"
#include "starling/tools/sim/sim_report.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// A command line whose runs make some 20,000 updates under asp. A tenth of the 40 workers is slow.
const std::string small_sim =
    "sim --workers 40 --straggler 10%:4x --horizon 20s --seeds 3 --quiet ";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Sim, PrintsARowForEachBarrierInTheOrderAsked) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, small_sim + "--barrier asp --barrier bsp --barrier pssp:s=2,beta=3");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto lines = lines_of(ran.out);
  ASSERT_EQ(lines.size(), 5U) << ran.out;
  EXPECT_EQ(
      lines[0],
      "40 workers, central, steps exp:100ms, stragglers 10%:4x, 20s, recheck arrival, seeds 1 "
      "to 3, ± a 95 % interval");
  EXPECT_TRUE(std::regex_match(lines[1], std::regex{"barrier +steps +sd +min +median +max +waiting "
                                                    "+updates/s +messages/step"}))
      << lines[1];
  const std::regex row{
      R"([a-z]+[^ ]* +[0-9.]+ ± [0-9.]+ +[0-9.]+ +[0-9]+ +[0-9.]+ +[0-9]+ +[0-9.]+ % +[0-9]+ +[0-9.]+)"};
  for (std::size_t i = 2; i < 5; ++i) EXPECT_TRUE(std::regex_match(lines[i], row)) << lines[i];
  EXPECT_TRUE(lines[2].starts_with("asp "));
  EXPECT_TRUE(lines[3].starts_with("bsp "));
  EXPECT_TRUE(lines[4].starts_with("pssp:s=2,beta=3 "));
  EXPECT_EQ(ran.err, "");
}

TEST(Sim, PrintsItsSpeedToStderr) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "sim --workers 10 --horizon 2s --barrier asp");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("simulating ... 1 run, "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find(" updates/s"), std::string::npos) << ran.err;
}

TEST(Sim, PrintsAJsonObjectForEachBarrier) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, small_sim + "--json --barrier bsp --barrier pbsp:beta=3 --seed 5");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(lines_of(ran.out).size(), 1U);
  const Json all = Json::parse(ran.out);
  ASSERT_TRUE(all.is_array());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["barrier"], "bsp");
  EXPECT_EQ(all[1]["barrier"], "pbsp:beta=3");
  for (const Json& one : all) {
    EXPECT_EQ(one["workers"], 40);
    EXPECT_EQ(one["seed"], 5);
    EXPECT_EQ(one["seeds"], 3);
    EXPECT_EQ(one["horizon_s"], 20);
    const Json& steps = one["steps"];
    EXPECT_LE(steps["min"], steps["median"]);
    EXPECT_LE(steps["median"], steps["max"]);
    EXPECT_GT(steps["mean"], steps["mean_ci95"][0]);
    EXPECT_LT(steps["mean"], steps["mean_ci95"][1]);
    EXPECT_GE(steps["sd"], 0);
    EXPECT_GT(one["waiting_share"], 0);
    EXPECT_LT(one["waiting_share"], 1);
    EXPECT_GT(one["messages"], 0);
    ASSERT_EQ(one["runs"].size(), 3U);
    EXPECT_EQ(one["runs"][2]["seed"], 7);
    double mean = 0;
    for (const Json& run : one["runs"]) {
      mean += run["steps"]["mean"].get<double>() / 3;
      // Each update is one step of one worker.
      EXPECT_NEAR(run["steps"]["mean"].get<double>() * 40, run["updates"].get<double>(), 1e-6);
    }
    EXPECT_NEAR(steps["mean"].get<double>(), mean, 1e-9);
  }
  EXPECT_FALSE(all[0].contains("recheck"));
  EXPECT_EQ(all[1]["recheck"], "arrival");
}

TEST(Sim, WritesACsvRowForEachBarrierAndSeed) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, small_sim + "--csv runs.csv --json --barrier asp --barrier pssp:s=2,beta=3");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto lines = lines_of(folder.read("runs.csv"));
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_TRUE(lines[0].starts_with("barrier,workers,seed,steps_mean,steps_sd,steps_min,"));
  const Json all = Json::parse(ran.out);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(lines[1 + i].starts_with("asp,40," + std::to_string(1 + i) + ",")) << lines[1 + i];
    EXPECT_TRUE(lines[4 + i].starts_with("\"pssp:s=2,beta=3\",40,")) << lines[4 + i];
    std::istringstream cells{lines[1 + i]};
    std::string cell;
    for (int column = 0; column < 4; ++column) std::getline(cells, cell, ',');
    EXPECT_EQ(std::stod(cell), all[0]["runs"][i]["steps"]["mean"].get<double>());
  }
}

TEST(Sim, PrintsTheSameBytesForTheSameSeedOnAnyNumberOfThreads) {
  const Folder folder;
  const std::string line = small_sim + "--mode hybrid --json --csv runs.csv --plots plots ";
  const ProgramResult one = starling(folder, line + "--threads 1");
  ASSERT_EQ(one.code, 0) << one.err;
  std::vector<std::string> files{folder.read("runs.csv")};
  for (const auto& plot : sim_plot_names({}))
    for (const char* ending : {".dat", ".gp", ".svg"})
      files.push_back(folder.read("plots/" + plot + ending));
  const ProgramResult two = starling(folder, line + "--threads 2");
  EXPECT_EQ(one.out, two.out);
  std::size_t file = 0;
  EXPECT_EQ(files[file++], folder.read("runs.csv"));
  for (const auto& plot : sim_plot_names({}))
    for (const char* ending : {".dat", ".gp", ".svg"})
      EXPECT_EQ(files[file++], folder.read("plots/" + plot + ending)) << plot << ending;
  EXPECT_NE(starling(folder, line + "--seed 2").out, one.out);
}

TEST(Sim, DrawsItsPlotsIntoAFolder) {
  const Folder folder;
  const ProgramResult ran = starling(folder, small_sim + "--plots plots");
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const auto& plot : sim_plot_names({})) {
    EXPECT_FALSE(folder.read("plots/" + plot + ".dat").empty()) << plot;
    EXPECT_NE(folder.read("plots/" + plot + ".gp").find(plot + ".dat"), std::string::npos) << plot;
  }
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  for (const auto& plot : sim_plot_names({})) {
    const std::string svg = folder.read("plots/" + plot + ".svg");
    EXPECT_NE(svg.find("<svg"), std::string::npos) << plot;
    EXPECT_NE(svg.find("</svg>"), std::string::npos) << plot;
    EXPECT_NE(svg.find(plot == "messages" ? "arrivals" : "pssp:s=4,beta=10"), std::string::npos);
  }
}

TEST(Sim, WritesThePlotDataIfGnuplotIsMissing) {
  const Folder folder;
  Process program{folder, "/usr/bin/env",
                  words(std::string{"PATH=/nowhere "} + STARLING_PROGRAM + " " + small_sim +
                        "--barrier asp --plots plots")};
  const ProgramResult ran = program.wait();
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.err.find("gnuplot is not installed; valid: apt-get install gnuplot-nox"),
            std::string::npos)
      << ran.err;
  EXPECT_NE(ran.out.find("\nasp "), std::string::npos);
  EXPECT_FALSE(folder.read("plots/steps.dat").empty());
  EXPECT_FALSE(folder.has("plots/steps.svg"));
}

TEST(Sim, ShowsTheErrorOfTheLinearModel) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder,
               "sim --workers 40 --horizon 20s --learn --json --quiet --plots plots "
               "--barrier bsp --barrier asp");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json all = Json::parse(ran.out);
  for (const Json& one : all) {
    EXPECT_GT(one["normalised_error"], 0);
    EXPECT_LT(one["normalised_error"], 0.9);
    EXPECT_EQ(one["normalised_error"], one["runs"][0]["normalised_error"]);
  }
  EXPECT_LT(all[1]["normalised_error"], all[0]["normalised_error"]) << "asp makes more updates";
  EXPECT_TRUE(folder.read("plots/error.dat").starts_with("# bsp\n0 1 0\n"));
}

TEST(Sim, TakesAJobFileAndTheFlagsThatOverrideIt) {
  const Folder folder;
  folder.write("job.toml",
               "workers = 30\nmode = \"central\"\nbarrier = \"bsp\"\ndelay = \"const:100ms\"\n"
               "seconds = 10\nmodel = \"softmax\"\nsave = \"model.safetensors\"\n"
               "[sim]\nquiet = true\nbarrier = [\"bsp\", \"asp\"]\n");
  const ProgramResult ran = starling(folder, "sim --workers 20 job.toml --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const Json all = Json::parse(ran.out);
  ASSERT_EQ(all.size(), 2U);
  for (const Json& one : all) {
    EXPECT_EQ(one["workers"], 20);
    EXPECT_EQ(one["step_time"], "const:100ms");
    // Steps of exactly 100 ms never wait, and 100 of them fit into 10 s.
    EXPECT_EQ(one["steps"]["mean"], 100);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"job.toml"});
}

TEST(Sim, EndsWhenAllWorkersAreDone) {
  const Folder folder;
  const ProgramResult ran = starling(
      folder, "sim --workers 10 --step-time const:100ms --steps 7 --barrier bsp --json --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json one = Json::parse(ran.out)[0];
  EXPECT_EQ(one["steps"]["min"], 7);
  EXPECT_EQ(one["steps"]["max"], 7);
  EXPECT_NEAR(one["elapsed_s"].get<double>(), 0.7, 1e-9);
}

TEST(Sim, ComparesWeightedDrawsWithWorkersThatAreAway) {
  const Folder folder;
  const std::string line =
      "sim --workers 20 --mode hybrid --straggler 10%:away=2s/4s --horizon 20s --seeds 2 --quiet "
      "--barrier pssp:s=4,beta=2 --barrier pssp:s=4,beta=2,draw=availability "
      "--barrier pssp:s=4,beta=2,draw=speed ";
  const ProgramResult ran = starling(folder, line + "--json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json all = Json::parse(ran.out);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1]["barrier"], "pssp:s=4,beta=2,draw=availability");
  EXPECT_EQ(all[1]["straggler"], Json::array({"10%:away=2s/4s"}));
  EXPECT_LT(all[1]["waiting_share"], all[0]["waiting_share"]);
  EXPECT_EQ(starling(folder, line + "--json").out, ran.out);
}

TEST(Sim, RefusesWeightsInCentralMode) {
  const Folder folder;
  const ProgramResult ran = starling(folder, "sim --workers 20 --barrier pbsp:beta=2,draw=speed");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--barrier: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("or use mode hybrid or peer"), std::string::npos) << ran.err;
}

TEST(Sim, TakesStepTimesFromATrace) {
  const Folder folder;
  folder.write("trace.txt", "# measured\n50ms\n50ms\n");
  const ProgramResult ran = starling(
      folder,
      "sim --workers 5 --step-time trace:trace.txt --horizon 1s --barrier asp --json --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)[0]["steps"]["mean"], 20);
}

TEST(Sim, DrawsPlotsOfRunsWithoutEvents) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const Folder folder;
  for (const std::string line :
       {"sim --mode peer --barrier asp --workers 10 --horizon 1s --plots silent --quiet",
        "sim --workers 10 --horizon 1us --learn --plots still --quiet"}) {
    const ProgramResult ran = starling(folder, line);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err, "") << line;
  }
  EXPECT_NE(folder.read("silent/messages.svg").find("nothing to show"), std::string::npos);
}

TEST(Sim, CountsMessagesByModeAndWarnsOfSettingsWithoutEffect) {
  const Folder folder;
  const std::string line = "sim --workers 10 --barrier asp --json --recheck notify";
  const ProgramResult central = starling(folder, line);
  EXPECT_NEAR(Json::parse(central.out)[0]["messages_a_step"].get<double>(), 2, 0.1);
  EXPECT_TRUE(central.err.starts_with(
      "starling: --recheck: has no effect under asp, which draws no workers\n"))
      << central.err;
  const ProgramResult peer = starling(folder, line + " --mode peer --quiet");
  EXPECT_EQ(Json::parse(peer.out)[0]["messages_a_step"], 0);
  EXPECT_EQ(peer.err, "");
}

TEST(Sim, CountsEpochsOfTheDataGivenByFlags) {
  const Folder folder;
  // 800 of 1,000 rows train; 10 workers at batch 8 take 10 steps an epoch.
  const ProgramResult ran = starling(
      folder, "sim --epochs 3 --data digits:n=1000 --batch 8 --workers 10 --json --barrier asp");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)[0]["steps_limit"], 30);
}

TEST(Sim, NotesTheSettingsThatAJobFileLacks) {
  const Folder folder;
  folder.write("job.toml", "workers = 4\nuntil = \"accuracy>=0.9\"\n");
  const ProgramResult open = starling(folder, "sim job.toml --quiet");
  ASSERT_EQ(open.code, 0) << open.err;
  EXPECT_EQ(
      lines_of(open.out)[1],
      "steps exp:100ms, because the job has no delay; ends at 40s, because the job has no seconds; "
      "until is not simulated");
  const ProgramResult given = starling(folder, "sim job.toml --quiet --delay exp:20ms --horizon 2");
  ASSERT_EQ(given.code, 0) << given.err;
  EXPECT_EQ(lines_of(given.out)[1], "until is not simulated");
}

TEST(Sim, TakesDelayAndSecondsFromFlagsBeforeTheSimulationsOwnKeysInTheFile) {
  const Folder folder;
  folder.write("job.toml", "workers = 4\n[sim]\nstep-time = \"exp:50ms\"\nhorizon = 10\n");
  const ProgramResult ran =
      starling(folder, "sim job.toml --quiet --json --delay exp:500ms --seconds 20");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)[0]["step_time"], "exp:500ms");
  EXPECT_EQ(Json::parse(ran.out)[0]["horizon_s"], 20);
}

TEST(Sim, PrintsTheFiguresOfEachRunAsJson) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, small_sim + "--json --learn --csv a.csv --barrier pbsp:beta=3");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json all = Json::parse(ran.out);
  ASSERT_EQ(all[0]["runs"].size(), 3U);
  for (const Json& run : all[0]["runs"]) {
    EXPECT_GT(run["draws"], run["passes"]);
    EXPECT_NEAR(run["updates_per_s"].get<double>(), run["updates"].get<double>() / 20, 1e-9);
  }
  EXPECT_NE(lines_of(folder.read("a.csv"))[0].find(",normalised_error"), std::string::npos);
}

TEST(Sim, PrintsLowRatesAndLongTimesInFull) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder,
               "sim --workers 20 --steps 30 --horizon 2h --step-time const:60s "
               "--barrier bsp --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find(" 0.33 "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find(" 1800 s"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace starling::program
