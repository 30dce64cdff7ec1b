/// Runs `train --trace`, and commands that have no trace.
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"
#include "tests/tools/refused.hpp"
#include "tests/tools/trace_rows.hpp"
#include "tests/waiting.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

class RefusedTrace : public testing::TestWithParam<RefusedLine> {};

TEST_P(RefusedTrace, LeavesNothingBehind) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Of, RefusedTrace,
    testing::Values(
        RefusedLine{"AFolder",
                    "train --quiet --trace folder",
                    {{"folder/", ""}},
                    {"--trace: folder: is a directory; valid: the name of a file"}},
        RefusedLine{"NoName", "train --trace ''", {}, {"--trace"}},
        RefusedLine{"NoValue", "train --trace --json", {}, {"--trace: needs a value"}},
        RefusedLine{"Two", "train --trace a.json --trace b.json", {}, {"--trace: is given twice"}},
        RefusedLine{"NoFolder",
                    "train --quiet --trace nowhere/a.json",
                    {},
                    {"--trace: nowhere/a.json: cannot be written"}},
        RefusedLine{"ADevice",
                    "train --quiet --trace /dev/null",
                    {},
                    {"--trace: /dev/null: is not a regular file"}},
        RefusedLine{"TheModel",
                    "train --quiet --save a --trace ./a",
                    {},
                    {"--trace: './a' is also the file of --save, 'a'"}},
        RefusedLine{"TheCheckpoint",
                    "train --quiet --checkpoint a --trace a",
                    {},
                    {"--trace: 'a' is also the file of --checkpoint"}},
        RefusedLine{"TheMetrics",
                    "train --quiet --metrics a --trace a",
                    {},
                    {"--metrics: 'a' is also the file of --trace"}},
        RefusedLine{"TheData",
                    "train --quiet --data csv:d.csv --trace d.csv",
                    {{"d.csv", "1,2,0\n3,4,1\n5,6,0\n"}},
                    {"--trace: 'd.csv' is also the file of --data"}},
        RefusedLine{"TheJob",
                    "train job.toml",
                    {{"job.toml", "steps = 2\ntrace = \"job.toml\"\n"}},
                    {"job.toml:2: trace: 'job.toml' is also the file of"}},
        RefusedLine{"Sim", "sim --workers 2 --trace a.json", {}, {"--trace"}},
        RefusedLine{"Twin", "twin --delay exp:1ms --trace a.json", {}, {"--trace"}}),
    name_of);

/// Returns when the row ends, in microseconds. Expects that it has no gap and no overlap.
double end_of(const TraceRowEvents& row) {
  double end = 0;
  for (const Json& event : row) {
    EXPECT_NEAR(event["ts"].get<double>(), end, 0.01);
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
  return end;
}

double waiting_of(const TraceRowEvents& row) {
  double sum = 0;
  for (const Json& event : row)
    if (event["name"] == "wait") sum += event["dur"].get<double>();
  return sum;
}

TEST(Trace, CoversTheRunOfEachWorker) {
  const Folder folder;
  folder.write("job.toml",
               "data = \"digits:n=400\"\nmodel = \"softmax\"\nworkers = 8\nsteps = 60\n"
               "delay = \"exp:2ms\"\nstraggler = \"1:4x\"\nbarrier = \"pssp:s=1,beta=5\"\ntrace = "
               "\"t.json\"\n");
  const ProgramResult ran = starling(folder, "train job.toml --json --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const Json summary = Json::parse(ran.out);
  EXPECT_EQ(summary["trace"], "t.json");
  const Json trace = Json::parse(folder.read("t.json"));
  EXPECT_EQ(trace["otherData"]["workers"], 8);
  EXPECT_EQ(trace["otherData"]["intervals_dropped"], 0);
  const auto rows = rows_of(trace);
  ASSERT_EQ(rows.size(), 8U);
  double total = 0;
  double waiting = 0;
  std::set<std::string> names;
  for (const auto& [thread, row] : rows) {
    const double end = end_of(row);
    EXPECT_LE(end, 1e6 * summary["wall_s"].get<double>() + 1);
    total += end;
    waiting += waiting_of(row);
    for (const Json& event : row) names.insert(event["name"]);
    EXPECT_EQ(row.back()["args"]["step"], 60);
  }
  const double waiting_share = summary["waiting_share"];
  EXPECT_GT(waiting_share, 0.1);
  EXPECT_NEAR(waiting / total, waiting_share, 0.01 * waiting_share);
  for (const char* name : {"start", "compute", "delay", "wait"}) EXPECT_TRUE(names.contains(name));
}

TEST(Trace, SaysForWhomAWorkerWaits) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder,
               "train --data digits:n=400 --model softmax --workers 3 --steps 30 --delay const:2ms "
               "--straggler 1:5x --barrier pbsp:beta=2 --quiet --trace t.json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::map<int, double> waited_for;
  const Json trace = Json::parse(folder.read("t.json"));
  for (const Json& event : trace["traceEvents"])
    if (event["args"].contains("for")) {
      EXPECT_EQ(event["name"], "wait");
      waited_for[event["args"]["for"]] += event["dur"].get<double>();
    }
  EXPECT_GT(waited_for[2], waited_for[0] + waited_for[1]) << "worker 2 is the slow one";
}

TEST(Trace, IsWrittenAfterAnInterrupt) {
  const Folder folder;
  folder.write("t.json", "before");
  Process program{
      folder, STARLING_PROGRAM,
      words("train --data digits:n=300 --seconds 100 --delay const:1ms --trace t.json")};
  ASSERT_TRUE(wait_until([&] { return contains(program.err(), "  loss "); })) << program.err();
  EXPECT_EQ(folder.read("t.json"), "before") << "until the job ends";
  program.signal(SIGINT);
  const ProgramResult ran = program.wait();
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_TRUE(contains(ran.out, "  trace       t.json\n")) << ran.out;
  const auto rows = rows_of(Json::parse(folder.read("t.json")));
  EXPECT_EQ(rows.size(), 4U);
  for (const auto& [thread, row] : rows) EXPECT_GT(end_of(row), 0);
}

TEST(Trace, IsIgnoredInTheJobFileOfASimulation) {
  const Folder folder;
  folder.write("job.toml",
               "steps = 3\nworkers = 2\ndata = \"digits:n=100\"\nbarrier = \"asp\"\n"
               "trace = \"t.json\"\n");
  EXPECT_EQ(starling(folder, "sim --quiet job.toml").code, 0);
  EXPECT_FALSE(folder.has("t.json"));
}

}  // namespace
}  // namespace starling::program
