/// Flows on nodes: their results, files, names and ends.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/cluster/nodes.hpp"
#include "tests/tools/output.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// A text of `words` words of which some are frequent.
std::string frequent_words(int words) {
  std::string text;
  for (int i = 0; i < words; ++i)
    text += "word" + std::to_string(i * 7919 % 3011) + (i % 9 == 0 ? "\n" : " the ");
  return text;
}

/// Returns links that pagerank needs many seconds for.
std::string many_links() {
  std::string links;
  for (int i = 0; i < 20'000; ++i)
    links += std::to_string(i % 999) + " " + std::to_string(i * 7919 % 1009) + "\n";
  return links;
}

/// Returns the stages in a summary, without what depends on times and memory.
Json stages_of(const Json& summary) {
  Json stages;
  for (const Json& stage : summary["stages"])
    stages.push_back({stage["operations"], stage["partitioner"], stage["parts"], stage["runs"]});
  return stages;
}

class NodesWithFlows : public Nodes {
 protected:
  /// Submits a flow to node b.
  ProgramResult submit(const std::string& line) {
    return starling(work_, "submit" + to(1) + "--flow " + line);
  }
  /// Returns the first job as `starling status` prints it; null without one.
  Json job() {
    const auto json = Json::parse(starling(queries_, "status --json" + to(2)).out, nullptr, false);
    return json.is_discarded() || json["jobs"].empty() ? Json{} : json["jobs"][0];
  }

 private:
  /// A program's folder names the files with its output, so two programs at once need two.
  Folder queries_;
};

TEST_F(NodesWithFlows, HaveTheResultOfOneProcess) {
  work_.write("a.txt", frequent_words(30'000));
  work_.write("b.txt", "the end\nof the files\n");
  work_.write("numbers.csv", "x,y\n3,1\n1,2\n2,7\n1,9\n");
  work_.write("names.csv", "x,name\n1,one\n2,two\n");
  work_.write("links.txt", "a b\nb c\nc a\na c\nd a\n");
  const std::vector<std::string> lines{
      "wordcount a.txt b.txt --top 30 --parts 5",
      "sort a.txt --descending --lines 100",
      "sort numbers.csv --column x --numeric --header",
      "join numbers.csv --with names.csv --column x --kind left --header",
      "pagerank links.txt --iterations 5",
      "kmeans numbers.csv --header --k 2",
      "histogram numbers.csv --header --column y --bins 3 --low 0 --high 9"};
  for (const std::string& line : lines) {
    const ProgramResult alone = starling(work_, "run " + line + " --quiet");
    ASSERT_EQ(alone.code, 0) << line << "\n" << alone.err;
    for (const std::string workers : {" --workers 1", " --workers 5 --threads 2"}) {
      const ProgramResult ran = submit(line + workers + " --quiet");
      EXPECT_EQ(ran.code, 0) << line << workers << "\n" << ran.err;
      EXPECT_EQ(ran.out, alone.out) << line << workers;
    }
  }
  EXPECT_EQ(status().find("job "), std::string::npos) << status();
}

TEST_F(NodesWithFlows, WriteTheSameFilesAsOneProcess) {
  work_.write("a.txt", frequent_words(20'000));
  const ProgramResult alone =
      starling(work_, "run wordcount a.txt --parts 3 --quiet --json --output alone");
  ASSERT_EQ(alone.code, 0) << alone.err;
  const ProgramResult ran = submit("wordcount a.txt --parts 3 --json --workers 4 --output out");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(work_.names(), (std::vector<std::string>{"a.txt", "alone", "out"}));
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator{work_.path() / "out"}) {
    const std::string name = file.path().filename().string();
    EXPECT_EQ(work_.read("out/" + name), work_.read("alone/" + name)) << name;
    ++files;
  }
  EXPECT_EQ(files, 3U);
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["flow"], "wordcount");
  EXPECT_EQ(json["name"], "wordcount-a-1");
  EXPECT_EQ(json["workers"], 4);
  EXPECT_EQ(json["output"], "out");
  EXPECT_EQ(json["lines"], 3012);
  EXPECT_EQ(json["workers_died"], 0);
  EXPECT_EQ(json["parts_again"], 0);
  EXPECT_EQ(json["parts_again_is_minimum"], false);
  const Json in_one_process = Json::parse(alone.out);
  EXPECT_EQ(stages_of(json), stages_of(in_one_process)) << json;
  // A slow task may run on two nodes.
  for (std::size_t stage = 0; stage < in_one_process["stages"].size(); ++stage)
    for (const char* count : {"records_read", "records_written", "written_bytes"})
      EXPECT_GE(json["stages"][stage][count], in_one_process["stages"][stage][count]) << json;
  EXPECT_GT(json["stages"][0]["seconds"], 0);
  EXPECT_TRUE(contains(ran.err, "text | flat_map | reduce_by_key ")) << ran.err;
  EXPECT_TRUE(contains(ran.err, " shuffled, 0 bytes spilled, 0 parts computed again\n")) << ran.err;
  const ProgramResult again = submit("wordcount a.txt --output out");
  EXPECT_EQ(again.code, 2) << again.err;
  EXPECT_TRUE(contains(again.err, "--output: out: exists already; valid: the name of a new"))
      << again.err;
}

TEST_F(NodesWithFlows, ShowThemInStatusAndJobs) {
  work_.write("links.txt", many_links());
  work_.write("more.txt", "1 2\n");
  const std::string flow = "pagerank links.txt more.txt --iterations 10000 --detach --json";
  const ProgramResult submitted = submit(flow + " --output out");
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_EQ(Json::parse(submitted.out)["name"], "pagerank-links-1");
  ASSERT_TRUE(wait_until([&] { return status().find("running for ") != std::string::npos; }))
      << status();
  EXPECT_TRUE(contains(status(), "job pagerank-links-1: flow pagerank on links.txt and 1 more\n"))
      << status();
  EXPECT_FALSE(contains(status(), "step")) << status();
  EXPECT_FALSE(contains(status(), "range")) << status();
  EXPECT_FALSE(contains(status(), "model")) << status();
  Json running;
  // The nodes report one after another.
  EXPECT_TRUE(wait_until([&] {
    running = job();
    return running["flow"]["workers"] == 4;
  })) << running;
  EXPECT_EQ(running["settings"]["flow"], "pagerank") << running;
  EXPECT_EQ(running["settings"]["flow.iterations"], "10000") << running;
  EXPECT_EQ(running["settings"]["workers"], "4") << running;
  EXPECT_EQ(running["settings"]["input"].size(), 2U) << running;
  EXPECT_FALSE(running.contains("updates")) << running;
  EXPECT_EQ(running["flow"]["name"], "pagerank") << running;
  EXPECT_EQ(running["flow"]["parts_again"], 0) << running;
  EXPECT_EQ(running["flow"]["parts_again_is_minimum"], false) << running;
  for (const Json& member : running["members"]) {
    EXPECT_TRUE(member["works"].is_boolean()) << member;
    EXPECT_FALSE(member.contains("step")) << member;
  }
  Json stage;
  ASSERT_TRUE(wait_until([&] {
    stage = job()["flow"]["stage"];
    return stage["action"] >= 2;
  })) << job();
  EXPECT_GE(stage["number"], 1) << stage;
  EXPECT_LE(stage["number"], stage["stages"]) << stage;
  EXPECT_LE(stage["parts_done"], stage["parts"]) << stage;
  EXPECT_FALSE(stage["operations"].get<std::string>().empty()) << stage;
  EXPECT_TRUE(wait_until([&] { return contains(status(), "  action "); })) << status();
  EXPECT_TRUE(contains(status(), "  0 parts computed again\n")) << status();
  const ProgramResult jobs = starling(work_, "jobs" + to(0));
  EXPECT_FALSE(contains(jobs.out, "update")) << jobs.out;
  const ProgramResult saved = starling(work_, "attach --save m" + to(0));
  EXPECT_EQ(saved.code, 2) << saved.err;
  EXPECT_TRUE(contains(saved.err,
                       "--save: has no effect on job pagerank-links-1, which runs a "
                       "flow and has no model; valid: --json, --quiet"))
      << saved.err;
  EXPECT_EQ(starling(work_, "stop" + to(2)).code, 0);
  const ProgramResult attached = starling(work_, "attach" + to(0));
  EXPECT_EQ(attached.code, 1) << attached.err;
  EXPECT_TRUE(contains(attached.err, "was stopped before it had a result")) << attached.err;
  EXPECT_TRUE(wait_until([&] {
    return work_.names() == std::vector<std::string>{"links.txt", "more.txt"};
  }));
}

TEST_F(NodesWithFlows, KeepTheResultForAttach) {
  work_.write("a.txt", "b a c a b a\nd");
  ASSERT_EQ(submit("wordcount a.txt --detach --name mine").out, "job mine begins\n");
  ASSERT_TRUE(wait_until([&] { return job()["state"] == "done"; })) << job();
  EXPECT_FALSE(job()["flow"].contains("stage")) << job();
  const ProgramResult ran = starling(work_, "attach mine" + to(0));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "a\t3\nb\t2\nc\t1\nd\t1\n");
  EXPECT_TRUE(contains(ran.err, "wordcount: 1 file, 4 workers, ")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "result: 4 lines\n")) << ran.err;
  const ProgramResult jobs = starling(work_, "jobs" + to(0));
  EXPECT_TRUE(contains(jobs.out, "mine  done  flow wordcount on a.txt\n")) << jobs.out;
  EXPECT_TRUE(contains(jobs.out, ", lines 4, seconds ")) << jobs.out;
  const ProgramResult late = starling(work_, "attach mine" + to(1));
  EXPECT_EQ(late.code, 2);
  EXPECT_EQ(late.err,
            "starling: JOB: 'mine' has ended: done, and a program has fetched its result; "
            "`starling jobs mine` shows its summary\n");
  const ProgramResult unnamed = starling(work_, "attach" + to(1));
  EXPECT_TRUE(
      contains(unnamed.err, "no job runs on these nodes; the last job: 'mine' has ended: done"))
      << unnamed.err;
  const ProgramResult log = starling(work_, "logs mine" + to(0));
  EXPECT_TRUE(contains(log.out, " b job mine: ended: done\n")) << log.out;
}

TEST_F(NodesWithFlows, KeepAResultThatCouldNotBeWritten) {
  work_.write("a.txt", "b a c a b a\nd");
  const std::string flow =
      "submit" + to(1) + "--flow wordcount a.txt --quiet --name mine > /dev/full";
  const ProgramResult failed =
      run(work_, "/bin/sh", {"-c", std::string{STARLING_PROGRAM} + " " + flow});
  EXPECT_EQ(failed.code, 1) << failed.err;
  EXPECT_TRUE(contains(failed.err,
                       "job mine stays on its nodes: `starling attach mine` prints its result, "
                       "`starling stop --drop mine` drops it\n"))
      << failed.err;
  const ProgramResult ran = starling(work_, "attach mine --quiet" + to(0));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "a\t3\nb\t2\nc\t1\nd\t1\n");
  EXPECT_EQ(status().find("job "), std::string::npos) << status();
}

