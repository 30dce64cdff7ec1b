/// Runs `submit --trace` and `attach --trace` with three nodes.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// A worker's intervals, in the order of the file.
using Row = std::vector<Json>;

double begin_of(const Json& event) { return event["ts"].get<double>(); }
double end_of(const Json& event) { return begin_of(event) + event["dur"].get<double>(); }

/// A trace, whose rows have neither gaps nor overlaps.
struct NodeTrace {
  explicit NodeTrace(const std::string& text) : json(Json::parse(text)) {
    for (const Json& event : json["traceEvents"]) {
      const int pid = event["pid"];
      if (event["ph"] == "M" && event["name"] == "process_name") names[pid] = event["args"]["name"];
      if (event["ph"] != "X") continue;
      EXPECT_GE(begin_of(event), 0);
      EXPECT_GT(event["dur"].get<double>(), 0);
      Row& row = rows[event["tid"].get<int>() - 1];
      if (!row.empty()) {
        EXPECT_EQ(pid, row.back()["pid"]) << "the worker has moved";
        EXPECT_NEAR(begin_of(event), end_of(row.back()), 0.01);
      }
      row.push_back(event);
    }
    for (const Json& node : json["otherData"]["nodes"]) {
      EXPECT_EQ(node["name"], names[node["pid"]]);
      clock_error_us += node["clock_error_us"].get<double>() + node["clock_drift_us"].get<double>();
    }
  }

  [[nodiscard]] std::set<std::string> processes() const {
    std::set<std::string> all;
    for (const auto& [pid, name] : names) all.insert(name);
    return all;
  }

  Json json;
  std::map<int, std::string> names;
  /// By worker.
  std::map<int, Row> rows;
  /// The sum over the nodes.
  double clock_error_us = 0;
};

/// Returns when the worker's interval of this kind and step ended.
double end_of(const Row& row, const std::string& name, int step) {
  for (const Json& event : row)
    if (event["name"] == name && event["args"].value("step", 0) == step) return end_of(event);
  ADD_FAILURE() << "there is no " << name << " of step " << step;
  return 0;
}

const std::set<std::string> all_nodes{"node a", "node b", "node c"};

TEST_F(Nodes, HandOverWhatTheirWorkersDoWhen) {
  const ProgramResult ran =
      run(work_, program(),
          job_of_three(0,
                       "--mode central --barrier bsp --straggler 1:4x --steps 40 --quiet --json "
                       "--trace t.json"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(Json::parse(ran.out)["trace"], "t.json");
  const NodeTrace trace{work_.read("t.json")};
  EXPECT_EQ(trace.processes(), all_nodes);
  EXPECT_EQ(trace.json["otherData"]["intervals_dropped"], 0);
  EXPECT_EQ(trace.json["otherData"]["nodes"].size(), 3U);
  ASSERT_EQ(trace.rows.size(), 3U);
  double waited = 0;
  double waited_for_straggler = 0;
  for (const auto& [worker, row] : trace.rows) {
    EXPECT_EQ(row.front()["name"], "start");
    EXPECT_EQ(row.back()["args"]["step"], 40);
    EXPECT_EQ(std::ranges::count(row, "delay", [](const Json& e) { return e["name"]; }), 40);
    for (const Json& event : row) {
      if (event["name"] != "wait" || worker == 2) continue;
      waited += event["dur"].get<double>();
      if (event["args"].value("for", -1) == 2) waited_for_straggler += event["dur"].get<double>();
    }
  }
  EXPECT_GT(waited_for_straggler, waited / 2) << "worker 2 is the slow one";
  // No worker passes a barrier before all updates of the step are there: the clocks of the nodes
  // show this as well as they are known.
  for (const auto& [worker, row] : trace.rows)
    for (const auto& [other, row_of_other] : trace.rows)
      for (int step = 1; step < 40; ++step)
        EXPECT_GE(end_of(row, "wait", step),
                  end_of(row_of_other, "write", step) - trace.clock_error_us)
            << "step " << step << " of workers " << worker << " and " << other;
}

/// `advise` reads the trace of a job on nodes.
TEST_F(Nodes, HandOverStepsFromWhichAdviseLearns) {
  ASSERT_EQ(run(work_, program(), job_of_three(1, "--steps 40 --quiet --trace t.json")).code, 0);
  const ProgramResult ran =
      starling(work_, "advise t.json --mode central --steps 100 --seeds 1 --quiet --json");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["workers"].size(), 3U) << ran.out;
}

TEST_F(Nodes, ThatDieLoseOnlyWhatTheyHadNotHandedOver) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 job_of_three(0, "--steps 400 --json --trace t.json --barrier asp")};
  ASSERT_TRUE(wait_until([&] { return submit.err().find("  waiting ") != std::string::npos; }));
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  processes_[2]->signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  const NodeTrace trace{other.read("t.json")};
  EXPECT_EQ(trace.processes(), all_nodes);
  double dead_end = 0;
  double last_end = 0;
  for (const auto& [worker, row] : trace.rows) {
    const bool is_dead = trace.names.at(row.back()["pid"]) == "node c";
    EXPECT_EQ(row.front()["name"], "start");
    if (is_dead) {
      dead_end = end_of(row.back());
      EXPECT_LT(row.back()["args"]["step"], 400);
    } else {
      EXPECT_EQ(row.back()["args"]["step"], 400);
      last_end = std::max(last_end, end_of(row.back()));
    }
  }
  EXPECT_GT(dead_end, 0) << "the node has handed over what it had when it was asked";
  EXPECT_LT(dead_end, last_end);
}

TEST_F(Nodes, HandOverTheLatestIntervalsToAttach) {
  ASSERT_EQ(run(work_, program(), job_of_three(0, "--steps 100000 --detach --json")).code, 0);
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  const Folder other;
  Process attach{other, STARLING_PROGRAM, words("attach --trace t.json" + to(1))};
  ASSERT_TRUE(wait_until([&] { return attach.err().find("  waiting ") != std::string::npos; }));
  attach.signal(SIGINT);
  EXPECT_EQ(attach.wait().code, 130) << attach.err();
  const NodeTrace trace{other.read("t.json")};
  EXPECT_EQ(trace.processes(), all_nodes);
  EXPECT_EQ(trace.rows.size(), 3U);
  EXPECT_NE(status().find("running"), std::string::npos) << "the job goes on";
}

TEST_F(Nodes, RefuseATraceThatCannotBeWritten) {
  const ProgramResult ran = run(work_, program(), job_of_three(0, "--trace nowhere/t.json"));
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_NE(ran.err.find("--trace: nowhere/t.json: cannot be written"), std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace starling::program
