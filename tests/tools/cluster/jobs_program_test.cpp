// Runs two jobs on three nodes, one of which dies and starts again, and records the output. The
// transcript in docs/cluster.md is an earlier record. The test checks that the new record has each
// line of the transcript, apart from the numbers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

/// Returns the line with `N s` in place of each time, and N in place of each other number.
std::string without_numbers(const std::string& line) {
  static const std::regex number{R"([0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?)"};
  static const std::regex time{R"(N (min N s|h N min|min|ms|h)\b)"};
  return std::regex_replace(std::regex_replace(line, number, "N"), time, "N s");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Returns the lines of the transcripts in docs/cluster.md.
std::vector<std::string> documented_lines() {
  std::ifstream file{STARLING_DOCS "/cluster.md"};
  std::vector<std::string> lines;
  bool is_in_transcript = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "```console")
      is_in_transcript = true;
    else if (line == "```")
      is_in_transcript = false;
    else if (is_in_transcript)
      lines.push_back(line);
  }
  return lines;
}

class Transcript : public Nodes {
 protected:
  /// Runs a command as the documentation shows it, and records the command and its output.
  ProgramResult run_recorded(const std::string& line) {
    const ProgramResult ran = starling(work_, line + " --to " + addresses_[1].substr(6));
    record("$ starling " + line + " --to " + addresses_[1].substr(6) + "\n" + ran.err + ran.out);
    return ran;
  }
  void record(const std::string& text) {
    for (const std::string& line : lines_of(text)) recorded_.push_back(line);
  }
  nlohmann::json json(const std::string& line) {
    return nlohmann::json::parse(starling(work_, line + " --json" + to(1)).out, nullptr, false);
  }
  [[nodiscard]] std::string transcript() const {
    std::string text;
    for (const std::string& line : recorded_) text += line + "\n";
    return text;
  }

  void run_good_job();
  void run_failing_job();
  void restart_dead_node();
  void inspect_jobs();

  std::vector<std::string> recorded_;
};

void Transcript::run_good_job() {
  const ProgramResult submitted = run_recorded(
      "submit --data digits:n=1000 --model softmax --workers 3 --delay exp:10ms --steps 500 "
      "--name good --detach");
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  ASSERT_TRUE(wait_until([&] {
    const auto jobs = json("status")["jobs"];
    return !jobs.empty() && jobs[0].contains("loss") && jobs[0].contains("left_s") &&
           jobs[0].contains("steps") && jobs[0]["steps"]["min"] > 0;
  }));
  const ProgramResult running = run_recorded("status go");
  for (const char* part : {"job good: softmax on digits", "  running, epoch ", " of 500, loss ",
                           " updates/s, ", " s left\n", "  configuration 1, ", "  copies 2 of 2"})
    EXPECT_NE(running.out.find(part), std::string::npos) << part << "\n" << running.out;
  const ProgramResult of_one_node = starling(work_, "status --here" + to(1));
  EXPECT_NE(of_one_node.out.find("  copies 2 of 2"), std::string::npos) << of_one_node.out;
  const ProgramResult followed = run_recorded("attach go --save good.safetensors");
  ASSERT_EQ(followed.code, 0) << followed.err;
  EXPECT_NE(followed.err.find("follows job good (softmax on digits:n=1000, peer, "),
            std::string::npos)
      << followed.err;
  EXPECT_EQ(followed.err.find("step 0 of"), std::string::npos) << followed.err;
  EXPECT_NE(followed.err.find(" of 500, loss "), std::string::npos) << followed.err;
}

/// Runs a job that fails, because one node dies and no other node has replicas of its ranges.
void Transcript::run_failing_job() {
  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 job_of_three(1,
                              "--steps 100000 --copies 1 --wait-for-nodes 5s --name bad --quiet "
                              "--save m")};
  // After that, the workers on each node have made steps.
  ASSERT_TRUE(wait_until([&] {
    const auto jobs = json("status")["jobs"];
    return !jobs.empty() && jobs[0].contains("steps") && jobs[0]["steps"]["min"] >= 30;
  }));
  processes_[2]->signal(SIGKILL);
  (void)processes_[2]->wait();
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_NE(ran.err.find("a range has lost all its owners"), std::string::npos) << ran.err;
  EXPECT_TRUE(wait_until([&] {
    return status().find("  failed: a range has lost all its owners") != std::string::npos;
  })) << status();
  EXPECT_NE(status().find("c  " + addresses_[2] + "  dead"), std::string::npos) << status();
}

void Transcript::restart_dead_node() {
  processes_[2] = std::make_unique<Process>(
      folders_[2], STARLING_PROGRAM,
      words("node --name c --listen " + addresses_[2].substr(6) + " --join " + addresses_[0]));
  ASSERT_TRUE(wait_until([&] {
    return status().find("c  " + addresses_[2] + "  alive") != std::string::npos;
  })) << status();
}