TEST_F(NodesWithFlows, ShowTheStageThatRuns) {
  work_.write("links.txt", many_links());
  Process submitted{work_, STARLING_PROGRAM,
                    words("submit" + to(1) + "--flow pagerank links.txt --iterations 10000")};
  EXPECT_TRUE(wait_until([&] { return contains(submitted.err(), ": action "); }))
      << submitted.err();
  EXPECT_TRUE(wait_until([&] { return contains(submitted.err(), " parts, "); }));
  submitted.signal(SIGINT);
  EXPECT_EQ(submitted.wait().code, 130);
  EXPECT_TRUE(wait_until([&] {
    return contains(starling(work_, "logs" + to(0)).out, "job pagerank-links-1: ended: stopped");
  }));
}

TEST_F(NodesWithFlows, CountAllFilesThatAreRead) {
  work_.write("people.csv", "1,a\n");
  work_.write("years.csv", "1,1999\n");
  for (const std::string& command : {std::string{"run "}, "submit" + to(1) + "--flow "}) {
    const ProgramResult ran = starling(work_, command + "join people.csv --with years.csv");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(contains(ran.err, "\njoin: 2 files, ")) << ran.err;
  }
}

TEST_F(NodesWithFlows, SkipFilesThatNoneOfThemCanOpen) {
  work_.write("a.txt", "a b a\n");
  const ProgramResult ran = submit("wordcount a.txt none.txt --skip-unreadable");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "a\t2\nb\t1\n");
  const std::string reason = work_.path().string() + "/none.txt: no such file";
  EXPECT_TRUE(contains(ran.err, "starling: skipped " + reason + "\n")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "wordcount: 2 files (1 skipped), ")) << ran.err;
  const ProgramResult json = submit("wordcount none.txt a.txt --skip-unreadable --json --quiet");
  EXPECT_EQ(json.err, "starling: skipped " + reason + "\n");
  EXPECT_EQ(Json::parse(json.out)["skipped"], Json::array({reason}));
  const ProgramResult refused = submit("wordcount none.txt --skip-unreadable");
  EXPECT_EQ(refused.code, 1) << refused.err;
  EXPECT_TRUE(contains(refused.err, "none.txt: no such file")) << refused.err;
}

