/// Twenty jobs at once on three nodes. One of the jobs has a member that hangs: the gradient of its
/// worker never returns. Neither the other jobs nor the nodes wait for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t other_jobs = 19;
/// Far more than `status` takes, even with 20 jobs and many clients on a busy machine.
constexpr std::chrono::seconds status_max{20};

/// Nodes that run own_program.cpp, whose model `stuck` hangs on node a.
class HangingMember : public Nodes {
 protected:
  const char* program() override { return STARLING_OWN_PROGRAM; }
  std::string own_flags(const std::string& name) override {
    return Nodes::own_flags(name) +
           " --jobs 40 --jobs-per-client 40 --threads 1000 --threads-per-client 1000";
  }

  ProgramResult run_line(const std::string& line) { return run(work_, program(), words(line)); }
  std::string small_job(std::size_t node) {
    return "submit" + to(node) +
           "--data linear:d=2,n=200 --model mean --workers 3 --mode peer --barrier asp --steps 100 "
           "--json --quiet ";
  }

  /// Makes the worker on node a hang, and returns the line that submits its job.
  std::string hanging_job() {
    folders_[0].write("hang", "");
    return "submit" + to(1) +
           "--data linear:d=2,n=200 --model stuck --workers 3 --mode peer --barrier asp --steps "
           "100 "
           "--quiet --save m ";
  }

  /// Runs `status` at node `node`, and stores the time that it took. Expects that no node is taken
  /// for dead.
  void ask_for_status(std::size_t node) {
    const auto begun = Clock::now();
    const ProgramResult ran = run_line("status" + to(node));
    times_.push_back(Clock::now() - begun);
    EXPECT_EQ(ran.code, 0) << ran.err;
    for (const std::string& address : addresses_)
      EXPECT_NE(ran.out.find(address + "  "), std::string::npos) << ran.out;
    EXPECT_EQ(ran.out.find("  dead"), std::string::npos) << ran.out;
  }

  std::vector<Clock::duration> times_;
};

TEST_F(HangingMember, HindersNeitherOtherJobsNorNodes) {
  const Folder other;
  Process hanging{other, program(), words(hanging_job() + "--name stuck")};
  ASSERT_TRUE(wait_until([&] { return folders_[0].has("hanging"); })) << hanging.err();

  std::vector<std::unique_ptr<Folder>> folders;
  std::vector<std::unique_ptr<Process>> jobs;
  for (std::size_t i = 0; i < other_jobs; ++i) {
    folders.push_back(std::make_unique<Folder>());
    jobs.push_back(std::make_unique<Process>(*folders.back(), program(),
                                             words(small_job(0) + "--delay exp:20ms --save m")));
  }
  for (std::size_t node = 0;
       std::ranges::any_of(jobs, [](const auto& job) { return job->is_running(); });
       node = (node + 1) % 3)
    ask_for_status(node);
  for (const auto& job : jobs) {
    const ProgramResult ran = job->wait();
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(nlohmann::json::parse(ran.out)["updates"], 300) << ran.out;
  }
  ASSERT_FALSE(times_.empty());
  std::ranges::sort(times_);
  EXPECT_LT(times_.back(), status_max);
  const auto in_ms = [](Clock::duration time) {
    return static_cast<long>(time / std::chrono::milliseconds{1});
  };
  std::printf("             status with 20 jobs: median %ld ms, longest of %zu %ld ms\n",
              in_ms(times_[times_.size() / 2]), times_.size(), in_ms(times_.back()));

  // The workers on the other nodes end, and the one that hangs does not.
  EXPECT_EQ(run_line("stop stuck" + to(2)).code, 0);
  EXPECT_TRUE(wait_until([&] {
    return std::ranges::count_if(members(),
                                 [](const auto& member) { return member["state"] == "done"; }) == 2;
  })) << status();
  const ProgramResult dropped = run_line("stop --drop stuck" + to(2));
  EXPECT_EQ(dropped.code, 0) << dropped.err;
  EXPECT_EQ(dropped.out, "job stuck: dropped\n");
  const ProgramResult ended = hanging.wait();
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  // The node that still has the hanging thread takes jobs as before.
  for (int i = 0; i < 8; ++i) {
    const ProgramResult ran = run_line(small_job(0));
    EXPECT_EQ(ran.code, 0) << ran.err;
  }
  ask_for_status(0);
}

/// The process ends although a gradient never returns.
TEST_F(HangingMember, DoesNotKeepItsNodeFromEnding) {
  const Folder other;
  Process submit{other, program(), words(hanging_job() + "--json")};
  ASSERT_TRUE(wait_until([&] { return folders_[0].has("hanging"); })) << submit.err();
  processes_[0]->signal(SIGTERM);
  EXPECT_TRUE(wait_until([&] { return !processes_[0]->is_running(); })) << processes_[0]->err();
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(other.has("m"));
}

}  // namespace
}  // namespace starling::program