void Transcript::inspect_jobs() {
  const ProgramResult status_now = run_recorded("status");
  EXPECT_EQ(status_now.out.find("dead"), std::string::npos) << status_now.out;
  for (const char* part :
       {"a  tcp", "b  tcp", "c  tcp", "job bad: ", "  failed: a range has lost all its owners, "})
    EXPECT_NE(status_now.out.find(part), std::string::npos) << part << "\n" << status_now.out;
  EXPECT_EQ(status_now.out.find("job good"), std::string::npos) << status_now.out;

  EXPECT_EQ(run_recorded("stop --drop bad").code, 0);
  const ProgramResult jobs = run_recorded("jobs");
  for (const char* part :
       {"good  done  softmax on digits", ", 1500 updates, step 500 of 500, ", "test_accuracy 0.",
        "bad  failed  softmax on digits", "\n  a range has lost all its owners\n"})
    EXPECT_NE(jobs.out.find(part), std::string::npos) << part << "\n" << jobs.out;
  const auto listed = json("jobs");
  ASSERT_EQ(listed["jobs"].size(), 2U) << listed;
  EXPECT_EQ(listed["jobs"][0]["name"], "good");
  EXPECT_EQ(listed["jobs"][0]["client"], "127.0.0.1");
  EXPECT_GT(listed["jobs"][0]["took_s"], 0.5);
  EXPECT_EQ(listed["jobs"][1]["state"], "failed");
  EXPECT_EQ(json("status")["jobs"].size(), 0U);

  const ProgramResult logs = run_recorded("logs bad");
  std::string last_time;
  for (const std::string& line : lines_of(logs.out)) {
    EXPECT_TRUE(std::regex_search(
        line, std::regex{R"(^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [abc] job bad: )"}))
        << line;
    EXPECT_LE(last_time, line.substr(0, 24));
    last_time = line.substr(0, 24);
  }
  for (const char* part : {" b job bad: submitted by 127.0.0.1; 3 nodes\n", " a job bad: begins\n",
                           " job bad: waits: ", " job bad: closed\n"})
    EXPECT_NE(logs.out.find(part), std::string::npos) << part << "\n" << logs.out;
}

TEST_F(Transcript, HasAllLinesOfTheDocumentedTranscript) {
  run_good_job();
  run_failing_job();
  restart_dead_node();
  inspect_jobs();
  if (const char* file = std::getenv("STARLING_TRANSCRIPT"); file != nullptr)
    std::ofstream{file} << transcript();
  std::set<std::string> recorded;
  for (const std::string& line : recorded_) recorded.insert(without_numbers(line));
  const auto lines = documented_lines();
  ASSERT_GT(lines.size(), 20U);
  for (const std::string& line : lines)
    EXPECT_TRUE(line == "..." || recorded.contains(without_numbers(line)))
        << line << "\nrecorded:\n"
        << transcript();
}

TEST_F(Nodes, KeepTheRecordOfAJobIfOneOfThemDies) {
  const ProgramResult ran =
      run(work_, program(), job_of_three(0, "--steps 3 --quiet --name short"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  processes_[0]->signal(SIGKILL);
  const ProgramResult jobs = starling(work_, "jobs short" + to(2));
  EXPECT_EQ(jobs.code, 0) << jobs.err;
  EXPECT_NE(jobs.out.find("short  done  softmax on digits"), std::string::npos) << jobs.out;
  EXPECT_NE(jobs.out.find(", 9 updates, "), std::string::npos) << jobs.out;
}

TEST_F(Nodes, AreNamedByJobsIfTheyDoNotAnswer) {
  processes_[2]->signal(SIGSTOP);
  const ProgramResult jobs = starling(work_, "jobs" + to(0));
  EXPECT_EQ(jobs.code, 0) << jobs.err;
  EXPECT_EQ(jobs.err, "starling: no answer from c: jobs that no other node knows are missing\n");
}

TEST_F(Nodes, AreNamedByLogsIfTheyDoNotAnswer) {
  processes_[2]->signal(SIGSTOP);
  const Folder other;
  Process of_one{other, STARLING_PROGRAM, words("logs --node c" + to(1))};
  const ProgramResult all = starling(work_, "logs" + to(0));
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(all.err, "starling: no answer from c: their lines are missing\n");
  EXPECT_NE(all.out.find("Z a "), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("Z b "), std::string::npos) << all.out;
  EXPECT_EQ(of_one.wait().code, 1) << of_one.err();
}

TEST_F(Nodes, ListAJobThatTheyRefusedAsFailed) {
  work_.write("x.csv", "1,2,0\n2,1,1\n3,1,0\n");
  for (std::size_t node = 0; node < 3; ++node)
    folders_[node].write("x.csv", node == 1 ? "1,3,0\n2,1,1\n3,1,0\n" : "1,2,0\n2,1,1\n3,1,0\n");
  const ProgramResult ran =
      starling(work_, "submit" + to(0) +
                          "--data csv:/proc/self/cwd/x.csv,label=last,task=class "
                          "--model softmax --split 2 --name odd");
  EXPECT_EQ(ran.code, 1) << ran.out;
  const ProgramResult jobs = starling(work_, "jobs" + to(1));
  EXPECT_NE(jobs.out.find("odd  failed  softmax on csv:"), std::string::npos) << jobs.out;
  EXPECT_NE(jobs.out.find("  before it began: the nodes differ"), std::string::npos) << jobs.out;
}

}  // namespace
}  // namespace starling::program