TEST_F(NodesWithFlows, StopThemIfSubmitIsInterrupted) {
  work_.write("links.txt", many_links());
  Process submitted{
      work_, STARLING_PROGRAM,
      words("submit" + to(1) + "--flow pagerank links.txt --iterations 10000 --output out")};
  ASSERT_TRUE(wait_until([&] { return job()["state"] == "running"; })) << submitted.err();
  submitted.signal(SIGINT);
  const ProgramResult ran = submitted.wait();
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_TRUE(contains(ran.err, "job pagerank-links-1 was stopped before it had a result"))
      << ran.err;
  EXPECT_TRUE(wait_until([&] { return work_.names() == std::vector<std::string>{"links.txt"}; }));
  EXPECT_TRUE(wait_until([&] { return job().is_null(); })) << job();
}

/// Kills a node while pagerank runs, that of the coordinator or another, and compares the files
/// with those of one process. Returns the summary.
class NodesThatDie : public NodesWithFlows {
 protected:
  Json check(bool kills_coordinator) {
    work_.write("links.txt", many_links());
    const std::string flow = "pagerank links.txt --iterations 60 --parts 6 --quiet --output ";
    EXPECT_EQ(starling(work_, "run " + flow + "alone").code, 0);
    Process submitted{work_, STARLING_PROGRAM,
                      words("submit" + to(1) + "--workers 5 --json --flow " + flow + "out")};
    // From then on, each node has parts of the cached links.
    Json seen;
    EXPECT_TRUE(wait_until([&] {
      seen = job();
      return seen.is_object() && seen["flow"].contains("stage") &&
             seen["flow"]["stage"]["action"] >= 4;
    })) << submitted.err();
    std::string coordinator;
    for (const Json& member : seen["members"])
      if (member["member"] == seen["coordinator"]) coordinator = member["node"];
    EXPECT_EQ(coordinator.size(), 1U) << seen;
    const std::string victim = kills_coordinator ? coordinator : coordinator == "c" ? "a" : "c";
    processes_.at(static_cast<std::size_t>(victim.at(0) - 'a'))->signal(SIGKILL);
    const ProgramResult ran = submitted.wait();
    EXPECT_EQ(ran.code, 0) << ran.err;
    for (int part = 0; part < 6; ++part) {
      const std::string file = "/part-0000" + std::to_string(part) + ".txt";
      EXPECT_EQ(work_.read("out" + file), work_.read("alone" + file)) << file;
    }
    EXPECT_EQ(work_.names(), (std::vector<std::string>{"alone", "links.txt", "out"}));
    return Json::parse(ran.out, nullptr, false);
  }
};

TEST_F(NodesThatDie, CostNoResultIfTheCoordinatorIsAmongThem) {
  const Json summary = check(true);
  EXPECT_EQ(summary["parts_again_is_minimum"], true) << summary;
  EXPECT_GE(summary["workers_died"], 1) << summary;
}
TEST_F(NodesThatDie, CostNoResultIfTheyOnlyCompute) {
  const Json summary = check(false);
  EXPECT_GE(summary["parts_again"], 1) << summary;
  EXPECT_EQ(summary["parts_again_is_minimum"], false) << summary;
  EXPECT_GE(summary["workers_died"], 1) << summary;
  EXPECT_EQ(summary["workers"], 5) << summary;
}

TEST_F(NodesWithFlows, RefuseOrFailAndLeaveNothing) {
  work_.write("n.txt", "1\n2\nthree\n");
  const ProgramResult gone = submit("sort gone.txt --output out");
  EXPECT_EQ(gone.code, 1) << gone.err;
  EXPECT_TRUE(contains(gone.err, "gone.txt: no such file")) << gone.err;
  const ProgramResult log = starling(work_, "logs sort-gone-1" + to(0));
  EXPECT_TRUE(contains(log.out, " b job sort-gone-1: ended: failed: before it began: node at "))
      << log.out;
  const ProgramResult table = submit("join n.txt --with gone.csv");
  EXPECT_EQ(table.code, 1) << table.err;
  EXPECT_TRUE(contains(table.err, "gone.csv: no such file")) << table.err;
  const ProgramResult parent = submit("sort n.txt --output gone/out");
  EXPECT_EQ(parent.code, 1) << parent.err;
  EXPECT_TRUE(contains(parent.err, "gone/out: no folder can be made in ")) << parent.err;
  const ProgramResult ran = submit("sort --numeric n.txt --quiet --output out");
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(contains(ran.err, "n.txt:3: column 1: 'three' is not a finite number; valid: "))
      << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(wait_until([&] { return work_.names() == std::vector<std::string>{"n.txt"}; }));
  EXPECT_EQ(status().find("job "), std::string::npos) << status();
}

TEST(SubmitFlow, HasAHelpOfItsOwn) {
  const Folder folder;
  for (const std::string flow : {"wordcount", "sort", "join", "pagerank", "kmeans", "histogram"}) {
    const ProgramResult help = starling(folder, "submit --flow " + flow + " --help");
    EXPECT_EQ(help.code, 0) << help.err;
    EXPECT_TRUE(contains(help.out, "starling submit --flow " + flow)) << help.out;
    EXPECT_TRUE(contains(help.out, "--threads N")) << help.out;
    EXPECT_TRUE(contains(help.out, "Options of " + flow + ":")) << help.out;
    for (const auto& line : lines(help.out)) EXPECT_LE(line.size(), 110U) << line;
    EXPECT_EQ(starling(folder, "help submit --flow " + flow).out, help.out);
    EXPECT_EQ(starling(folder, "submit --help --flow=" + flow).out, help.out);
  }
  EXPECT_FALSE(contains(starling(folder, "--help").out, "submit --flow"));
}

}  // namespace
}  // namespace starling::program
